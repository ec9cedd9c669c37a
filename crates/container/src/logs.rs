//! What a container prints, in two files of bounded size: when the current file is full it replaces the previous one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The size at which a file is full.
const FILE_BYTES_MAX: u64 = 2 << 20;
/// How much of the end is kept in memory, for messages.
const TAIL_BYTES: usize = 2 << 10;
/// How many of the last lines are in messages.
const TAIL_LINES: usize = 5;

/// The log of a container.
pub struct LogFile {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<File>,
    bytes: u64,
    tail: Vec<u8>,
}

impl LogFile {
    /// The log at a path. Nothing is written yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends what a container printed. A log that cannot be written does not stop the container.
    pub fn append(&self, bytes: &[u8]) {
        let mut state = self.state();
        state.tail.extend_from_slice(bytes);
        let excess = state.tail.len().saturating_sub(TAIL_BYTES);
        state.tail.drain(..excess);
        if let Err(error) = state.write(&self.path, bytes) {
            tracing::debug!(%error, log = %self.path.display(), "the log of a container cannot be written");
            state.file = None;
        }
    }

    /// Forgets the last lines: a new container begins.
    pub(crate) fn begin(&self) {
        self.state().tail.clear();
    }

    /// The last lines that the container printed, if any.
    pub fn last_lines(&self) -> Option<String> {
        let state = self.state();
        let text = String::from_utf8_lossy(&state.tail);
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        let lines: Vec<String> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| line.chars().map(printable).collect())
            .collect();
        let last = lines.get(lines.len().saturating_sub(TAIL_LINES)..).unwrap_or_default();
        (!last.is_empty()).then(|| last.join(" | "))
    }
}

impl State {
    fn write(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if self.bytes >= FILE_BYTES_MAX {
            self.file = None;
            fs::rename(path, full(path))?;
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder)?;
                }
                let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
                self.bytes = file.metadata()?.len();
                self.file.insert(file)
            }
        };
        self.bytes += bytes.len() as u64;
        file.write_all(bytes)
    }
}

/// The second file of a log.
fn full(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Reads a log from its beginning, and what is appended later.
pub struct LogReader {
    path: PathBuf,
    /// The file that is read, and how far.
    current: Option<(File, u64)>,
    begun: bool,
}

impl LogReader {
    /// A reader of the log at a path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), current: None, begun: false }
    }

    /// What was appended since the last call, for a writer. Blocks.
    pub fn copy_to(&mut self, writer: &mut dyn Write) -> io::Result<u64> {
        let mut copied = 0;
        if !self.begun {
            self.begun = true;
            if let Ok(mut file) = File::open(full(&self.path)) {
                copied += io::copy(&mut file, writer)?;
            }
        }
        if let Some((file, position)) = &mut self.current {
            copied += copy_from(file, position, writer)?;
        }
        let newest = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(copied),
            Err(error) => return Err(error),
        };
        let inode = |file: &File| file.metadata().map(|found| found.ino());
        let same = match &self.current {
            Some((file, _)) => inode(file)? == inode(&newest)?,
            None => false,
        };
        if !same {
            let mut position = 0;
            let mut newest = newest;
            copied += copy_from(&mut newest, &mut position, writer)?;
            self.current = Some((newest, position));
        }
        Ok(copied)
    }
}

fn copy_from(file: &mut File, position: &mut u64, writer: &mut dyn Write) -> io::Result<u64> {
    file.seek(SeekFrom::Start(*position))?;
    let copied = io::copy(file, writer)?;
    *position += copied;
    Ok(copied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_bounded_and_followed_across_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs/function.log");
        let log = LogFile::new(&path);
        log.append(b"first\n");
        let mut reader = LogReader::new(&path);
        let mut seen = Vec::new();
        reader.copy_to(&mut seen).unwrap();
        assert_eq!(seen, b"first\n");
        let chunk = vec![b'x'; 64 << 10];
        for _ in 0..200 {
            log.append(&chunk);
        }
        log.append(b"\nlast one\nlast two\n");
        let size = |path: &Path| fs::metadata(path).unwrap().len();
        assert!(size(&path) <= FILE_BYTES_MAX + chunk.len() as u64);
        assert!(size(&full(&path)) <= FILE_BYTES_MAX + chunk.len() as u64);
        seen.clear();
        reader.copy_to(&mut seen).unwrap();
        assert!(seen.ends_with(b"last one\nlast two\n"));
        assert!(log.last_lines().unwrap().ends_with("last one | last two"));
        log.begin();
        assert_eq!(log.last_lines(), None);
    }
}
