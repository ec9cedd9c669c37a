//! What survives restarts, crashes, bad disks and damaged files.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../contract/fixture.rs"]
#[expect(dead_code, reason = "shared with the contract, which uses all of it")]
mod fixture;

mod bad_disk;
mod damage;
mod restart;

use std::path::Path;

/// The directory as a crash would leave it at this moment: its files, but not their lock.
fn crash_image(dir: &Path) -> tempfile::TempDir {
    let image = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), image.path().join(entry.file_name())).unwrap();
        }
    }
    image
}

/// The files whose names end like this, in order.
fn files(dir: &Path, suffix: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        entries.filter(|path| path.to_string_lossy().ends_with(suffix) && path.is_file()).collect();
    found.sort();
    found
}
