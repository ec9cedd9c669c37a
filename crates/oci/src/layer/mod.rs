//! One layer of an image, searched for `package.yaml` while it streams by. Nothing is written to disk; memory is
//! bounded by the size of `package.yaml` and the recorded whiteouts.
//!
//! A layer is hostile until proven otherwise: paths with `..`, an absolute `package.yaml`, links and devices of that
//! name, archives that expand too far, and headers that claim any size are refused with their reason.

mod decompress;
pub(crate) mod tar;

use std::collections::BTreeSet;
use std::io::{self, Read};
use tar::{Entry, EntryKind, TarReader};

/// The file that is looked for.
pub const PACKAGE_FILE: &str = "package.yaml";
/// The most bytes of paths that whiteouts may hide, in all layers of an image.
const HIDDEN_BYTES_MAX: usize = 16 << 20;

/// What a layer may expand to.
#[derive(Clone, Copy, Debug)]
pub struct LayerLimits {
    /// The largest `package.yaml`, in bytes.
    pub package_bytes: u64,
    /// The largest layer, uncompressed, in bytes.
    pub layer_bytes: u64,
    /// How many times its compressed size a layer may expand to.
    pub ratio: u64,
    /// How far a layer may expand before the ratio counts, in bytes.
    pub ratio_free_bytes: u64,
}

impl Default for LayerLimits {
    fn default() -> Self {
        Self { package_bytes: 200 << 20, layer_bytes: 8 << 30, ratio: 250, ratio_free_bytes: 16 << 20 }
    }
}

/// How a layer is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerRole {
    /// The layer is marked as the package's: it must have `package.yaml` and sound paths only.
    Base,
    /// Any layer of an image: its other files do not matter.
    Any,
}

/// Paths that layers above hide in the layers below.
#[derive(Clone, Debug, Default)]
pub struct Hidden {
    paths: BTreeSet<String>,
    bytes: usize,
}

impl Hidden {
    /// Whether a path, or a folder that it is in, is hidden.
    fn covers(&self, path: &str) -> bool {
        self.paths.contains("")
            || self.paths.contains(path)
            || path.match_indices('/').any(|(at, _)| self.paths.contains(&path[..at]))
    }

    fn insert(&mut self, path: String) -> Result<(), String> {
        self.bytes += path.len();
        if self.bytes > HIDDEN_BYTES_MAX {
            return Err(format!("hides more than {HIDDEN_BYTES_MAX} bytes of paths, which is refused"));
        }
        self.paths.insert(path);
        Ok(())
    }

    /// Adds what another layer hides. It is an error if that is more than an image may hide.
    pub(crate) fn extend(&mut self, other: Self) -> Result<(), String> {
        other.paths.into_iter().try_for_each(|path| self.insert(path))
    }
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub struct Searched {
    /// The content of `package.yaml`.
    pub package: Option<Vec<u8>>,
    /// What this layer hides in the layers below.
    pub hides: Hidden,
}

/// Searches a layer for `package.yaml`, unless the layers above hide it. Blocks. Reads to the end in any case, so
/// that the digest of the compressed bytes can be verified.
pub(crate) fn search<R: Read + Send + 'static>(
    layer: R,
    role: LayerRole,
    hidden: &Hidden,
    limits: LayerLimits,
) -> Result<Searched, String> {
    let (layer, rest) = shared(layer);
    let content = decompress::decompress(layer, limits).map_err(|error| error.to_string())?;
    let mut archive = TarReader::new(content);
    let mut found = Searched::default();
    while found.package.is_none() {
        let Some(entry) = archive.next().map_err(|error| error.to_string())? else { break };
        examine(&entry, role, &mut archive, hidden, limits, &mut found)?;
    }
    drop(archive);
    drain(rest).map_err(|error| error.to_string())?;
    if found.package.is_none() && role == LayerRole::Base {
        return Err(format!("has no {PACKAGE_FILE}, although it is marked as the package's layer"));
    }
    Ok(found)
}

/// Has every entry of a layer handled, in order. Blocks. Reads to the end in any case, so that the digest of the compressed
/// bytes can be verified.
#[cfg(target_os = "linux")]
pub(crate) fn each_entry<R: Read + Send + 'static>(
    layer: R,
    limits: LayerLimits,
    mut handle: impl FnMut(&Entry, &mut dyn Read) -> Result<(), String>,
) -> Result<(), String> {
    let (layer, rest) = shared(layer);
    let content = decompress::decompress(layer, limits).map_err(|error| error.to_string())?;
    let mut archive = TarReader::new(content);
    while let Some(entry) = archive.next().map_err(|error| error.to_string())? {
        handle(&entry, &mut archive)?;
    }
    drop(archive);
    drain(rest).map_err(|error| error.to_string())
}

fn examine(
    entry: &Entry,
    role: LayerRole,
    archive: &mut impl Read,
    hidden: &Hidden,
    limits: LayerLimits,
    found: &mut Searched,
) -> Result<(), String> {
    let path = entry.path.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or_default();
    if path.split('/').any(|part| part == "..") {
        return Err(format!("has the path {:?}, which leaves the image", display_path(path)));
    }
    let absolute = path.starts_with('/');
    if absolute && (role == LayerRole::Base || name == PACKAGE_FILE) {
        return Err(format!("has the absolute path {:?}", display_path(path)));
    }
    let normal = normal(path);
    if let Some(hides) = whiteout(&normal, name) {
        return found.hides.insert(hides);
    }
    if name != PACKAGE_FILE || entry.kind == EntryKind::Folder || hidden.covers(&normal) {
        return Ok(());
    }
    match entry.kind {
        EntryKind::File => {}
        EntryKind::HardLink | EntryKind::SymbolicLink => {
            return Err(format!("{normal} is a link; it must be a file"));
        }
        _ => return Err(format!("{normal} is a device or a special file; it must be a plain file")),
    }
    if entry.size > limits.package_bytes {
        let (size, most) = (entry.size, limits.package_bytes);
        return Err(format!("{normal} has {size} bytes; at most {most} are allowed"));
    }
    // The size in the header is not trusted with memory.
    let mut content = Vec::new();
    archive.take(entry.size).read_to_end(&mut content).map_err(|error| error.to_string())?;
    found.package = Some(content);
    Ok(())
}

/// The path that a whiteout hides: a file, or everything in a folder.
fn whiteout(path: &str, name: &str) -> Option<String> {
    let folder = path.strip_suffix(name).unwrap_or_default();
    match name.strip_prefix(".wh.")? {
        ".wh..opq" => Some(folder.trim_end_matches('/').to_owned()),
        hidden => Some(format!("{folder}{hidden}")),
    }
}

/// A path without empty parts and dots.
pub(crate) fn normal(path: &str) -> String {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect::<Vec<_>>().join("/")
}

/// At most 200 characters of a path, for messages.
pub(crate) fn display_path(path: &str) -> String {
    path.chars().take(200).collect()
}

/// A reader in two hands: the second reads what the first left.
fn shared<R: Read + Send>(inner: R) -> (Shared<R>, Shared<R>) {
    let inner = std::sync::Arc::new(std::sync::Mutex::new(inner));
    (Shared(std::sync::Arc::clone(&inner)), Shared(inner))
}

struct Shared<R>(std::sync::Arc<std::sync::Mutex<R>>);

impl<R: Read> Read for Shared<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut inner = self.0.lock().map_err(|_| io::Error::other("a reader failed"))?;
        inner.read(buffer)
    }
}

fn drain(mut rest: impl Read) -> io::Result<()> {
    io::copy(&mut rest, &mut io::sink()).map(drop)
}

#[cfg(test)]
mod tests;
