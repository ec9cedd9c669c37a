//! What a place with images can do: return manifests, blobs and tags. `package` finds packages through this, whether
//! the place is a registry, a folder or a file.

use crate::failure::{chain, invalid, unavailable};
use crate::image::{Descriptor, Document};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use sha2::{Digest as _, Sha256};
use std::path::PathBuf;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt};
use transom_packages::{Credentials, Digest, Reference, RegistryError, RegistryErrorKind};

/// A place with images.
#[async_trait]
pub trait ImageSource: Send + Sync + 'static {
    /// The manifest or index at a reference. With a digest in the reference, the bytes are verified against it.
    async fn manifest(
        &self,
        reference: &Reference,
        with: &[Credentials],
    ) -> Result<RawManifest, RegistryError>;

    /// A blob of the reference's repository. It is verified while it is read.
    async fn blob(
        &self,
        reference: &Reference,
        descriptor: &Descriptor,
        with: &[Credentials],
    ) -> Result<Blob, RegistryError>;

    /// The manifests that refer to a digest: signatures, attestations. A place without an index of them has a list at
    /// a tag that is made of the digest.
    async fn referrers(
        &self,
        reference: &Reference,
        digest: &Digest,
        with: &[Credentials],
    ) -> Result<Vec<Descriptor>, RegistryError> {
        tagged_referrers(self, reference, digest, with).await
    }

    /// Whether a reference is read from this machine, so that reading it asks no registry.
    fn is_local(&self, _reference: &Reference) -> bool {
        false
    }
}

/// The manifests that refer to a digest, from the list at the tag that is made of the digest.
pub(crate) async fn tagged_referrers<S: ImageSource + ?Sized>(
    source: &S,
    reference: &Reference,
    digest: &Digest,
    with: &[Credentials],
) -> Result<Vec<Descriptor>, RegistryError> {
    let tag = Some(format!("sha256-{}", digest.hex()));
    let list = Reference { tag, digest: None, ..reference.clone() };
    let raw = match source.manifest(&list, with).await {
        Err(error) if error.kind == RegistryErrorKind::NotFound => return Ok(Vec::new()),
        result => result?,
    };
    match Document::parse(&raw.bytes).map_err(|problem| invalid(&list, chain(&problem)))? {
        Document::Index(index) => Ok(index.manifests),
        Document::Manifest(_) => Ok(Vec::new()),
    }
}

/// A manifest or index as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawManifest {
    /// The digest of the bytes.
    pub digest: Digest,
    /// What the place says that it is.
    pub media_type: String,
    /// The bytes.
    pub bytes: Bytes,
}

/// Where the bytes of a blob come from, piece by piece.
#[async_trait]
pub trait Chunks: Send {
    /// The next piece, or nothing at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, RegistryError>;
}

/// The content of a descriptor, verified while it is read: the end is only reached without an error if length and
/// digest are those of the descriptor.
pub struct Blob {
    chunks: Box<dyn Chunks>,
    subject: String,
    expected: Digest,
    size: u64,
    read: u64,
    hasher: Sha256,
    verified: bool,
}

impl Blob {
    /// The blob of a descriptor. The subject begins the messages of errors.
    pub fn new(subject: String, descriptor: &Descriptor, chunks: Box<dyn Chunks>) -> Self {
        let (expected, size) = (descriptor.digest.clone(), descriptor.size);
        Self { chunks, subject, expected, size, read: 0, hasher: Sha256::new(), verified: false }
    }

    /// The next piece, or nothing at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        if self.verified {
            return Ok(None);
        }
        if let Some(chunk) = self.chunks.next().await? {
            self.read += chunk.len() as u64;
            if self.read > self.size {
                return Err(
                    self.invalid(format_args!("has more than the {} bytes of its descriptor", self.size))
                );
            }
            self.hasher.update(&chunk);
            return Ok(Some(chunk));
        }
        if self.read != self.size {
            return Err(self.invalid(format_args!("has {} bytes, not {}", self.read, self.size)));
        }
        let found = Digest::finish(std::mem::take(&mut self.hasher));
        if found != self.expected {
            return Err(
                self.invalid(format_args!("its content has the digest {found}; it was damaged or replaced"))
            );
        }
        self.verified = true;
        Ok(None)
    }

    /// Whether the end was reached, so that length and digest are verified.
    pub fn is_verified(&self) -> bool {
        self.verified
    }

    /// The whole content, if it is not larger than allowed.
    pub async fn bytes(mut self, bytes_max: u64) -> Result<Bytes, RegistryError> {
        if self.size > bytes_max {
            return Err(
                self.invalid(format_args!("has {} bytes; at most {bytes_max} are allowed", self.size))
            );
        }
        let mut all = BytesMut::new();
        while let Some(chunk) = self.next().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    }

    /// Writes the whole content. What was written must not be used if this fails.
    pub async fn copy_to(
        mut self,
        writer: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<(), RegistryError> {
        while let Some(chunk) = self.next().await? {
            let written = writer.write_all(&chunk).await;
            written
                .map_err(|error| unavailable(&self.subject, format_args!("cannot be written: {error}")))?;
        }
        Ok(())
    }

    fn invalid(&self, problem: std::fmt::Arguments<'_>) -> RegistryError {
        invalid(format_args!("{}: blob {}", self.subject, self.expected), problem)
    }
}

/// Where the content of a blob is.
#[derive(Clone, Debug)]
pub enum Part {
    /// In memory.
    Bytes(Bytes),
    /// A part of a file.
    File {
        /// The file.
        path: PathBuf,
        /// Where it begins.
        offset: u64,
        /// Its length in bytes.
        length: u64,
    },
}

impl Part {
    /// The content as a blob of a descriptor.
    pub async fn open(&self, subject: String, descriptor: &Descriptor) -> Result<Blob, RegistryError> {
        let chunks: Box<dyn Chunks> = match self {
            Self::Bytes(bytes) => Box::new(Once(Some(bytes.clone()))),
            Self::File { path, offset, length } => {
                let opened = async {
                    let mut file = tokio::fs::File::open(path).await?;
                    file.seek(std::io::SeekFrom::Start(*offset)).await?;
                    Ok(file)
                };
                let file = opened.await.map_err(|error| crate::failure::file(path, "be read", &error))?;
                Box::new(FileChunks { file, remaining: *length, path: path.clone() })
            }
        };
        Ok(Blob::new(subject, descriptor, chunks))
    }
}

struct Once(Option<Bytes>);

#[async_trait]
impl Chunks for Once {
    async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        Ok(self.0.take().filter(|bytes| !bytes.is_empty()))
    }
}

struct FileChunks {
    file: tokio::fs::File,
    remaining: u64,
    path: PathBuf,
}

#[async_trait]
impl Chunks for FileChunks {
    async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        const CHUNK_BYTES: u64 = 128 << 10;
        let wanted = self.remaining.min(CHUNK_BYTES);
        if wanted == 0 {
            return Ok(None);
        }
        let mut chunk = BytesMut::with_capacity(usize::try_from(wanted).unwrap_or(usize::MAX));
        let read = (&mut self.file).take(wanted).read_buf(&mut chunk).await;
        let read = read.map_err(|error| crate::failure::file(&self.path, "be read", &error))?;
        self.remaining -= read as u64;
        Ok((read > 0).then(|| chunk.freeze()))
    }
}
