//! compress/gzip at its fastest level, byte for byte: the digests of layers are those of compressed bytes, and a package
//! that is built here has the digests of one that is built by a program in Go.
//!
//! | module | what it does |
//! |---|---|
//! | here | the frame of gzip, and the division into blocks |
//! | `matches` | finds repetitions |
//! | `codes` | Huffman codes of limited length |
//! | `block` | writes a block of DEFLATE |
//!
//! Go promises no stable output; this is that of its versions up to 1.26, which has been the same since 1.7.

mod block;
mod codes;
mod matches;

use block::BlockWriter;
use matches::Matcher;

/// How many bytes are compressed at a time: the most that a stored block can have.
const BLOCK_BYTES: usize = 65_535;
/// A last block of fewer bytes is not searched for repetitions.
const SEARCHED_BYTES_MIN: usize = 128;
/// A last block of at most this many bytes is not compressed.
const STORED_BYTES_MAX: usize = 16;
/// Identification, method, no flags, no time, fastest level, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// Compresses a stream.
pub struct GzipEncoder {
    block: Vec<u8>,
    matcher: Matcher,
    writer: BlockWriter,
    checksum: Checksum,
    started: bool,
}

impl Default for GzipEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl GzipEncoder {
    /// Begins a stream.
    pub fn new() -> Self {
        Self {
            block: Vec::with_capacity(BLOCK_BYTES),
            matcher: Matcher::new(),
            writer: BlockWriter::default(),
            checksum: Checksum::new(),
            started: false,
        }
    }

    /// Compresses the next bytes of the stream, and appends what is ready.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        self.start(out);
        self.checksum.update(bytes);
        while !bytes.is_empty() {
            if self.block.len() == BLOCK_BYTES {
                self.compress(out);
            }
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.block.len()));
            self.block.extend_from_slice(now);
            bytes = later;
        }
    }

    /// Ends the stream, and appends the rest of it.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        self.start(out);
        match self.block.len() {
            0 => {}
            1..=STORED_BYTES_MAX => self.writer.stored(&self.block, out),
            length if length < SEARCHED_BYTES_MIN => self.writer.literals(&self.block, out),
            _ => self.compress(out),
        }
        self.writer.end(out);
        out.extend_from_slice(&self.checksum.value().to_le_bytes());
        out.extend_from_slice(&self.checksum.length.to_le_bytes());
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if !self.started {
            out.extend_from_slice(&HEADER);
            self.started = true;
        }
    }

    /// Compresses a block. If that removes less than a sixteenth of its symbols, repetitions are not worth their cost.
    fn compress(&mut self, out: &mut Vec<u8>) {
        let length = self.block.len();
        let symbols = self.matcher.find(&self.block);
        if symbols.len() > length - (length >> 4) {
            self.writer.literals(&self.block, out);
        } else {
            self.writer.symbols(symbols, &self.block, out);
        }
        self.block.clear();
    }
}

/// All of a stream at once.
pub fn compress(bytes: &[u8]) -> Vec<u8> {
    let (mut encoder, mut out) = (GzipEncoder::new(), Vec::new());
    encoder.push(bytes, &mut out);
    encoder.finish(&mut out);
    out
}

/// CRC-32 and length, modulo 2³².
struct Checksum {
    table: [u32; 256],
    crc: u32,
    length: u32,
}

impl Checksum {
    fn new() -> Self {
        let mut table = [0; 256];
        for (value, entry) in (0u32..).zip(&mut table) {
            *entry = (0..8).fold(value, |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 });
        }
        Self { table, crc: u32::MAX, length: 0 }
    }

    fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let index = (self.crc as u8) ^ byte;
            self.crc = (self.crc >> 8) ^ self.table[usize::from(index)];
        }
        self.length = self.length.wrapping_add(bytes.len() as u32);
    }

    fn value(&self) -> u32 {
        !self.crc
    }
}

#[cfg(test)]
mod tests;
