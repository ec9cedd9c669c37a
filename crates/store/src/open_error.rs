//! Why a directory could not be opened.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{} is in use by another process{}", dir.display(), by.map(|pid| format!(" ({pid})")).unwrap_or_default())]
    Locked { dir: PathBuf, by: Option<u32> },
    #[error(
        "{} was written by a newer version (format {found}, this version reads {supported})",
        file.display()
    )]
    NewerFormat { file: PathBuf, found: u32, supported: u32 },
    /// Something that was durable can no longer be read. Not opening is the only way not to lose more.
    #[error("{} is damaged at byte {offset}: {what}; {hint}", file.display())]
    Corrupt { file: PathBuf, offset: u64, what: String, hint: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl OpenError {
    pub(crate) fn corrupt(file: &Path, offset: usize, what: impl Into<String>) -> Self {
        let dir = file.parent().unwrap_or(file).display();
        let hint = format!(
            "`transom db repair --data-dir {dir}` keeps everything up to there and sets the damaged files aside"
        );
        Self::Corrupt { file: file.to_owned(), offset: offset as u64, what: what.into(), hint }
    }

    /// Says that the damaged file is not needed to open the store.
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
