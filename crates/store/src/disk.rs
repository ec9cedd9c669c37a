//! The file system operations that the log needs, as a trait so that tests can make them fail.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

/// A file system.
pub trait Disk: Debug + Send + Sync {
    /// The names of the files in a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// The content of a file.
    fn read(&self, path: &Path) -> io::Result<Box<dyn Read>>;
    /// An empty file; one that exists is truncated.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// A file to write to the end of.
    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Renames a file, replacing one that has the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// A file that is only written at its end.
pub trait DiskFile: Send {
    /// Writes some of `bytes` and returns how many.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Makes everything written durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file to its first `len` bytes.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}

impl dyn DiskFile + '_ {
    pub(crate) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The file system of the machine. Files are readable by their owner only: they hold Secrets.
#[derive(Clone, Copy, Debug)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            // The names of the log's files are ASCII; other files are ignored.
            if let Ok(name) = entry.file_name().into_string()
                && entry.file_type()?.is_file()
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(File::open(path)?))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(private().create(true).write(true).truncate(true).open(path)?))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().append(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // Directories cannot be opened as files elsewhere, and renames are durable in their own ways there.
        if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
    }
}

impl DiskFile for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}

/// Options that create files for their owner only.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
