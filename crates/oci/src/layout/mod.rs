//! Folders and files in place of registries, with no network: an OCI layout, a bundle file (a tar archive of an OCI
//! layout), a folder of `*.xpkg` files, or one such file. Each answers for every registry that a reference names.
//!
//! | what | how a reference is found |
//! |---|---|
//! | OCI layout, bundle | `org.opencontainers.image.ref.name` in `index.json` is `REGISTRY/REPOSITORY:TAG`, or a tag alone, which then counts for every repository; a digest is looked up among the blobs |
//! | folder of `*.xpkg` | the references in the archive, or the path `REGISTRY/REPOSITORY/TAG.xpkg`, or the file name `NAME-TAG.xpkg`, where the name is the repository's last part, or all of it with `-` for `/` |
//!
//! The digest of an `.xpkg` file is that of the image that `xpkg push` would push.

mod bundle;
mod files;
mod oci;

use crate::failure::{file, invalid};
use crate::image::Descriptor;
use crate::layer::LayerLimits;
use crate::package;
use crate::source::{Blob, ImageSource, RawManifest};
use async_trait::async_trait;
use std::path::{Path, PathBuf};
use transom_packages::{Credentials, Digest, Fetched, Reference, Registry, RegistryError, RegistryErrorKind};

pub use bundle::BundleWriter;

/// The annotation that names an image in `index.json`.
const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// The annotation in `index.json` of the packages that a bundle was made for; the others are their dependencies.
const ROOT: &str = "transom.io/bundle-root";

/// A package in a folder or file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPackage {
    /// The digest of its manifest or index.
    pub digest: Digest,
    /// Its reference, if the place knows it.
    pub reference: Option<Reference>,
    /// The name of its file without the ending. A file of several packages names none of them.
    pub stem: Option<String>,
    /// Whether the bundle was made for it.
    pub root: bool,
}

impl LocalPackage {
    /// The tag that the name of its file has, if the file is named after this source.
    pub fn tag_for<'a>(&'a self, source: &Reference) -> Option<&'a str> {
        self.stem.as_ref().and_then(|stem| files::stem_tag(stem, source))
    }
}

/// A folder or file in place of a registry.
pub struct LocalRegistry {
    path: PathBuf,
    content: Content,
    limits: LayerLimits,
}

enum Content {
    Layout(oci::Layout),
    Files(files::Files),
}

impl LocalRegistry {
    /// Opens a folder or file of any of these kinds.
    pub async fn open(path: &Path, limits: LayerLimits) -> Result<Self, RegistryError> {
        let owned = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || open(&owned)).await;
        let content = opened.map_err(|error| invalid(path.display(), error))??;
        Ok(Self { path: path.to_owned(), content, limits })
    }

    /// All references that are here.
    pub fn references(&self) -> Vec<String> {
        match &self.content {
            Content::Layout(layout) => layout.names(),
            Content::Files(files) => files.names(),
        }
    }

    /// All packages that are here. Signatures and attestations are not packages.
    pub fn packages(&self) -> Vec<LocalPackage> {
        match &self.content {
            Content::Layout(layout) => layout.packages(),
            Content::Files(files) => files.packages(),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn missing(&self, reference: &Reference) -> RegistryError {
        crate::failure::not_found(reference, format_args!("it is not in {}", self.path.display()))
    }
}

fn open(path: &Path) -> Result<Content, RegistryError> {
    let metadata = std::fs::metadata(path).map_err(|error| file(path, "be opened", &error))?;
    if metadata.is_dir() {
        return if path.join("oci-layout").exists() {
            oci::Layout::open_folder(path).map(Content::Layout)
        } else {
            files::Files::open(path).map(Content::Files)
        };
    }
    match oci::Layout::open_archive(path)? {
        Some(layout) => Ok(Content::Layout(layout)),
        None => files::Files::open_one(path).map(Content::Files),
    }
}

#[async_trait]
impl ImageSource for LocalRegistry {
    async fn manifest(
        &self,
        reference: &Reference,
        with: &[Credentials],
    ) -> Result<RawManifest, RegistryError> {
        match &self.content {
            Content::Layout(layout) => match layout.manifest(reference).await? {
                Some(found) => Ok(found),
                None => Err(self.missing(reference)),
            },
            Content::Files(files) => match files.find(reference) {
                Some(image) => image.manifest(&reference.at(image.digest.clone()), with).await,
                None => Err(self.missing(reference)),
            },
        }
    }

    async fn blob(
        &self,
        reference: &Reference,
        descriptor: &Descriptor,
        _: &[Credentials],
    ) -> Result<Blob, RegistryError> {
        let part = match &self.content {
            Content::Layout(layout) => layout.part(&descriptor.digest),
            Content::Files(files) => files.part(&descriptor.digest).cloned(),
        };
        match part {
            Some(part) => part.open(format!("{reference} in {}", self.path.display()), descriptor).await,
            None => Err(crate::failure::not_found(
                reference,
                format_args!("the blob {} is not in {}", descriptor.digest, self.path.display()),
            )),
        }
    }

    fn is_local(&self, _reference: &Reference) -> bool {
        true
    }
}

#[async_trait]
impl Registry for LocalRegistry {
    async fn resolve(&self, reference: &Reference, with: &[Credentials]) -> Result<Digest, RegistryError> {
        match &reference.digest {
            Some(digest) => Ok(digest.clone()),
            None => Ok(self.manifest(reference, with).await?.digest),
        }
    }

    async fn fetch(&self, reference: &Reference, with: &[Credentials]) -> Result<Fetched, RegistryError> {
        package::fetch(self, reference, with, self.limits).await
    }

    /// What is in files is at hand.
    async fn at_hand(&self, reference: &Reference) -> Result<Option<Fetched>, RegistryError> {
        match self.fetch(reference, &[]).await {
            Err(error) if error.kind == RegistryErrorKind::NotFound => Ok(None),
            fetched => fetched.map(Some),
        }
    }

    async fn tags(&self, reference: &Reference, _: &[Credentials]) -> Result<Vec<String>, RegistryError> {
        let tags = match &self.content {
            Content::Layout(layout) => layout.tags(reference),
            Content::Files(files) => files.tags(reference),
        };
        if tags.is_empty() { Err(self.missing(reference)) } else { Ok(tags) }
    }
}

/// The tag of a full name, if it is of this repository.
fn tag_of<'a>(name: &'a str, source: &str) -> Option<&'a str> {
    name.strip_prefix(source)?.strip_prefix(':')
}

/// `REGISTRY/REPOSITORY:TAG` of a reference without a digest.
fn full_name(reference: &Reference) -> String {
    format!("{}:{}", reference.source(), reference.tag.as_deref().unwrap_or("latest"))
}
