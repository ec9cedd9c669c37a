//! What survives restarts, crashes, disks that fail and damaged files; and that damage which loses data is never passed over in
//! silence.

mod bad_disk;
mod copying;
mod damage;
mod restart;

use std::path::Path;

/// The directory as a crash would leave it at this moment: its files, but not their lock.
fn crash_image(dir: &Path) -> tempfile::TempDir {
    loop {
        match try_crash_image(dir) {
            Ok(image) => return image,
            // Compaction removed a file meanwhile: what was copied is not the state of one moment.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn try_crash_image(dir: &Path) -> std::io::Result<tempfile::TempDir> {
    let image = tempfile::tempdir()?;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), image.path().join(entry.file_name()))?;
        }
    }
    Ok(image)
}

/// The files whose names end like this, in order.
fn files(dir: &Path, suffix: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        entries.filter(|path| path.to_string_lossy().ends_with(suffix) && path.is_file()).collect();
    found.sort();
    found
}
