//! Writes a bundle: a tar archive of an OCI layout, so that other tools read it as well. Blobs come first, the index
//! last; the file has its name only when it is complete.

use super::{REF_NAME, ROOT, full_name};
use crate::failure::{chain, file, invalid};
use crate::image::{Descriptor, Document, Index, ManifestError, media_type};
use crate::image_parts::references;
use crate::layer::tar::{BLOCK_BYTES, go_header, padding};
use crate::source::{ImageSource, RawManifest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncWriteExt, BufWriter};
use transom_packages::{Credentials, Digest, Reference, RegistryError, RegistryErrorKind};

/// Writes a bundle. Without [`BundleWriter::finish`], nothing remains.
pub struct BundleWriter {
    path: PathBuf,
    unfinished: PathBuf,
    archive: BufWriter<tokio::fs::File>,
    written: BTreeSet<Digest>,
    index: BTreeMap<String, Descriptor>,
    finished: bool,
}

impl Drop for BundleWriter {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing can be done about an error here.
            drop(std::fs::remove_file(&self.unfinished));
        }
    }
}

impl BundleWriter {
    /// Begins a bundle.
    pub async fn create(path: &Path) -> Result<Self, RegistryError> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".new-{}", std::process::id()));
        let unfinished = path.with_file_name(name);
        let archive = tokio::fs::File::create(&unfinished).await;
        let archive = archive.map_err(|error| file(path, "be written", &error))?;
        let mut writer = Self {
            path: path.to_owned(),
            unfinished,
            archive: BufWriter::with_capacity(1 << 20, archive),
            written: BTreeSet::new(),
            index: BTreeMap::new(),
            finished: false,
        };
        writer.entry("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#).await?;
        Ok(writer)
    }

    /// Adds the image or index at a reference with all that it consists of, under the reference's tag (`latest`
    /// without one; a reference with both is added at its digest under its tag). Returns its digest.
    pub async fn add(
        &mut self,
        source: &dyn ImageSource,
        reference: &Reference,
        with: &[Credentials],
    ) -> Result<Digest, RegistryError> {
        let manifest = source.manifest(reference, with).await?;
        self.add_manifest(source, reference, &manifest, with).await?;
        let name = name_of(reference);
        // The media type in an index must be the one that the manifest has.
        let (declared, default) =
            match Document::parse(&manifest.bytes).map_err(|problem| invalid(reference, chain(&problem)))? {
                Document::Index(index) => (index.media_type, media_type::OCI_INDEX),
                Document::Manifest(image) => (image.media_type, media_type::OCI_MANIFEST),
            };
        let media_type = if declared.is_empty() { default } else { &declared };
        let mut descriptor =
            Descriptor::new(media_type, manifest.bytes.len() as u64, manifest.digest.clone());
        descriptor.annotations.insert(REF_NAME.to_owned(), name.clone());
        self.index.insert(name, descriptor);
        Ok(manifest.digest)
    }

    /// Marks what was added under a reference as what the bundle is made for: this is installed from it, with what it
    /// depends on.
    pub fn mark_root(&mut self, reference: &Reference) {
        if let Some(descriptor) = self.index.get_mut(&name_of(reference)) {
            descriptor.annotations.insert(ROOT.to_owned(), "true".to_owned());
        }
    }

    /// Adds the signatures and attestations of a digest, at tags and as referrers, where there are any. Returns how
    /// many were found.
    pub async fn add_signatures(
        &mut self,
        source: &dyn ImageSource,
        reference: &Reference,
        digest: &Digest,
        with: &[Credentials],
    ) -> Result<usize, RegistryError> {
        let mut found = 0;
        for kind in ["sig", "att", "sbom"] {
            let tag = Some(format!("sha256-{}.{kind}", digest.hex()));
            let signature = Reference { tag, digest: None, ..reference.clone() };
            match self.add(source, &signature, with).await {
                Ok(_) => found += 1,
                Err(error) if error.kind == RegistryErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found + self.add_referrers(source, reference, digest, with).await?)
    }

    /// Adds what refers to a digest, with a list of it at the tag where readers look without an API.
    async fn add_referrers(
        &mut self,
        source: &dyn ImageSource,
        reference: &Reference,
        digest: &Digest,
        with: &[Credentials],
    ) -> Result<usize, RegistryError> {
        let referrers = source.referrers(reference, digest, with).await?;
        if referrers.is_empty() {
            return Ok(0);
        }
        for referrer in &referrers {
            let manifest = source.manifest(&reference.at(referrer.digest.clone()), with).await?;
            self.add_manifest(source, reference, &manifest, with).await?;
        }
        let found = referrers.len();
        let list = index_of(referrers);
        let bytes = serde_json::to_vec(&list).map_err(|error| invalid(reference, error))?;
        let mut descriptor = Descriptor::of(media_type::OCI_INDEX, &bytes);
        if self.written.insert(descriptor.digest.clone()) {
            self.entry(&blob_name(&descriptor.digest), &bytes).await?;
        }
        let name = format!("{}:sha256-{}", reference.source(), digest.hex());
        descriptor.annotations.insert(REF_NAME.to_owned(), name.clone());
        self.index.insert(name, descriptor);
        Ok(found)
    }

    async fn add_manifest(
        &mut self,
        source: &dyn ImageSource,
        reference: &Reference,
        manifest: &RawManifest,
        with: &[Credentials],
    ) -> Result<(), RegistryError> {
        if self.written.contains(&manifest.digest) {
            return Ok(());
        }
        let wrong = |problem: ManifestError| invalid(reference, chain(&problem));
        let is_index = matches!(Document::parse(&manifest.bytes).map_err(wrong)?, Document::Index(_));
        for descriptor in references(&manifest.bytes).map_err(wrong)? {
            if is_index {
                let image = source.manifest(&reference.at(descriptor.digest.clone()), with).await?;
                if matches!(Document::parse(&image.bytes).map_err(wrong)?, Document::Index(_)) {
                    return Err(invalid(reference, "is an index of indexes, which is refused"));
                }
                Box::pin(self.add_manifest(source, reference, &image, with)).await?;
            } else {
                self.add_blob(source, reference, &descriptor, with).await?;
            }
        }
        self.entry(&blob_name(&manifest.digest), &manifest.bytes).await?;
        self.written.insert(manifest.digest.clone());
        Ok(())
    }

    async fn add_blob(
        &mut self,
        source: &dyn ImageSource,
        reference: &Reference,
        descriptor: &Descriptor,
        with: &[Credentials],
    ) -> Result<(), RegistryError> {
        if !self.written.insert(descriptor.digest.clone()) {
            return Ok(());
        }
        let header = go_header(&blob_name(&descriptor.digest), descriptor.size);
        let header = header.map_err(|error| invalid(reference, error))?;
        let blob = source.blob(reference, descriptor, with).await?;
        self.bytes(&header).await?;
        // A blob that fails half-way makes the whole bundle fail: its header promised the length.
        blob.copy_to(&mut self.archive).await?;
        self.bytes(padding(descriptor.size)).await
    }

    async fn entry(&mut self, name: &str, content: &[u8]) -> Result<(), RegistryError> {
        let header = go_header(name, content.len() as u64).map_err(|error| invalid(name, error))?;
        self.bytes(&header).await?;
        self.bytes(content).await?;
        self.bytes(padding(content.len() as u64)).await
    }

    async fn bytes(&mut self, bytes: &[u8]) -> Result<(), RegistryError> {
        self.archive.write_all(bytes).await.map_err(|error| file(&self.path, "be written", &error))
    }

    /// Writes the index and gives the file its name.
    pub async fn finish(mut self) -> Result<(), RegistryError> {
        let index = index_of(std::mem::take(&mut self.index).into_values().collect());
        let index = serde_json::to_vec(&index).map_err(|error| invalid(self.path.display(), error))?;
        self.entry("index.json", &index).await?;
        self.bytes(&[0; 2 * BLOCK_BYTES]).await?;
        let ended = async {
            self.archive.flush().await?;
            self.archive.get_ref().sync_all().await?;
            tokio::fs::rename(&self.unfinished, &self.path).await
        };
        ended.await.map_err(|error| file(&self.path, "be written", &error))?;
        self.finished = true;
        Ok(())
    }
}

fn index_of(manifests: Vec<Descriptor>) -> Index {
    Index {
        schema_version: 2,
        media_type: media_type::OCI_INDEX.to_owned(),
        manifests,
        annotations: BTreeMap::new(),
        other: BTreeMap::new(),
    }
}

/// What an image is called in the index.
fn name_of(reference: &Reference) -> String {
    match (&reference.tag, &reference.digest) {
        (None, Some(digest)) => format!("{}@{digest}", reference.source()),
        _ => full_name(reference),
    }
}

fn blob_name(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}
