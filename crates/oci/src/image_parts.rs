//! An image as its parts: what is pushed to a registry or written to a bundle.

use crate::failure::invalid;
use crate::image::{
    Descriptor, Document, ImageConfig, ImagePlatform, Index, MANIFEST_BYTES_MAX, ManifestError, media_type,
};
use crate::source::{Blob, ImageSource, Part, RawManifest};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use transom_packages::{Credentials, Digest, Reference, RegistryError};

/// An image as its parts.
#[derive(Clone, Debug)]
pub struct ImageParts {
    /// The digest of the manifest.
    pub digest: Digest,
    /// The media type of the manifest.
    pub media_type: String,
    /// The manifest.
    pub manifest: Bytes,
    /// Configuration and layers, each once.
    pub blobs: Vec<(Descriptor, Part)>,
}

impl ImageParts {
    /// An image of a manifest and its blobs.
    pub fn new(media_type: &str, manifest: Bytes, blobs: Vec<(Descriptor, Part)>) -> Self {
        Self { digest: Digest::of(&manifest), media_type: media_type.to_owned(), manifest, blobs }
    }

    /// The descriptor of the manifest.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::new(&self.media_type, self.manifest.len() as u64, self.digest.clone())
    }

    /// A blob by digest.
    pub fn part(&self, digest: &Digest) -> Option<&Part> {
        self.blobs.iter().find(|(descriptor, _)| descriptor.digest == *digest).map(|(_, part)| part)
    }
}

/// An index of images for several platforms: each image with its platform from its configuration.
pub fn index_of(images: &[(ImageParts, ImageConfig)], annotations: BTreeMap<String, String>) -> Index {
    let manifests = images.iter().map(|(image, config)| Descriptor {
        platform: Some(ImagePlatform {
            architecture: config.architecture.clone(),
            os: config.os.clone(),
            os_version: config.os_version.clone(),
            other: BTreeMap::new(),
        }),
        ..image.descriptor()
    });
    Index {
        schema_version: 2,
        media_type: media_type::OCI_INDEX.to_owned(),
        manifests: manifests.collect(),
        annotations,
        other: BTreeMap::new(),
    }
}

/// A source that returns one image for every reference.
#[async_trait]
impl ImageSource for ImageParts {
    async fn manifest(&self, reference: &Reference, _: &[Credentials]) -> Result<RawManifest, RegistryError> {
        if reference.digest.as_ref().is_some_and(|digest| *digest != self.digest) {
            return Err(crate::failure::not_found(reference, "the image has another digest"));
        }
        if self.manifest.len() as u64 > MANIFEST_BYTES_MAX {
            return Err(invalid(reference, "the manifest is larger than 4 MiB, which is refused"));
        }
        let (digest, media_type, bytes) =
            (self.digest.clone(), self.media_type.clone(), self.manifest.clone());
        Ok(RawManifest { digest, media_type, bytes })
    }

    async fn blob(
        &self,
        reference: &Reference,
        descriptor: &Descriptor,
        _: &[Credentials],
    ) -> Result<Blob, RegistryError> {
        match self.part(&descriptor.digest) {
            Some(part) => part.open(reference.to_string(), descriptor).await,
            None => Err(crate::failure::not_found(reference, format_args!("no blob {}", descriptor.digest))),
        }
    }
}

/// Everything that a manifest or index refers to, from the lowest: the blobs of an image, or the manifests of an index.
pub fn references(manifest: &[u8]) -> Result<Vec<Descriptor>, ManifestError> {
    Ok(match Document::parse(manifest)? {
        Document::Manifest(manifest) => std::iter::once(manifest.config).chain(manifest.layers).collect(),
        Document::Index(index) => index.manifests,
    })
}
