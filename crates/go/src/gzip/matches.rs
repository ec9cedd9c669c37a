//! Finds repetitions, by the positions of four bytes in a table, in the block and the one before it. Which of the
//! possible repetitions are found decides the output, so the order in which the table is read and written matters.

/// The longest repetition.
const LENGTH_MAX: usize = 258;
/// The shortest repetition that DEFLATE can express; lengths are counted from it.
const LENGTH_BASE: usize = 3;
/// What the table knows a position by.
const KEY_BYTES: usize = 4;
/// The farthest repetition.
const DISTANCE_MAX: i64 = 32_768;
/// The number of bytes at the end of a block that are not searched.
const UNSEARCHED_BYTES: usize = 15;
const TABLE_BITS: u32 = 14;
/// Positions in different blocks differ by at least this.
const FIRST_POSITION: i64 = 65_535;

/// A byte, or a repetition: what a block consists of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbol {
    Literal(u8),
    Repeat {
        /// The length above [`LENGTH_BASE`].
        length: u8,
        /// The distance above one.
        distance: u16,
    },
}

/// Four bytes at a position of the stream.
#[derive(Clone, Copy, Default)]
struct Entry {
    key: u32,
    position: i64,
}

/// Finds repetitions in the blocks of a stream.
pub(super) struct Matcher {
    table: Vec<Entry>,
    previous: Vec<u8>,
    /// The position of the block's first byte.
    start: i64,
    symbols: Vec<Symbol>,
}

fn key(block: &[u8], at: usize) -> u32 {
    block[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn slot(key: u32) -> usize {
    (key.wrapping_mul(0x1e35_a7bd) >> (32 - TABLE_BITS)) as usize
}

impl Matcher {
    pub(super) fn new() -> Self {
        let table = vec![Entry::default(); 1 << TABLE_BITS];
        Self { table, previous: Vec::new(), start: FIRST_POSITION, symbols: Vec::new() }
    }

    /// The symbols of a block, which must be longer than [`UNSEARCHED_BYTES`].
    pub(super) fn find(&mut self, block: &[u8]) -> &[Symbol] {
        self.symbols.clear();
        let written = self.search(block, block.len() - UNSEARCHED_BYTES);
        self.literals(&block[written..]);
        self.start += block.len() as i64;
        self.previous.clear();
        self.previous.extend_from_slice(block);
        &self.symbols
    }

    /// Appends the symbols of the block up to the last repetition, and returns where that ends.
    fn search(&mut self, block: &[u8], limit: usize) -> usize {
        let mut written = 0;
        let mut at = 0;
        while let Some((found, mut distance)) = self.next_match(block, at, limit) {
            self.literals(&block[written..found]);
            at = found;
            // Repetitions that follow each other directly.
            loop {
                let length = KEY_BYTES + self.extend(block, at + KEY_BYTES, distance);
                self.symbols.push(Symbol::Repeat {
                    length: (length - LENGTH_BASE) as u8,
                    distance: (distance - 1) as u16,
                });
                at += length;
                written = at;
                if at >= limit {
                    return written;
                }
                self.replace(block, at - 1);
                match self.replace(block, at) {
                    Some(next) => distance = next,
                    None => break,
                }
            }
            at += 1;
        }
        written
    }

    /// The next position with a repetition, and its distance. The longer none is found, the fewer positions are looked at.
    fn next_match(&mut self, block: &[u8], from: usize, limit: usize) -> Option<(usize, usize)> {
        let mut skip = 32;
        let mut at = from;
        loop {
            let step = skip >> 5;
            skip += step;
            if at + step > limit {
                return None;
            }
            if let Some(distance) = self.replace(block, at) {
                return Some((at, distance));
            }
            at += step;
        }
    }

    /// Enters a position into the table; returns the distance to the one that was there, if that is a repetition.
    fn replace(&mut self, block: &[u8], at: usize) -> Option<usize> {
        let key = key(block, at);
        let position = self.start + at as i64;
        let before = std::mem::replace(&mut self.table[slot(key)], Entry { key, position });
        let distance = position - before.position;
        (distance <= DISTANCE_MAX && key == before.key).then_some(distance as usize)
    }

    /// How many more bytes from a position on are repeated.
    fn extend(&self, block: &[u8], at: usize, distance: usize) -> usize {
        let end = block.len().min(at + LENGTH_MAX - KEY_BYTES);
        let source = at as i64 - distance as i64;
        let earlier = |i: usize| match usize::try_from(source + i as i64) {
            Ok(here) => block.get(here).copied(),
            Err(_) => {
                let back = usize::try_from(-(source + i as i64)).ok()?;
                self.previous.get(self.previous.len().checked_sub(back)?).copied()
            }
        };
        block[at..end].iter().enumerate().take_while(|(i, byte)| earlier(*i) == Some(**byte)).count()
    }

    fn literals(&mut self, bytes: &[u8]) {
        self.symbols.extend(bytes.iter().map(|byte| Symbol::Literal(*byte)));
    }
}
