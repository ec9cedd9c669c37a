//! Snapshot files: every object as of one revision, so that the log before it is not needed.

use super::codec::{Decoder, put_object};
use super::file::{self, FileHeader, FileKind};
use super::frame::{self, Frame, Kind};
use crate::disk::{Disk, DiskFile};
use crate::open_error::OpenError;
use crate::state::State;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// Objects are framed in chunks of about this size.
const CHUNK: usize = 256 << 10;

/// Writes the objects as they were at `header.revision`, which the history of `state` must reach.
pub(crate) fn write(disk: &dyn Disk, dir: &Path, header: FileHeader, state: &State) -> io::Result<()> {
    header.create(disk, dir, |file| {
        let mut chunks = Chunks { file, buffer: Vec::new(), start: 0, count: 0, total: 0, crc: 0, header };
        for name in state.resources.keys() {
            let objects = state.snapshot_at(name, header.revision).map_err(io::Error::other)?.objects;
            for (object, entry) in &objects {
                chunks.begin();
                put_object(&mut chunks.buffer, name, object, entry);
                chunks.count += 1;
                if chunks.buffer.len() >= CHUNK {
                    chunks.finish(Kind::Objects)?;
                }
            }
        }
        if chunks.count > 0 {
            chunks.finish(Kind::Objects)?;
        }
        chunks.end()
    })
}

/// Gathers objects into frames, and sums up the frames for the last one.
struct Chunks<'a> {
    file: &'a mut dyn DiskFile,
    buffer: Vec<u8>,
    start: usize,
    count: u32,
    total: u64,
    /// Over the headers of all frames, each of which vouches for its body.
    crc: u32,
    header: FileHeader,
}

impl Chunks<'_> {
    fn begin(&mut self) {
        if self.buffer.is_empty() {
            self.start = Frame::start(&mut self.buffer);
        }
    }

    fn finish(&mut self, kind: Kind) -> io::Result<()> {
        let frame = Frame { count: self.count, ..Frame::new(kind, self.header.revision) };
        frame.finish(&mut self.buffer, self.start);
        self.crc = crc32c::crc32c_append(self.crc, &self.buffer[..frame::HEADER]);
        self.total += u64::from(self.count);
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        self.count = 0;
        Ok(())
    }

    fn end(mut self) -> io::Result<()> {
        self.begin();
        self.buffer.extend_from_slice(&self.total.to_le_bytes());
        self.buffer.extend_from_slice(&self.crc.to_le_bytes());
        self.finish(Kind::End)
    }
}

/// Loads the snapshot of `revision` into `state`, and gives the store it belongs to. After an error the state
/// holds what came before the damage.
pub(crate) fn read(disk: &dyn Disk, dir: &Path, revision: u64, state: &mut State) -> Result<u128, OpenError> {
    let path = &FileKind::Snapshot.path(dir, revision);
    let reader = BufReader::with_capacity(CHUNK, disk.read(path).map_err(OpenError::io(path))?);
    let mut input = Input { path, reader, offset: 0 };
    let header = FileHeader::decode(FileKind::Snapshot, revision, path, &input.take(file::HEADER)?)?;
    let (mut total, mut crc) = (0, 0);
    loop {
        let start = input.offset;
        let corrupt = |what: &str| OpenError::corrupt(path, start, what);
        let head = input.take(frame::HEADER)?;
        let frame = Frame::parse(&head).ok_or_else(|| corrupt("a frame header's checksum is wrong"))?;
        let body = input.take(frame.body_len())?;
        if !frame.fits(&body) {
            return Err(corrupt("a frame's checksum is wrong"));
        }
        match frame.kind {
            Kind::Objects => {
                let mut objects = Decoder::new(&body);
                while !objects.is_empty() {
                    let (key, entry) = objects.object().map_err(|malformed| corrupt(malformed.0))?;
                    state.load(key, Arc::new(entry));
                    total += 1;
                }
            }
            Kind::End if body == [&u64::to_le_bytes(total)[..], &u32::to_le_bytes(crc)[..]].concat() => {
                return Ok(header.store);
            }
            Kind::End => return Err(corrupt("the snapshot is not complete")),
            _ => return Err(corrupt("a frame that does not belong here")),
        }
        crc = crc32c::crc32c_append(crc, &head);
    }
}

struct Input<'a> {
    path: &'a Path,
    reader: BufReader<Box<dyn Read>>,
    offset: usize,
}

impl Input<'_> {
    fn take(&mut self, len: usize) -> Result<Vec<u8>, OpenError> {
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(len as u64).read_to_end(&mut bytes);
        if read.map_err(OpenError::io(self.path))? < len {
            return Err(OpenError::corrupt(self.path, self.offset, "the file is cut short"));
        }
        self.offset += len;
        Ok(bytes)
    }
}
