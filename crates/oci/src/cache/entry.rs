//! One entry of the cache as a file.

use super::{Index, Known};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use transom_packages::Digest;

/// What an unfinished file's name begins with.
const UNFINISHED: &str = ".new-";
/// The first line of an entry has at most this many bytes.
const LABEL_BYTES_MAX: u64 = 1000;

/// The first line of an entry.
#[derive(Serialize, Deserialize)]
struct Label {
    /// The digest of the package's image.
    package: String,
    /// The digest of `package.yaml`.
    content: String,
    /// The length of `package.yaml` in bytes.
    length: u64,
}

fn damaged(problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// An entry as bytes.
pub(super) fn encode(package: &Digest, content: &[u8]) -> io::Result<Vec<u8>> {
    let label = Label {
        package: package.to_string(),
        content: Digest::of(content).to_string(),
        length: content.len() as u64,
    };
    let mut bytes = serde_json::to_vec(&label)?;
    bytes.push(b'\n');
    let mut encoder = GzEncoder::new(bytes, Compression::fast());
    encoder.write_all(content)?;
    encoder.finish()
}

/// Reads an entry. What is damaged is an error of the kind `InvalidData`.
pub(super) fn read(path: &Path, package: &Digest) -> io::Result<Bytes> {
    let mut file = BufReader::new(File::open(path)?);
    let mut line = Vec::new();
    (&mut file).take(LABEL_BYTES_MAX).read_until(b'\n', &mut line)?;
    let label: Label = serde_json::from_slice(&line).map_err(damaged)?;
    if label.package != package.as_str() {
        return Err(damaged("the entry is of another package"));
    }
    let mut content = Vec::new();
    // One byte more than stated, so that an excess is noticed and no more is read.
    GzDecoder::new(file).take(label.length.saturating_add(1)).read_to_end(&mut content).map_err(damaged)?;
    if content.len() as u64 != label.length || Digest::of(&content).as_str() != label.content {
        return Err(damaged("the content does not have its digest"));
    }
    Ok(content.into())
}

/// Writes an entry so that it is complete or absent, even after a crash.
pub(super) fn write(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let unfinished = folder.join(format!("{UNFINISHED}{}-{count}", std::process::id()));
    let written = File::create(&unfinished).and_then(|mut file| {
        file.write_all(bytes)?;
        // The file system's own times are coarser, and would order this before earlier uses of others.
        file.set_modified(SystemTime::now())?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| std::fs::rename(&unfinished, path));
    if let Err(error) = renamed {
        // The first error is the one to report.
        drop(std::fs::remove_file(&unfinished));
        return Err(error);
    }
    File::open(folder)?.sync_all()
}

/// What is in a folder, the longest unused first. Unfinished files are removed.
pub(super) fn scan(folder: &Path) -> io::Result<Index> {
    std::fs::create_dir_all(folder)?;
    let mut found: Vec<(SystemTime, String, u64)> = Vec::new();
    for item in std::fs::read_dir(folder)? {
        let item = item?;
        let name = item.file_name().to_string_lossy().into_owned();
        if name.starts_with(UNFINISHED) {
            std::fs::remove_file(item.path())?;
        } else if Digest::parse(&format!("sha256:{name}")).is_ok() {
            let metadata = item.metadata()?;
            found.push((metadata.modified()?, name, metadata.len()));
        }
    }
    found.sort();
    let mut index = Index::default();
    for (_, name, bytes) in found {
        index.uses += 1;
        index.bytes += bytes;
        index.entries.insert(name, Known { bytes, used: index.uses });
    }
    Ok(index)
}
