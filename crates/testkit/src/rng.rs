//! Pseudo-random choices that can be repeated: equal seeds give equal choices on every machine.

use std::time::Duration;

/// SplitMix64. All seeds are equally good.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A source of choices; the same seed makes the same choices.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own, for a part of the choices.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self(self.next_u64())
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a limit; 0 if the limit is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next_u64() % limit.max(1)
    }

    /// An index into a collection of this length; 0 if it is empty.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or_default()
    }

    /// True `times` in a thousand times.
    pub fn permille(&mut self, times: u64) -> bool {
        self.below(1000) < times
    }

    /// One of the items, of which there must be one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Mostly short, sometimes long: each range of durations up to 2^bits milliseconds is as likely as its double.
    pub fn duration(&mut self, bits: u64) -> Duration {
        let limit = 1 << self.below(bits + 1);
        Duration::from_millis(self.below(limit) + 1)
    }

    /// Random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next_u64().to_be_bytes()[0]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_choices() {
        // The first numbers of the reference implementation for the seed 0.
        let mut rng = Rng::new(0);
        assert_eq!(rng.next_u64(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(rng.next_u64(), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(Rng::new(7).bytes(16), Rng::new(7).bytes(16));
        assert_ne!(Rng::new(7).bytes(16), Rng::new(8).bytes(16));
        assert_eq!((Rng::new(1).below(0), Rng::new(1).index(1)), (0, 0));
    }
}
