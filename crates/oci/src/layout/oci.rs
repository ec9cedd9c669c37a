//! An OCI layout: a folder, or a tar archive of one, which is read in place.

use super::{LocalPackage, REF_NAME, ROOT, full_name, tag_of};
use crate::failure::{chain, file, invalid};
use crate::image::{Descriptor, Document, Index, MANIFEST_BYTES_MAX};
use crate::layer::tar::{EntryKind, TarReader};
use crate::source::{Part, RawManifest};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use transom_packages::{Digest, Reference, RegistryError};

/// The largest `index.json`, in bytes: a bundle may have many images.
const INDEX_BYTES_MAX: u64 = 64 << 20;

/// An OCI layout.
pub(super) struct Layout {
    path: PathBuf,
    index: Index,
    blobs: Blobs,
}

enum Blobs {
    /// Files of a folder.
    Folder(PathBuf),
    /// Parts of an archive: where each begins, and its length.
    Archive(BTreeMap<String, (u64, u64)>),
}

impl Layout {
    pub(super) fn open_folder(path: &Path) -> Result<Self, RegistryError> {
        let index_path = path.join("index.json");
        let read = |path: &Path| -> std::io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            File::open(path)?.take(INDEX_BYTES_MAX).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read(&index_path).map_err(|error| file(&index_path, "be read", &error))?;
        let index = parse_index(path, &bytes)?;
        Ok(Self { path: path.to_owned(), index, blobs: Blobs::Folder(path.join("blobs/sha256")) })
    }

    /// Opens an archive, if it is one of an OCI layout.
    pub(super) fn open_archive(path: &Path) -> Result<Option<Self>, RegistryError> {
        let archive = File::open(path).map_err(|error| file(path, "be opened", &error))?;
        let mut reader = TarReader::new(BufReader::with_capacity(1 << 20, archive));
        let (mut index, mut entries) = (None, BTreeMap::new());
        let mut docker = false;
        while let Some(entry) = reader.next().map_err(|error| invalid(path.display(), error))? {
            let name = entry.path.trim_start_matches("./");
            if entry.kind != EntryKind::File {
                continue;
            }
            docker |= name == "manifest.json";
            if let Some(hex) = name.strip_prefix("blobs/sha256/") {
                entries.insert(hex.to_owned(), (entry.offset, entry.size));
            } else if name == "index.json" {
                if entry.size > INDEX_BYTES_MAX {
                    return Err(invalid(
                        path.display(),
                        "index.json is larger than 64 MiB, which is refused",
                    ));
                }
                let mut bytes = Vec::new();
                reader.read_to_end(&mut bytes).map_err(|error| file(path, "be read", &error))?;
                index = Some(bytes);
            }
        }
        // What Docker saves now is both; its own list knows the references.
        let Some(index) = index.filter(|_| !docker) else { return Ok(None) };
        let index = parse_index(path, &index)?;
        Ok(Some(Self { path: path.to_owned(), index, blobs: Blobs::Archive(entries) }))
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.index.manifests.iter().filter_map(name).map(str::to_owned).collect()
    }

    pub(super) fn packages(&self) -> Vec<LocalPackage> {
        let package = |manifest: &Descriptor| {
            let reference = name(manifest).and_then(|name| Reference::parse(name).ok());
            let tag = reference.as_ref().and_then(|reference| reference.tag.as_deref());
            // Signatures and attestations have tags that are made of the digest of what they are about.
            let is_package = !tag.or(name(manifest)).is_some_and(|tag| tag.starts_with("sha256-"));
            let root = manifest.annotations.contains_key(ROOT);
            let digest = manifest.digest.clone();
            is_package.then_some(LocalPackage { digest, reference, stem: None, root })
        };
        self.index.manifests.iter().filter_map(package).collect()
    }

    /// The manifest of a reference: by digest among the blobs, by tag in the index.
    pub(super) async fn manifest(&self, reference: &Reference) -> Result<Option<RawManifest>, RegistryError> {
        let digest = match &reference.digest {
            Some(digest) => digest.clone(),
            None => match self.by_tag(reference) {
                Some(descriptor) => descriptor.digest.clone(),
                None => return Ok(None),
            },
        };
        let Some(part) = self.part(&digest) else { return Ok(None) };
        let Part::File { length, .. } = part else { return Ok(None) };
        let descriptor = Descriptor::new("", length, digest.clone());
        let subject = format!("{reference} in {}", self.path.display());
        let bytes = part.open(subject.clone(), &descriptor).await?.bytes(MANIFEST_BYTES_MAX).await?;
        let media_type =
            match Document::parse(&bytes).map_err(|problem| invalid(&subject, chain(&problem)))? {
                Document::Manifest(manifest) => manifest.media_type,
                Document::Index(index) => index.media_type,
            };
        Ok(Some(RawManifest { digest, media_type, bytes }))
    }

    fn by_tag(&self, reference: &Reference) -> Option<&Descriptor> {
        let full = full_name(reference);
        let tag = reference.tag.as_deref().unwrap_or("latest");
        let find = |wanted: &str| self.index.manifests.iter().find(|manifest| name(manifest) == Some(wanted));
        find(&full).or_else(|| find(tag))
    }

    pub(super) fn tags(&self, reference: &Reference) -> Vec<String> {
        let source = reference.source();
        let tag = |name: &str| match tag_of(name, &source) {
            Some(tag) => Some(tag.to_owned()),
            None => (!name.contains('/')).then(|| name.to_owned()),
        };
        self.index.manifests.iter().filter_map(name).filter_map(tag).collect()
    }

    pub(super) fn part(&self, digest: &Digest) -> Option<Part> {
        match &self.blobs {
            Blobs::Folder(folder) => {
                let path = folder.join(digest.hex());
                let length = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?.len();
                Some(Part::File { path, offset: 0, length })
            }
            Blobs::Archive(entries) => {
                let (offset, length) = *entries.get(digest.hex())?;
                Some(Part::File { path: self.path.clone(), offset, length })
            }
        }
    }
}

fn parse_index(path: &Path, bytes: &[u8]) -> Result<Index, RegistryError> {
    match Document::parse(bytes) {
        Ok(Document::Index(index)) => Ok(index),
        Ok(Document::Manifest(_)) => Err(invalid(path.display(), "index.json is a manifest, not an index")),
        Err(problem) => Err(invalid(path.display(), format_args!("index.json {}", chain(&problem)))),
    }
}

/// What an image is called: containerd has an annotation of its own, with the full name.
fn name(manifest: &Descriptor) -> Option<&str> {
    let annotation = |key: &str| manifest.annotations.get(key).map(String::as_str);
    annotation("io.containerd.image.name").or_else(|| annotation(REF_NAME))
}
