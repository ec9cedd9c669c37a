//! Snapshot files: every object as of one revision, so that the log before it is not needed.

use super::codec::{Decoder, put_object};
use super::file::{FileHeader, FileKind};
use super::frame::{self, Frame, Kind};
use super::reader::{FrameReader, Step};
use crate::disk::{Disk, DiskFile};
use crate::open_error::OpenError;
use crate::state::State;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Objects are framed in chunks of about this size.
const CHUNK_BYTES: usize = 256 << 10;
/// Bytes that are written before they are synced. File systems that order data before metadata make a sync of the log
/// wait for whatever else is unwritten: that must never be a whole snapshot.
const MAX_UNSYNCED_BYTES: usize = 1 << 20;

/// Writes the objects as they were at `header.revision`, which the history of `state` must reach.
pub(crate) fn write(disk: &dyn Disk, dir: &Path, header: FileHeader, state: &State) -> io::Result<()> {
    header.create(disk, dir, |file| {
        let buffer = Vec::new();
        let mut chunks = Chunks { file, buffer, start: 0, count: 0, total: 0, unsynced: 0, crc: 0, header };
        for name in state.resources.keys() {
            let objects = state.snapshot_at(name, header.revision).map_err(io::Error::other)?.objects;
            for (object, entry) in &objects {
                chunks.begin();
                put_object(&mut chunks.buffer, name, object, entry);
                chunks.count += 1;
                if chunks.buffer.len() >= CHUNK_BYTES {
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
    unsynced: usize,
    /// Over the headers of all frames, each of which has the checksum of its body.
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
        self.crc = crc32c::crc32c_append(self.crc, &self.buffer[..frame::HEADER_BYTES]);
        self.total += u64::from(self.count);
        self.file.write_all(&self.buffer)?;
        self.unsynced += self.buffer.len();
        if self.unsynced >= MAX_UNSYNCED_BYTES {
            self.file.sync()?;
            self.unsynced = 0;
        }
        self.buffer.clear();
        self.count = 0;
        Ok(())
    }

    fn end(mut self) -> io::Result<()> {
        self.begin();
        self.buffer.extend_from_slice(&summary(self.total, self.crc));
        self.finish(Kind::End)
    }
}

/// Loads the snapshot of `revision` into `state`, and returns the id of the store it belongs to. After an error the state
/// holds what came before the damage.
pub(crate) fn read(disk: &dyn Disk, dir: &Path, revision: u64, state: &mut State) -> Result<u128, OpenError> {
    let (header, mut reader) = FrameReader::open(disk, dir, FileKind::Snapshot, revision)?;
    let (mut total, mut crc) = (0, 0);
    loop {
        let frame = match reader.next()? {
            Step::Frame(frame) => frame,
            Step::Unreadable => return Err(reader.corrupt("a frame's checksum is wrong")),
            Step::End => return Err(reader.corrupt("the file is cut short")),
        };
        match frame.kind {
            Kind::Objects => {
                let mut objects = Decoder::new(reader.body());
                while !objects.is_empty() {
                    let (key, entry) = objects.object().map_err(|malformed| reader.corrupt(malformed.0))?;
                    state.load(key, Arc::new(entry));
                    total += 1;
                }
            }
            Kind::End if *reader.body() == summary(total, crc) => return Ok(header.store),
            Kind::End => return Err(reader.corrupt("the snapshot is not complete")),
            _ => return Err(reader.corrupt("a frame that does not belong here")),
        }
        crc = crc32c::crc32c_append(crc, reader.head());
    }
}

/// The content of the last frame: how many objects there are, and a checksum over the headers of all frames.
fn summary(total: u64, crc: u32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&total.to_le_bytes());
    bytes[8..].copy_from_slice(&crc.to_le_bytes());
    bytes
}
