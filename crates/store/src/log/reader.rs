//! Reading a file frame by frame, with no more of it in memory than one frame.

use super::file::{self, FileHeader, FileKind};
use super::frame::{self, Frame};
use crate::disk::Disk;
use crate::open_error::OpenError;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

const READ_BUFFER_BYTES: usize = 64 << 10;

pub(crate) struct FrameReader {
    path: PathBuf,
    input: BufReader<Box<dyn Read>>,
    /// Where the frame begins that was read last, or could not be.
    offset: usize,
    /// That frame as it is in the file, as far as it could be read.
    raw: Vec<u8>,
}

pub(crate) enum Step {
    Frame(Frame),
    /// The bytes are not an intact frame.
    Unreadable,
    /// The file ends where a frame would begin.
    End,
}

impl FrameReader {
    /// Opens a file and checks its header.
    pub(crate) fn open(
        disk: &dyn Disk,
        dir: &Path,
        kind: FileKind,
        revision: u64,
    ) -> Result<(FileHeader, Self), OpenError> {
        let path = kind.path(dir, revision);
        let input =
            BufReader::with_capacity(READ_BUFFER_BYTES, disk.read(&path).map_err(OpenError::io(&path))?);
        let mut reader = Self { path, input, offset: 0, raw: Vec::new() };
        reader.fill(file::HEADER_BYTES)?;
        let header = FileHeader::decode(kind, revision, &reader.path, &reader.raw)?;
        Ok((header, reader))
    }

    pub(crate) fn next(&mut self) -> Result<Step, OpenError> {
        self.offset += self.raw.len();
        self.raw.clear();
        self.fill(frame::HEADER_BYTES)?;
        if self.raw.is_empty() {
            return Ok(Step::End);
        }
        let Some(frame) = Frame::parse(&self.raw) else { return Ok(Step::Unreadable) };
        self.fill(frame::HEADER_BYTES + frame.body_len())?;
        let whole = self.body().len() == frame.body_len() && frame.fits(self.body());
        Ok(if whole { Step::Frame(frame) } else { Step::Unreadable })
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.raw[frame::HEADER_BYTES..]
    }

    pub(crate) fn head(&self) -> &[u8] {
        &self.raw[..frame::HEADER_BYTES]
    }

    /// Everything from the frame read last to the end of the file.
    pub(crate) fn rest(mut self) -> Result<Vec<u8>, OpenError> {
        self.input.read_to_end(&mut self.raw).map_err(OpenError::io(&self.path))?;
        Ok(self.raw)
    }

    /// Damage at the frame read last.
    pub(crate) fn corrupt(&self, what: impl Into<String>) -> OpenError {
        OpenError::corrupt(&self.path, self.offset, what)
    }

    /// Reads on until `raw` has this length, or the file ends.
    fn fill(&mut self, len: usize) -> Result<(), OpenError> {
        let missing = len.saturating_sub(self.raw.len()) as u64;
        let read = (&mut self.input).take(missing).read_to_end(&mut self.raw);
        read.map(drop).map_err(OpenError::io(&self.path))
    }
}
