//! Decompression with limits: gzip, Zstandard or none, recognised by the first bytes. An archive that expands beyond
//! its limits is refused while it is read, so that a bomb costs neither memory nor much time.

use super::LayerLimits;
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest window of a Zstandard frame: what its decoder keeps in memory.
const ZSTD_WINDOW_BYTES_MAX: u64 = 64 << 20;

/// The uncompressed content of a layer, within limits.
pub(super) fn decompress<R: Read + Send + 'static>(reader: R, limits: LayerLimits) -> io::Result<impl Read> {
    let compressed = Arc::new(AtomicU64::new(0));
    let mut reader =
        BufReader::with_capacity(64 << 10, Counting { inner: reader, read: Arc::clone(&compressed) });
    let content: Box<dyn Read + Send> = match magic(&mut reader)? {
        Magic::Gzip => Box::new(MultiGzDecoder::new(reader)),
        Magic::Zstd => Box::new(Zstd { state: State::Between(Some(reader)) }),
        Magic::Other => return Ok(Bounded { inner: Box::new(reader), read: 0, compressed: None, limits }),
    };
    Ok(Bounded { inner: content, read: 0, compressed: Some(compressed), limits })
}

enum Magic {
    Gzip,
    Zstd,
    Other,
}

fn magic(reader: &mut impl BufRead) -> io::Result<Magic> {
    // One read of a stream may return fewer bytes than the magic number has; the first byte decides well enough
    // because a tar archive begins with a name.
    Ok(match reader.fill_buf()? {
        [0x1f, ..] => Magic::Gzip,
        [0x28, 0xb5, ..] | [0x28] => Magic::Zstd,
        [first, 0x2a, ..] if (0x50..=0x5f).contains(first) => Magic::Zstd,
        _ => Magic::Other,
    })
}

struct Counting<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

struct Bounded {
    inner: Box<dyn Read + Send>,
    read: u64,
    compressed: Option<Arc<AtomicU64>>,
    limits: LayerLimits,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read += read as u64;
        let refuse = |problem: String| Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        if self.read > self.limits.layer_bytes {
            return refuse(format!(
                "expands to more than {} bytes, which is refused",
                self.limits.layer_bytes
            ));
        }
        let Some(compressed) = &self.compressed else { return Ok(read) };
        let compressed = compressed.load(Ordering::Relaxed).max(1);
        let expanded = self.read / compressed;
        if self.read > self.limits.ratio_free_bytes && expanded > self.limits.ratio {
            return refuse(format!(
                "expands to more than {} times its compressed size, like a decompression bomb, which is refused",
                self.limits.ratio
            ));
        }
        Ok(read)
    }
}

/// Zstandard: any number of frames, one after another.
struct Zstd<R: Read> {
    state: State<R>,
}

type Frame<R> = StreamingDecoder<io::Chain<Cursor<Vec<u8>>, R>, FrameDecoder>;

enum State<R: Read> {
    Between(Option<R>),
    Within(Box<Frame<R>>),
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match &mut self.state {
                State::Within(frame) => match frame.read(buffer)? {
                    0 => {}
                    read => return Ok(read),
                },
                State::Between(rest) => {
                    let Some(rest) = rest.take() else { return Ok(0) };
                    match next_frame(rest)? {
                        None => return Ok(0),
                        Some(frame) => self.state = State::Within(Box::new(frame)),
                    }
                    continue;
                }
            }
            if let State::Within(frame) = std::mem::replace(&mut self.state, State::Between(None)) {
                self.state = State::Between(Some(frame.into_inner().into_inner().1));
            }
        }
    }
}

/// The next frame, after frames to be skipped. Its header is read here first, because the decoder would trust the size
/// of its window.
fn next_frame<R: Read>(mut rest: R) -> io::Result<Option<Frame<R>>> {
    loop {
        let mut magic = Vec::with_capacity(4);
        (&mut rest).take(4).read_to_end(&mut magic)?;
        if magic.is_empty() {
            return Ok(None);
        }
        let [a, b, c, d] = magic[..] else { return Err(cut_off()) };
        match u32::from_le_bytes([a, b, c, d]) {
            0x184d_2a50..=0x184d_2a5f => {
                let mut length = [0; 4];
                rest.read_exact(&mut length)?;
                let length = u64::from(u32::from_le_bytes(length));
                if io::copy(&mut (&mut rest).take(length), &mut io::sink())? != length {
                    return Err(cut_off());
                }
            }
            _ => {
                let header = frame_header(magic, &mut rest)?;
                let frame = StreamingDecoder::new(Cursor::new(header).chain(rest));
                return frame
                    .map(Some)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()));
            }
        }
    }
}

fn frame_header(mut header: Vec<u8>, rest: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut take = |count: u64, header: &mut Vec<u8>| -> io::Result<()> {
        if rest.take(count).read_to_end(header)? as u64 == count { Ok(()) } else { Err(cut_off()) }
    };
    take(1, &mut header)?;
    let descriptor = header[4];
    let single_segment = descriptor & 0x20 != 0;
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_bytes = match descriptor >> 6 {
        0 if single_segment => 1,
        0 => 0,
        flag => 1u64 << flag,
    };
    take(u64::from(!single_segment) + dictionary_bytes + size_bytes, &mut header)?;
    let window = if single_segment {
        let digits = &header[header.len() - usize::try_from(size_bytes).unwrap_or(0)..];
        let size = digits.iter().rev().fold(0u64, |size, digit| size << 8 | u64::from(*digit));
        size + if size_bytes == 2 { 256 } else { 0 }
    } else {
        let base = 1u64 << (10 + (header[5] >> 3));
        base + base / 8 * u64::from(header[5] & 7)
    };
    if window > ZSTD_WINDOW_BYTES_MAX {
        let problem = format!(
            "needs a Zstandard window of {window} bytes; at most {ZSTD_WINDOW_BYTES_MAX} are allowed"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(header)
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the Zstandard stream is cut off")
}
