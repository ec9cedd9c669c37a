//! The audit log as a file. A file that is full is kept under a number, and the oldest one is removed, so that the disk does not
//! fill up.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that is followed by a new one when it is full.
pub struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
    kept: usize,
}

impl LogFile {
    /// Opens or creates it; only its owner can read it. `kept` full files stay, as FILE.1, FILE.2 and so on.
    pub fn open(path: PathBuf, max_bytes: u64, kept: usize) -> io::Result<Self> {
        let file = append_to(&path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path, file, bytes, max_bytes, kept })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one line, into a new file if this one would become too large.
    pub fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + line.len() as u64 > self.max_bytes {
            self.rotate()?;
        }
        self.file.write_all(line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// FILE becomes FILE.1, FILE.1 becomes FILE.2, and so on; the oldest is replaced.
    fn rotate(&mut self) -> io::Result<()> {
        let numbered = |number: usize| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        for number in (1..self.kept).rev() {
            match fs::rename(numbered(number), numbered(number + 1)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        if self.kept == 0 {
            fs::remove_file(&self.path)?;
        } else {
            fs::rename(&self.path, numbered(1))?;
        }
        self.file = append_to(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_files_are_kept_by_number_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let mut log = LogFile::open(path.clone(), 10, 2).unwrap();
        for line in ["one....\n", "two....\n", "three..\n", "four...\n"] {
            log.append(line.as_bytes()).unwrap();
        }
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap_or_default();
        assert_eq!((read("audit.log"), read("audit.log.1")), ("four...\n".into(), "three..\n".into()));
        assert_eq!((read("audit.log.2"), read("audit.log.3")), ("two....\n".into(), String::new()));
        let again = LogFile::open(path, 10, 2).unwrap();
        assert_eq!(again.bytes, 8, "what is there counts after a restart");
    }
}
