//! Random numbers for names and for waits that are spread.

use std::sync::atomic::{AtomicU64, Ordering};
use transom_object::hash::{SPLIT_MIX_STEP, split_mix};

/// Random numbers that can be replayed: the same seed gives the same numbers.
#[derive(Debug)]
pub struct Rng(AtomicU64);

impl Rng {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// The next number. SplitMix64: every state is valid, and a draw is one atomic addition.
    pub fn draw(&self) -> u32 {
        let state = self.0.fetch_add(SPLIT_MIX_STEP, Ordering::Relaxed).wrapping_add(SPLIT_MIX_STEP);
        u32::try_from(split_mix(state) >> 32).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_replayed() {
        let draws = |seed| {
            let rng = Rng::new(seed);
            [rng.draw(), rng.draw(), rng.draw()]
        };
        // The upper halves of the published first numbers of SplitMix64 with seed 0.
        assert_eq!(draws(0), [0xe220_a839, 0x6e78_9e6a, 0x06c4_5d18]);
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
    }
}
