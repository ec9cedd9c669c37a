//! Why a directory could not be opened.

use std::io;
use std::path::{Path, PathBuf};

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the store open.
    #[error("{} is in use by another process{}", dir.display(), by.map(|pid| format!(" ({pid})")).unwrap_or_default())]
    Locked {
        /// The directory of the store.
        dir: PathBuf,
        /// The id of the process, if it is known.
        by: Option<u32>,
    },
    /// The files have a format that this version cannot read.
    #[error(
        "{} was written by a newer version (format {found}, this version reads {supported})",
        file.display()
    )]
    NewerFormat {
        /// The file with the newer format.
        file: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this version reads.
        supported: u32,
    },
    /// Something that was durable can no longer be read. Opening the store could lose more.
    #[error("{} is damaged at byte {offset}: {what}; {hint}", file.display())]
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What is wrong there.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// The file system failed.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn corrupt(file: &Path, offset: usize, what: impl Into<String>) -> Self {
        let dir = file.parent().unwrap_or(file).display();
        let hint = format!(
            "`transom db repair --data-dir {dir}` keeps everything up to there and sets the damaged files aside"
        );
        Self::Corrupt { file: file.to_owned(), offset: offset as u64, what: what.into(), hint }
    }

    /// Adds that the damaged file is not needed to open the store.
    pub(crate) fn mark_redundant(&mut self, dir: &Path) {
        if let Self::Corrupt { hint, .. } = self {
            let dir = dir.display();
            *hint = format!(
                "nothing is lost; `transom db repair --data-dir {dir}` writes the store anew and sets the damaged files aside"
            );
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}
