//! Packages on disk, by the full digest of their image: verified on every read, written whole or not at all, bounded.
//!
//! An entry is a file named by the digest, with a line that states the digest and length of `package.yaml`, and the
//! content compressed by gzip. It is written under another name, synced, and renamed; a crash leaves either nothing or
//! all of it. An entry that is damaged in any way is removed and counts as absent.

mod cached;
mod entry;

use crate::failure;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use transom_packages::{Digest, RegistryError};

pub use cached::{Cached, PullPolicy};

/// Packages on disk.
pub struct Cache {
    shared: Arc<Shared>,
}

struct Shared {
    folder: PathBuf,
    bytes_max: u64,
    index: Mutex<Index>,
}

#[derive(Default)]
struct Index {
    entries: BTreeMap<String, Known>,
    bytes: u64,
    uses: u64,
}

/// What is known of an entry: its size, and when it was last used (a number that grows).
struct Known {
    bytes: u64,
    used: u64,
}

impl Cache {
    /// Opens a folder, which is created if need be. Removes what an interrupted write left, and what exceeds the size.
    pub async fn open(folder: &Path, bytes_max: u64) -> Result<Self, RegistryError> {
        let folder = folder.to_owned();
        let shared = blocking(&folder.clone(), move || {
            let index = entry::scan(&folder)?;
            Ok(Shared { folder, bytes_max, index: Mutex::new(index) })
        })
        .await?;
        let cache = Self { shared: Arc::new(shared) };
        cache.on_disk(|shared| shared.evict(None)).await?;
        Ok(cache)
    }

    /// The package of a digest, if it is here and whole.
    pub async fn get(&self, digest: &Digest) -> Result<Option<Bytes>, RegistryError> {
        let digest = digest.clone();
        self.on_disk(move |shared| shared.get(&digest)).await
    }

    /// Keeps the package of a digest. Content that alone exceeds the cache's size is not kept.
    pub async fn put(&self, digest: &Digest, content: Bytes) -> Result<(), RegistryError> {
        let digest = digest.clone();
        self.on_disk(move |shared| shared.put(&digest, &content)).await
    }

    /// Whether the package of a digest is here, without reading it.
    pub fn contains(&self, digest: &Digest) -> bool {
        self.shared.index().entries.contains_key(digest.hex())
    }

    /// The bytes of all entries on disk.
    pub fn bytes(&self) -> u64 {
        self.shared.index().bytes
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, RegistryError> {
        let shared = Arc::clone(&self.shared);
        blocking(&self.shared.folder.clone(), move || work(&shared)).await
    }
}

async fn blocking<T: Send + 'static>(
    folder: &Path,
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, RegistryError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            let problem =
                format!("the package cache cannot be used: {error}; check its permissions and free space");
            Err(failure::unavailable(folder.display(), problem))
        }
        Err(error) => Err(failure::unavailable(folder.display(), error)),
    }
}

impl Shared {
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, hex: &str) -> PathBuf {
        self.folder.join(hex)
    }

    fn get(&self, digest: &Digest) -> std::io::Result<Option<Bytes>> {
        let path = self.path(digest.hex());
        let found = match entry::read(&path, digest) {
            Ok(content) => Some(content),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                tracing::warn!(package = %digest, %error, "a damaged entry of the package cache is removed");
                None
            }
            Err(error) => return Err(error),
        };
        match &found {
            Some(_) => self.used(digest, &path),
            None => self.remove(digest.hex())?,
        }
        Ok(found)
    }

    /// Notes that an entry was used: now in memory, and on disk for the next process.
    fn used(&self, digest: &Digest, path: &Path) {
        let mut index = self.index();
        index.uses += 1;
        let uses = index.uses;
        if let Some(known) = index.entries.get_mut(digest.hex()) {
            known.used = uses;
        }
        drop(index);
        let touched = std::fs::File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
        if let Err(error) = touched {
            tracing::debug!(%error, "the time of use of a cached package cannot be kept");
        }
    }

    fn put(&self, digest: &Digest, content: &Bytes) -> std::io::Result<()> {
        let encoded = entry::encode(digest, content)?;
        let bytes = encoded.len() as u64;
        if bytes > self.bytes_max {
            tracing::debug!(package = %digest, bytes, "a package is larger than the cache");
            return Ok(());
        }
        entry::write(&self.folder, &self.path(digest.hex()), &encoded)?;
        let mut index = self.index();
        index.uses += 1;
        let known = Known { bytes, used: index.uses };
        index.bytes += bytes;
        if let Some(replaced) = index.entries.insert(digest.hex().to_owned(), known) {
            index.bytes -= replaced.bytes;
        }
        drop(index);
        self.evict(Some(digest.hex()))
    }

    /// Removes the entries that were not used for the longest time, until the size fits.
    fn evict(&self, keep: Option<&str>) -> std::io::Result<()> {
        loop {
            let oldest = {
                let index = self.index();
                if index.bytes <= self.bytes_max {
                    return Ok(());
                }
                let others = index.entries.iter().filter(|(hex, _)| Some(hex.as_str()) != keep);
                others.min_by_key(|(_, known)| known.used).map(|(hex, _)| hex.clone())
            };
            match oldest {
                Some(hex) => self.remove(&hex)?,
                None => return Ok(()),
            }
        }
    }

    fn remove(&self, hex: &str) -> std::io::Result<()> {
        match std::fs::remove_file(self.path(hex)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut index = self.index();
        if let Some(removed) = index.entries.remove(hex) {
            index.bytes -= removed.bytes;
        }
        Ok(())
    }
}
