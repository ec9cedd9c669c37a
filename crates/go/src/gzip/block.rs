//! Writes blocks of DEFLATE (RFC 1951): stored, or with codes of their own. The fixed codes are not used.

use super::codes::{Code, codes};
use super::matches::Symbol;

/// Bytes, the end of the block, and lengths.
const LITERALS: usize = 286;
const DISTANCES: usize = 30;
const END_OF_BLOCK: usize = 256;
const LENGTHS_START: usize = 257;
const CODE_BITS_MAX: usize = 15;
/// The lengths of codes are written with codes that are themselves at most this long.
const HEADER_CODE_BITS_MAX: usize = 7;
/// The order in which the lengths of these codes are written.
const HEADER_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Writes blocks one after another. What does not fill a byte waits for the next block.
#[derive(Default)]
pub(super) struct BlockWriter {
    bits: u64,
    count: u32,
}

/// A length in the header of a block: a length itself, or a repetition with extra bits.
struct HeaderSymbol {
    symbol: u8,
    extra: u8,
}

/// The codes of a block.
struct Dynamic {
    literals: Vec<Code>,
    distances: Vec<Code>,
    literal_count: usize,
    distance_count: usize,
    /// How many bits the codes of all symbols have.
    size: usize,
}

impl BlockWriter {
    fn bits(&mut self, bits: u64, count: u32, out: &mut Vec<u8>) {
        self.bits |= bits << self.count;
        self.count += count;
        while self.count >= 8 {
            out.push(self.bits as u8);
            self.bits >>= 8;
            self.count -= 8;
        }
    }

    fn code(&mut self, code: Code, out: &mut Vec<u8>) {
        self.bits(u64::from(code.bits), u32::from(code.length), out);
    }

    fn align(&mut self, out: &mut Vec<u8>) {
        if self.count > 0 {
            out.push(self.bits as u8);
        }
        (self.bits, self.count) = (0, 0);
    }

    fn stored_header(&mut self, length: u16, last: bool, out: &mut Vec<u8>) {
        self.bits(u64::from(last), 3, out);
        self.align(out);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
    }

    /// Writes bytes as they are.
    pub(super) fn stored(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.stored_header(bytes.len() as u16, false, out);
        out.extend_from_slice(bytes);
    }

    /// Ends the stream with an empty block.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        self.stored_header(0, true, out);
    }

    /// Writes bytes without repetitions.
    pub(super) fn literals(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut frequencies = [0; LITERALS];
        bytes.iter().for_each(|byte| frequencies[usize::from(*byte)] += 1);
        let dynamic = Dynamic::new(frequencies, [0; DISTANCES]);
        if self.begin(&dynamic, bytes, out) {
            bytes.iter().for_each(|byte| self.code(dynamic.literals[usize::from(*byte)], out));
            self.code(dynamic.literals[END_OF_BLOCK], out);
        }
    }

    /// Writes the symbols that the bytes consist of.
    pub(super) fn symbols(&mut self, symbols: &[Symbol], bytes: &[u8], out: &mut Vec<u8>) {
        let (mut literals, mut distances) = ([0; LITERALS], [0; DISTANCES]);
        for symbol in symbols {
            match *symbol {
                Symbol::Literal(byte) => literals[usize::from(byte)] += 1,
                Symbol::Repeat { length, distance } => {
                    literals[LENGTHS_START + length_code(length).0] += 1;
                    distances[distance_code(distance).0] += 1;
                }
            }
        }
        let dynamic = Dynamic::new(literals, distances);
        if !self.begin(&dynamic, bytes, out) {
            return;
        }
        for symbol in symbols {
            match *symbol {
                Symbol::Literal(byte) => self.code(dynamic.literals[usize::from(byte)], out),
                Symbol::Repeat { length, distance } => {
                    let (code, count, extra) = length_code(length);
                    self.code(dynamic.literals[LENGTHS_START + code], out);
                    self.bits(extra, count, out);
                    let (code, count, extra) = distance_code(distance);
                    self.code(dynamic.distances[code], out);
                    self.bits(extra, count, out);
                }
            }
        }
        self.code(dynamic.literals[END_OF_BLOCK], out);
    }

    /// Writes the header of a block, or, if compression saves too little, the bytes as they are.
    fn begin(&mut self, dynamic: &Dynamic, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        let header = dynamic.header();
        let mut frequencies = [0; HEADER_ORDER.len()];
        header.iter().for_each(|one| frequencies[usize::from(one.symbol)] += 1);
        let header_codes = codes(&frequencies, HEADER_CODE_BITS_MAX);
        let used = HEADER_ORDER.iter().rposition(|symbol| frequencies[*symbol] > 0);
        let used = used.map_or(4, |last| (last + 1).max(4));
        let of_header: usize = header
            .iter()
            .map(|one| {
                usize::from(header_codes[usize::from(one.symbol)].length) + extra_bits(one.symbol) as usize
            })
            .sum();
        // The extra bits of lengths and distances are not counted, as in the original.
        let size = 3 + 5 + 5 + 4 + 3 * used + of_header + dynamic.size;
        if (bytes.len() + 5) * 8 < size + (size >> 4) {
            self.stored(bytes, out);
            return false;
        }
        self.bits(4, 3, out);
        self.bits((dynamic.literal_count - LENGTHS_START) as u64, 5, out);
        self.bits((dynamic.distance_count - 1) as u64, 5, out);
        self.bits((used - 4) as u64, 4, out);
        for symbol in &HEADER_ORDER[..used] {
            self.bits(u64::from(header_codes[*symbol].length), 3, out);
        }
        for one in header {
            self.code(header_codes[usize::from(one.symbol)], out);
            self.bits(u64::from(one.extra), extra_bits(one.symbol), out);
        }
        true
    }
}

impl Dynamic {
    fn new(mut literals: [u32; LITERALS], mut distances: [u32; DISTANCES]) -> Self {
        literals[END_OF_BLOCK] = 1;
        let last = |frequencies: &[u32]| frequencies.iter().rposition(|count| *count > 0);
        let literal_count = last(&literals).map_or(0, |last| last + 1);
        let distance_count = last(&distances).map_or(0, |last| last + 1);
        if distance_count == 0 {
            // A block must have a code for distances.
            distances[0] = 1;
        }
        let (literal_codes, distance_codes) =
            (codes(&literals, CODE_BITS_MAX), codes(&distances, CODE_BITS_MAX));
        let size = |frequencies: &[u32], codes: &[Code]| -> usize {
            frequencies
                .iter()
                .zip(codes)
                .map(|(count, code)| *count as usize * usize::from(code.length))
                .sum()
        };
        Self {
            size: size(&literals, &literal_codes) + size(&distances, &distance_codes),
            literals: literal_codes,
            distances: distance_codes,
            literal_count,
            distance_count: distance_count.max(1),
        }
    }

    /// The lengths of the codes, with runs of equal lengths shortened.
    fn header(&self) -> Vec<HeaderSymbol> {
        let literals = self.literals[..self.literal_count].iter();
        let lengths: Vec<u8> =
            literals.chain(&self.distances[..self.distance_count]).map(|code| code.length).collect();
        let mut symbols = Vec::new();
        for run in lengths.chunk_by(|a, b| a == b) {
            let length = run[0];
            let mut rest = run.len();
            if length != 0 {
                symbols.push(HeaderSymbol { symbol: length, extra: 0 });
                rest -= 1;
            }
            while rest >= 3 {
                let (symbol, base, most) = match (length, rest) {
                    (0, 11..) => (18, 11, 138),
                    (0, _) => (17, 3, 10),
                    _ => (16, 3, 6),
                };
                let count = rest.min(most);
                symbols.push(HeaderSymbol { symbol, extra: (count - base) as u8 });
                rest -= count;
            }
            symbols.extend((0..rest).map(|_| HeaderSymbol { symbol: length, extra: 0 }));
        }
        symbols
    }
}

/// How many extra bits follow a symbol of the header.
fn extra_bits(symbol: u8) -> u32 {
    match symbol {
        16 => 2,
        17 => 3,
        18 => 7,
        _ => 0,
    }
}

/// The code of a length above three, and its extra bits with their number.
fn length_code(length: u8) -> (usize, u32, u64) {
    match length {
        0..=7 => (usize::from(length), 0, 0),
        255 => (28, 0, 0),
        _ => {
            let extra = length.ilog2() - 2;
            let code = 4 * (extra + 1) + u32::from(length >> extra & 3);
            (code as usize, extra, u64::from(length) & ((1 << extra) - 1))
        }
    }
}

/// The code of a distance above one, and its extra bits with their number.
fn distance_code(distance: u16) -> (usize, u32, u64) {
    if distance < 4 {
        return (usize::from(distance), 0, 0);
    }
    let extra = distance.ilog2() - 1;
    let code = 2 * (extra + 1) + u32::from(distance >> extra & 1);
    (code as usize, extra, u64::from(distance) & ((1 << extra) - 1))
}
