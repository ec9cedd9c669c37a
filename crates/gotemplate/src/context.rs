//! What functions read besides their arguments: a clock, randomness and host names. Tests inject their own.

use std::time::{SystemTime, UNIX_EPOCH};

use ring::rand::{SecureRandom, SystemRandom};

/// The sources of results that do not depend on the arguments alone.
pub trait Context: Send + Sync {
    /// Nanoseconds since the Unix epoch.
    fn now(&self) -> i128;

    /// Fills `bytes` with randomness; returns false when the system provides none.
    fn random(&self, bytes: &mut [u8]) -> bool;

    /// Addresses of a host. Rendering does no network I/O unless the embedding decides otherwise: only names that
    /// need none resolve.
    fn lookup_host(&self, name: &str) -> Vec<String> {
        match name.parse::<std::net::IpAddr>() {
            Ok(_) => vec![name.to_owned()],
            Err(_) if name == "localhost" => vec!["127.0.0.1".to_owned()],
            Err(_) => Vec::new(),
        }
    }
}

/// The machine's clock and randomness.
#[derive(Debug, Default)]
pub struct System {
    random: Option<SystemRandom>,
}

impl Context for System {
    fn now(&self) -> i128 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(i128::MAX),
            Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
        }
    }

    fn random(&self, bytes: &mut [u8]) -> bool {
        match &self.random {
            Some(random) => random.fill(bytes).is_ok(),
            None => SystemRandom::new().fill(bytes).is_ok(),
        }
    }
}

/// A stopped clock and a seeded generator: two renders with equal seeds are equal. Never for secrets.
#[derive(Debug)]
pub struct Reproducible {
    /// Nanoseconds since the Unix epoch.
    pub now: i128,
    state: std::sync::atomic::AtomicU64,
}

impl Reproducible {
    /// A clock that stopped at `now`, and the generator of a seed.
    pub fn new(now: i128, seed: u64) -> Reproducible {
        Reproducible { now, state: std::sync::atomic::AtomicU64::new(seed) }
    }
}

impl Context for Reproducible {
    fn now(&self) -> i128 {
        self.now
    }

    fn random(&self, bytes: &mut [u8]) -> bool {
        const SPLITMIX_INCREMENT: u64 = 0x9E37_79B9_7F4A_7C15;
        for chunk in bytes.chunks_mut(8) {
            // splitmix64
            let state = self
                .state
                .fetch_add(SPLITMIX_INCREMENT, std::sync::atomic::Ordering::Relaxed)
                .wrapping_add(SPLITMIX_INCREMENT);
            let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            let mixed = mixed ^ mixed >> 31;
            chunk.copy_from_slice(&mixed.to_le_bytes()[..chunk.len()]);
        }
        true
    }
}
