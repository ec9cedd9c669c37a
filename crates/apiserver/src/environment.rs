//! Time and random numbers. A simulation has its own, so that a run can be repeated.

use crate::server::Inner;
use transom_object::time::{self, Timestamp};

/// Where a server's times, uids and generated names come from.
pub trait Environment: Send + Sync {
    /// The time of day.
    fn now(&self) -> Timestamp;

    /// Uniformly distributed random bits.
    fn random(&self) -> u128;
}

/// The clock and the randomness of the system.
pub struct SystemEnvironment;

impl Environment for SystemEnvironment {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn random(&self) -> u128 {
        // Six of its bits mark it as a uuid; no caller uses those.
        uuid::Uuid::new_v4().as_u128()
    }
}

impl Inner {
    /// Seconds-precision RFC 3339 in UTC, as metadata carries times.
    pub(crate) fn timestamp(&self) -> String {
        time::format(self.environment.now())
    }

    pub(crate) fn new_uid(&self) -> String {
        uuid::Builder::from_random_bytes(self.environment.random().to_be_bytes()).into_uuid().to_string()
    }

    /// The low half of a random uuid is random throughout.
    pub(crate) fn draw(&self) -> u32 {
        u32::try_from(self.environment.random() & u128::from(u32::MAX)).unwrap_or_default()
    }
}
