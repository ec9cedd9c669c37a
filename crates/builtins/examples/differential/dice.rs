//! Choices for generated cases: the same seed and index always give the same case, on every machine. Recorded answers
//! depend on the sequence.

use transom_testkit::rng::Rng;

pub(crate) struct Dice(Rng);

impl Dice {
    pub(crate) fn new(seed: u64, index: u64) -> Self {
        let start = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index.wrapping_mul(0xD1B5_4A32_D192_ED03);
        let mut dice = Self(Rng::new(start));
        dice.next();
        dice
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.index(bound)
    }

    /// True so many times in a hundred.
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.0.below(100) < chance
    }

    pub(crate) fn pick<'t, T: ?Sized>(&mut self, from: &[&'t T]) -> &'t T {
        from[self.below(from.len())]
    }

    pub(crate) fn one<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}
