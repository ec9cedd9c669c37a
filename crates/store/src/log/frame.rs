//! Frames: the checked unit in which the log is written and read.
//!
//! A frame is one batch, so a torn batch is dropped as a whole. Its header has a checksum of its own, so that
//! the length can be trusted before the body is read, and records the revision up to which everything was
//! durable when it was written. This distinguishes damage from a torn end: what a later frame records as durable
//! must be readable, whereas unsynced frames at the end may be missing in any order.

pub(crate) const HEADER_BYTES: usize = 48;
/// Has bytes that UTF-8 never has, so it cannot occur in an object.
const MAGIC: [u8; 4] = [0xFF, b'T', b'F', 0xFE];
/// Far above the size of any batch; a larger length is damage, and no memory is allocated for it.
const MAX_BODY_BYTES: u32 = 256 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Consecutive revisions starting at `revision`.
    Batch = 1,
    /// The revisions up to `revision` are not used, because they may have been seen before a crash.
    Skip = 2,
    /// Everything so far is durable; nothing else.
    Mark = 3,
    /// The same, and the store was closed after it.
    Seal = 4,
    /// Some of the objects of a snapshot.
    Objects = 5,
    /// The last frame of a snapshot.
    End = 6,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) revision: u64,
    pub(crate) count: u32,
    /// Every revision up to this one was durable when this frame was written.
    pub(crate) durable: u64,
    /// When, in milliseconds since the Unix epoch.
    pub(crate) at: u64,
    /// These two are known when the frame is finished.
    pub(crate) len: u32,
    pub(crate) crc: u32,
}

impl Frame {
    pub(crate) fn new(kind: Kind, revision: u64) -> Self {
        Self { kind, revision, count: 0, durable: 0, at: 0, len: 0, crc: 0 }
    }

    /// Makes room for a header; the body goes behind it, then comes [`Frame::finish`].
    pub(crate) fn start(out: &mut Vec<u8>) -> usize {
        let start = out.len();
        out.resize(start + HEADER_BYTES, 0);
        start
    }

    /// Completes the frame that began at `start` and reaches to the end of `out`.
    pub(crate) fn finish(mut self, out: &mut [u8], start: usize) {
        let (header, body) = out[start..].split_at_mut(HEADER_BYTES);
        self.len = u32::try_from(body.len()).unwrap_or(u32::MAX);
        self.crc = crc32c::crc32c(body);
        header[0..4].copy_from_slice(&MAGIC);
        header[4] = self.kind as u8;
        header[8..12].copy_from_slice(&self.len.to_le_bytes());
        header[12..16].copy_from_slice(&self.count.to_le_bytes());
        header[16..24].copy_from_slice(&self.revision.to_le_bytes());
        header[24..32].copy_from_slice(&self.durable.to_le_bytes());
        header[32..40].copy_from_slice(&self.at.to_le_bytes());
        header[40..44].copy_from_slice(&self.crc.to_le_bytes());
        let crc = crc32c::crc32c(&header[..44]);
        header[44..48].copy_from_slice(&crc.to_le_bytes());
    }

    pub(crate) fn body_len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn fits(&self, body: &[u8]) -> bool {
        crc32c::crc32c(body) == self.crc
    }

    /// The last revision of this frame.
    pub(crate) fn last(&self) -> u64 {
        match self.kind {
            Kind::Batch => (self.revision + u64::from(self.count)).saturating_sub(1),
            _ => self.revision,
        }
    }

    /// The header at the beginning of `bytes`, if there is an intact one.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let u32_at = |at: usize| header[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let u64_at = |at: usize| header[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        if header[..4] != MAGIC || crc32c::crc32c(&header[..44]) != u32_at(44) {
            return None;
        }
        let kind = match header[4] {
            1 => Kind::Batch,
            2 => Kind::Skip,
            3 => Kind::Mark,
            4 => Kind::Seal,
            5 => Kind::Objects,
            6 => Kind::End,
            _ => return None,
        };
        let (len, count) = (u32_at(8), u32_at(12));
        let (revision, durable, at, crc) = (u64_at(16), u64_at(24), u64_at(32), u32_at(40));
        (len <= MAX_BODY_BYTES).then_some(Self { kind, revision, count, durable, at, len, crc })
    }

    /// All intact headers from `offset` on, wherever they begin.
    pub(crate) fn scan(bytes: &[u8], offset: usize) -> impl Iterator<Item = Self> {
        let bytes = bytes.get(offset..).unwrap_or_default();
        let candidates = bytes.iter().enumerate().filter(|(_, byte)| **byte == MAGIC[0]);
        candidates.filter_map(|(at, _)| Self::parse(&bytes[at..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut out = b"before".to_vec();
        let start = Frame::start(&mut out);
        out.extend_from_slice(b"body");
        let frame = Frame { count: 3, durable: 6, at: 9, ..Frame::new(Kind::Batch, 7) };
        frame.finish(&mut out, start);
        out
    }

    fn is_intact(bytes: &[u8]) -> bool {
        Frame::parse(bytes).is_some_and(|frame| frame.fits(&bytes[HEADER_BYTES..]))
    }

    #[test]
    fn a_frame_reads_back() {
        let bytes = sample();
        let frame = Frame::parse(&bytes[6..]).unwrap();
        assert_eq!((frame.kind, frame.revision, frame.last(), frame.durable), (Kind::Batch, 7, 9, 6));
        assert_eq!(frame.body_len(), 4);
        assert!(is_intact(&bytes[6..]));
        assert_eq!(Frame::scan(&bytes, 0).collect::<Vec<_>>(), [frame]);
    }

    #[test]
    fn any_changed_bit_and_any_cut_is_noticed() {
        let bytes = &sample()[6..];
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.to_vec();
                changed[at] ^= 1 << bit;
                // Three bytes are reserved, yet under the checksum like the others.
                assert!(!is_intact(&changed), "byte {at} bit {bit}");
            }
            assert!(!is_intact(&bytes[..at]));
        }
    }
}
