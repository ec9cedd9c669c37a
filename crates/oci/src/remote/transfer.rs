//! Progress of the transfer of blobs, reported to a listener.

use crate::image::Descriptor;
use crate::source::Chunks;
use async_trait::async_trait;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use transom_packages::{Digest, RegistryError};

/// How far a blob is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The digest of the blob.
    pub digest: Digest,
    /// How many bytes were transferred.
    pub bytes: u64,
    /// How many bytes it has.
    pub size: u64,
    /// Whether it is on its way to the registry.
    pub upload: bool,
}

type Listener = dyn Fn(&Transfer) + Send + Sync;

/// Called with the progress of each transfer. The default ignores it.
#[derive(Clone, Default)]
pub struct TransferListener(Option<Arc<Listener>>);

impl fmt::Debug for TransferListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "TransferListener" } else { "None" })
    }
}

impl TransferListener {
    /// Calls this for every piece.
    pub fn new(listener: impl Fn(&Transfer) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// What is to be called with the length of every piece that is sent.
    pub(super) fn upload(&self, descriptor: &Descriptor) -> impl FnMut(usize) + Send + use<> {
        self.count(descriptor, true)
    }

    fn count(&self, descriptor: &Descriptor, upload: bool) -> impl FnMut(usize) + Send + use<> {
        let listener = self.0.clone();
        let mut transfer =
            Transfer { digest: descriptor.digest.clone(), bytes: 0, size: descriptor.size, upload };
        move |length| {
            transfer.bytes += length as u64;
            if let Some(listener) = &listener {
                listener(&transfer);
            }
        }
    }

    /// The pieces of a blob, counted.
    pub(super) fn download(&self, descriptor: &Descriptor, chunks: Box<dyn Chunks>) -> Box<dyn Chunks> {
        match &self.0 {
            None => chunks,
            Some(_) => Box::new(Counted { chunks, count: Box::new(self.count(descriptor, false)) }),
        }
    }
}

struct Counted {
    chunks: Box<dyn Chunks>,
    count: Box<dyn FnMut(usize) + Send>,
}

#[async_trait]
impl Chunks for Counted {
    async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        let chunk = self.chunks.next().await?;
        if let Some(chunk) = &chunk {
            (self.count)(chunk.len());
        }
        Ok(chunk)
    }
}
