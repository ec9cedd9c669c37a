//! Chance that begins with a seed: equal seeds make equal choices.

use std::time::Duration;

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice of their own for a part of what these decide.
    pub fn split(&mut self) -> Self {
        Self(self.draw())
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end.max(1)
    }

    /// True so many times in a thousand.
    pub fn permille(&mut self, times: u64) -> bool {
        self.below(1000) < times
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = usize::try_from(self.below(from.len() as u64)).unwrap_or_default();
        &from[at]
    }

    /// Mostly short, sometimes long: each length of time up to 2^bits milliseconds is as likely as its double.
    pub fn while_(&mut self, bits: u64) -> Duration {
        let most = 1 << self.below(bits + 1);
        Duration::from_millis(self.below(most) + 1)
    }
}
