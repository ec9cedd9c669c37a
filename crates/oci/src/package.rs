//! From a reference to `package.yaml`: the manifest or index, the platform, the layer.

use crate::failure::{chain, invalid};
use crate::image::{
    BASE_LAYER, CONFIG_BYTES_MAX, Descriptor, Document, ImageConfig, Index, LAYER_ANNOTATION, Manifest,
    ManifestError, media_type,
};
use crate::layer::{self, Hidden, LayerLimits, LayerRole, Searched};
use crate::source::{Blob, ImageSource};
use bytes::{Buf, Bytes};
use std::io::{self, Read};
use tokio::sync::mpsc;
use transom_packages::{Credentials, Fetched, Reference, RegistryError, RegistryErrorKind};

/// The most layers that are searched for a package.
const LAYERS_MAX: usize = 1000;
/// The architecture whose image is read for `package.yaml`, which does not depend on the platform.
pub(crate) const PACKAGE_ARCHITECTURE: &str = "amd64";
/// How often a blob is read again that ended too early.
const BLOB_ATTEMPTS: u32 = 3;

/// The package at a reference. Everything is verified against the digest of the manifest or index, which is the
/// package's; with a digest in the reference, that one.
pub async fn fetch(
    source: &dyn ImageSource,
    reference: &Reference,
    with: &[Credentials],
    limits: LayerLimits,
) -> Result<Fetched, RegistryError> {
    let (digest, manifest) = image(source, reference, with).await?;
    let place = LayerSource { source, reference, with, limits };
    let content = match base_layer(&place, &manifest).await? {
        Some(layer) => place.search(layer, LayerRole::Base, Hidden::default()).await?.package,
        None => scan(&place, &manifest).await?,
    };
    match content {
        Some(content) => Ok(Fetched { digest, content: content.into() }),
        None => Err(invalid(reference, "no layer has a package.yaml; is this image a Crossplane package?")),
    }
}

/// The digest of a reference, and the manifest of the image that holds its package.
pub async fn image(
    source: &dyn ImageSource,
    reference: &Reference,
    with: &[Credentials],
) -> Result<(transom_packages::Digest, Manifest), RegistryError> {
    image_for(source, reference, with, PACKAGE_ARCHITECTURE).await
}

/// The digest of a reference, and the manifest of its image for an architecture of Linux.
pub(crate) async fn image_for(
    source: &dyn ImageSource,
    reference: &Reference,
    with: &[Credentials],
    architecture: &str,
) -> Result<(transom_packages::Digest, Manifest), RegistryError> {
    let raw = source.manifest(reference, with).await?;
    let wrong = |problem: ManifestError| {
        invalid(reference, format_args!("the manifest {} {}", raw.digest, chain(&problem)))
    };
    let index = match Document::parse(&raw.bytes).map_err(wrong)? {
        Document::Manifest(manifest) => return Ok((raw.digest, manifest)),
        Document::Index(index) => index,
    };
    let chosen = choose(&index, architecture).map_err(|problem| invalid(reference, problem))?;
    let image = source.manifest(&reference.at(chosen.digest.clone()), with).await?;
    let wrong = |problem: &str| invalid(reference, format_args!("the manifest {} {problem}", image.digest));
    if image.bytes.len() as u64 != chosen.size {
        return Err(wrong(&format!("has {} bytes; the index has {}", image.bytes.len(), chosen.size)));
    }
    match Document::parse(&image.bytes).map_err(|problem| wrong(&chain(&problem)))? {
        Document::Manifest(manifest) => Ok((raw.digest, manifest)),
        Document::Index(_) => Err(wrong("is an index within an index, which is refused")),
    }
}

/// The image for an architecture of Linux, or the only one.
pub(crate) fn choose<'i>(index: &'i Index, architecture: &str) -> Result<&'i Descriptor, String> {
    let is_index =
        |d: &&Descriptor| matches!(&*d.media_type, media_type::OCI_INDEX | media_type::DOCKER_INDEX);
    if index.manifests.iter().any(|d| is_index(&d)) {
        return Err("is an index of indexes, which is refused; push an index of images".to_owned());
    }
    let platform = |d: &Descriptor| d.platform.clone().unwrap_or_default();
    let is_preferred =
        |d: &&Descriptor| platform(d).os == "linux" && platform(d).architecture == architecture;
    if let Some(preferred) = index.manifests.iter().find(is_preferred) {
        return Ok(preferred);
    }
    // Builders add attestations to an index as images of an unknown platform.
    let is_image = |d: &&Descriptor| platform(d).os != "unknown";
    let mut images = index.manifests.iter().filter(is_image);
    match (images.next(), images.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err("the index has no images".to_owned()),
        _ => {
            let names = index.manifests.iter().filter(is_image).take(10);
            let names: Vec<String> =
                names.map(|d| format!("{}/{}", platform(d).os, platform(d).architecture)).collect();
            Err(format!("the index has no image for linux/{architecture}, only for {}", names.join(", ")))
        }
    }
}

/// The layer that is marked as the package's: by its annotation, or, if a tool dropped annotations, by a label of the
/// configuration.
async fn base_layer<'m>(
    place: &LayerSource<'_>,
    manifest: &'m Manifest,
) -> Result<Option<&'m Descriptor>, RegistryError> {
    let annotated =
        |layer: &&Descriptor| layer.annotations.get(LAYER_ANNOTATION).is_some_and(|v| v == BASE_LAYER);
    if let Some(layer) = manifest.layers.iter().find(annotated) {
        return Ok(Some(layer));
    }
    if !matches!(&*manifest.config.media_type, media_type::OCI_CONFIG | media_type::DOCKER_CONFIG) {
        return Ok(None);
    }
    let config = place.config(&manifest.config).await?;
    Ok(manifest.layers.iter().find(|layer| config.layer_label(&layer.digest) == Some(BASE_LAYER)))
}

/// Searches all layers from the highest, whose files hide those below.
async fn scan(place: &LayerSource<'_>, manifest: &Manifest) -> Result<Option<Vec<u8>>, RegistryError> {
    if manifest.layers.len() > LAYERS_MAX {
        let problem = format!("has {} layers; at most {LAYERS_MAX} are searched", manifest.layers.len());
        return Err(invalid(place.reference, problem));
    }
    let mut hidden = Hidden::default();
    for layer in manifest.layers.iter().rev() {
        let Searched { package, hides } = place.search(layer, LayerRole::Any, hidden.clone()).await?;
        if package.is_some() {
            return Ok(package);
        }
        let subject = format!("{}: layer {}", place.reference, layer.digest);
        hidden.extend(hides).map_err(|problem| invalid(subject, problem))?;
    }
    Ok(None)
}

/// Where the layers of a package come from.
pub(crate) struct LayerSource<'a> {
    pub(crate) source: &'a dyn ImageSource,
    pub(crate) reference: &'a Reference,
    pub(crate) with: &'a [Credentials],
    pub(crate) limits: LayerLimits,
}

impl LayerSource<'_> {
    pub(crate) async fn config(&self, descriptor: &Descriptor) -> Result<ImageConfig, RegistryError> {
        let mut attempt = 1;
        let bytes = loop {
            let blob = self.source.blob(self.reference, descriptor, self.with).await?;
            match blob.bytes(CONFIG_BYTES_MAX).await {
                Err(error) if retryable(&error, attempt) => attempt += 1,
                result => break result?,
            }
        };
        let subject = format_args!("{}: configuration {}", self.reference, descriptor.digest);
        serde_json::from_slice(&bytes)
            .map_err(|error| invalid(subject, format_args!("is malformed: {error}")))
    }

    async fn search(
        &self,
        descriptor: &Descriptor,
        role: LayerRole,
        hidden: Hidden,
    ) -> Result<Searched, RegistryError> {
        let mut attempt = 1;
        loop {
            let blob = self.source.blob(self.reference, descriptor, self.with).await?;
            match self.search_once(blob, descriptor, role, hidden.clone()).await {
                Err(error) if retryable(&error, attempt) => attempt += 1,
                result => return result,
            }
        }
    }

    async fn search_once(
        &self,
        blob: Blob,
        descriptor: &Descriptor,
        role: LayerRole,
        hidden: Hidden,
    ) -> Result<Searched, RegistryError> {
        let limits = self.limits;
        let subject = format!("{}: layer {}", self.reference, descriptor.digest);
        feed(blob, &subject, move |pieces| layer::search(pieces, role, &hidden, limits)).await
    }
}

/// Feeds a blob to a reader on a thread that may block, a few pieces ahead at most. The result is that of the reader if
/// the whole blob was read and verified.
pub(crate) async fn feed<T: Send + 'static>(
    mut blob: Blob,
    subject: &str,
    read: impl FnOnce(Pieces) -> Result<T, String> + Send + 'static,
) -> Result<T, RegistryError> {
    const PIECES_AHEAD: usize = 4;
    let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
    let reading = tokio::task::spawn_blocking(move || read(Pieces { receiver, current: Bytes::new() }));
    let mut failed = None;
    loop {
        let piece = match blob.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(error) => {
                failed = Some(error);
                break;
            }
        };
        // When the reader has ended early, it says why.
        if sender.send(piece).await.is_err() {
            break;
        }
    }
    drop(sender);
    let result = reading.await.map_err(|error| invalid(subject, format_args!("cannot be read: {error}")))?;
    if let Some(error) = failed {
        return Err(error);
    }
    let result = result.map_err(|problem| invalid(subject, problem))?;
    if blob.is_verified() { Ok(result) } else { Err(invalid(subject, "was not read to its end")) }
}

pub(crate) fn retryable(error: &RegistryError, attempt: u32) -> bool {
    error.kind == RegistryErrorKind::Unavailable && attempt < BLOB_ATTEMPTS
}

/// Pieces of a blob as a reader that blocks.
pub(crate) struct Pieces {
    receiver: mpsc::Receiver<Bytes>,
    current: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.receiver.blocking_recv() {
                Some(piece) => self.current = piece,
                None => return Ok(0),
            }
        }
        let count = self.current.len().min(buffer.len());
        self.current.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}
