//! Pushing: blobs that the registry does not have yet, then manifests.

use super::http::{Body, Call, join, same_origin};
use super::{RemoteRegistry, access, candidates, identifier};
use crate::failure::{invalid, unavailable};
use crate::image::{Descriptor, Index};
use crate::image_parts::ImageParts;
use crate::source::{Blob, Part};
use ::http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use ::http::{Method, StatusCode, Uri};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use transom_packages::{Credentials, Digest, Reference, RegistryError};

/// How often the upload of a blob is begun at most: again only when sending the blob fails.
const UPLOAD_ATTEMPTS: u32 = 3;

/// What an upload has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The registry already had a blob.
    BlobExists {
        /// Its digest.
        digest: Digest,
        /// Its length in bytes.
        size: u64,
    },
    /// A blob was uploaded.
    BlobPushed {
        /// Its digest.
        digest: Digest,
        /// Its length in bytes.
        size: u64,
    },
    /// A manifest or index was stored.
    ManifestPushed(Digest),
}

/// Learns of the progress of an upload.
pub type ProgressListener<'a> = &'a (dyn Fn(Progress) + Send + Sync);

impl RemoteRegistry {
    /// Pushes an image to a reference: to its tag, or, without one, by digest. Returns the digest of the manifest.
    pub async fn push(
        &self,
        reference: &Reference,
        image: &ImageParts,
        with: &[Credentials],
        listener: ProgressListener<'_>,
    ) -> Result<Digest, RegistryError> {
        let push = async {
            self.push_blobs(reference, image, with, listener).await?;
            let target = if reference.tag.is_some() && reference.digest.is_none() {
                reference.clone()
            } else {
                reference.at(image.digest.clone())
            };
            self.push_manifest(&target, &image.media_type, &image.manifest, with, listener).await
        };
        self.within(reference, self.options().upload_deadline, push).await
    }

    /// Pushes images by digest, then an index of them to a reference: to its tag, or, without one, by digest. Returns the digest of the index.
    pub async fn push_index(
        &self,
        reference: &Reference,
        images: &[ImageParts],
        index: &Index,
        with: &[Credentials],
        listener: ProgressListener<'_>,
    ) -> Result<Digest, RegistryError> {
        for image in images {
            self.push(&reference.at(image.digest.clone()), image, with, listener).await?;
        }
        let bytes = serde_json::to_vec(index).map_err(|error| invalid(reference, error))?;
        let target = match reference.tag.is_some() && reference.digest.is_none() {
            true => reference.clone(),
            false => reference.at(Digest::of(&bytes)),
        };
        let push = self.push_manifest(&target, &index.media_type, &bytes, with, listener);
        self.within(reference, self.options().deadline, push).await
    }

    /// Stores a manifest or index. The reference's tag or digest names it.
    pub async fn push_manifest(
        &self,
        reference: &Reference,
        media_type: &str,
        bytes: &[u8],
        with: &[Credentials],
        listener: ProgressListener<'_>,
    ) -> Result<Digest, RegistryError> {
        let uri = self.address(reference, &format!("manifests/{}", identifier(reference)?)).await?;
        let mut call = Call::new(Method::PUT, uri).header(CONTENT_TYPE, media_type);
        call.body = Bytes::copy_from_slice(bytes);
        let answer = self.send(reference, true, call, with).await?;
        if !answer.status.is_success() {
            return Err(answer.failure(&reference.to_string(), "repository").await);
        }
        let digest = Digest::of(bytes);
        if let Some(stored) = super::content_digest(reference, &answer)?.filter(|stored| *stored != digest) {
            return Err(invalid(reference, format_args!("the registry stored {stored} instead of {digest}")));
        }
        listener(Progress::ManifestPushed(digest.clone()));
        Ok(digest)
    }

    async fn push_blobs(
        &self,
        reference: &Reference,
        image: &ImageParts,
        with: &[Credentials],
        listener: ProgressListener<'_>,
    ) -> Result<(), RegistryError> {
        for (descriptor, part) in &image.blobs {
            let (digest, size) = (descriptor.digest.clone(), descriptor.size);
            if self.has_blob(reference, descriptor, with).await? {
                listener(Progress::BlobExists { digest, size });
                continue;
            }
            // What begins an upload is sent again by itself: if it fails, the upload is not begun again.
            let upload = || async {
                match self.begin_upload(reference, descriptor, with).await {
                    Ok(call) => self.send_blob(reference, call, descriptor, part).await.map(Ok),
                    Err(error) => Ok(Err(error)),
                }
            };
            self.http.attempts.run(self.options(), UPLOAD_ATTEMPTS, upload).await??;
            listener(Progress::BlobPushed { digest, size });
        }
        Ok(())
    }

    async fn has_blob(
        &self,
        reference: &Reference,
        descriptor: &Descriptor,
        with: &[Credentials],
    ) -> Result<bool, RegistryError> {
        let uri = self.address(reference, &format!("blobs/{}", descriptor.digest)).await?;
        let answer = self.send(reference, true, Call::new(Method::HEAD, uri), with).await?;
        match answer.status {
            StatusCode::OK => Ok(true),
            StatusCode::NOT_FOUND => Ok(false),
            _ => Err(answer.failure(&reference.to_string(), "repository").await),
        }
    }

    /// Begins an upload. Returns the request that is to have the blob.
    async fn begin_upload(
        &self,
        reference: &Reference,
        descriptor: &Descriptor,
        with: &[Credentials],
    ) -> Result<Call, RegistryError> {
        let subject = subject(reference, descriptor);
        let begin = self.address(reference, "blobs/uploads/").await?;
        let call = Call::new(Method::POST, begin.clone()).header(CONTENT_LENGTH, "0");
        let answer = self.send(reference, true, call, with).await?;
        if answer.status != StatusCode::ACCEPTED {
            return Err(answer.failure(&subject, "repository").await);
        }
        let location = answer.headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.and_then(|location| join(&begin, location));
        let location =
            location.ok_or_else(|| invalid(&subject, "the registry names no address for the upload"))?;
        drop(answer);
        let target = with_digest(&location, &descriptor.digest)
            .ok_or_else(|| invalid(&subject, "the registry's address for the upload is not valid"))?;
        let mut call = Call::new(Method::PUT, target).header(CONTENT_TYPE, "application/octet-stream");
        if same_origin(&begin, &location) {
            let access = access(reference, true)?;
            let kept = self.machine.kept(&access);
            call.authorization = self.sessions.current(&access, &candidates(with, &kept, reference));
        }
        Ok(call)
    }

    /// Sends the whole blob in one request, which all registries accept.
    async fn send_blob(
        &self,
        reference: &Reference,
        call: Call,
        descriptor: &Descriptor,
        part: &Part,
    ) -> Result<(), RegistryError> {
        let subject = subject(reference, descriptor);
        let blob = part.open(subject.clone(), descriptor).await?;
        let options = self.options();
        let sent = options.transfers.upload(descriptor);
        let (body, feed) = stream(blob, descriptor.size, options.idle_timeout, &subject, sent);
        let (answer, fed) = tokio::join!(self.http.send_body(&subject, &call, body), feed);
        match (answer, fed) {
            (_, Err(error)) => Err(error),
            (Ok(answer), Ok(())) if answer.status.is_success() => Ok(()),
            (Ok(answer), Ok(())) => Err(answer.failure(&subject, "upload").await),
            (Err(error), Ok(())) => Err(error),
        }
    }
}

fn subject(reference: &Reference, descriptor: &Descriptor) -> String {
    format!("{reference}: blob {}", descriptor.digest)
}

fn with_digest(location: &Uri, digest: &Digest) -> Option<Uri> {
    let separator = if location.query().is_some() { '&' } else { '?' };
    format!("{location}{separator}digest={digest}").parse().ok()
}

/// A blob as the body of a request, and what feeds it. A server that stops reading ends it.
fn stream(
    mut blob: Blob,
    size: u64,
    idle: std::time::Duration,
    subject: &str,
    mut sent: impl FnMut(usize) + Send,
) -> (Body, impl Future<Output = Result<(), RegistryError>>) {
    let (sender, receiver) = mpsc::channel(4);
    let subject = subject.to_owned();
    let feed = async move {
        while let Some(piece) = blob.next().await? {
            let length = piece.len();
            match tokio::time::timeout(idle, sender.send(piece)).await {
                Ok(Ok(())) => sent(length),
                // The request ended: its answer says why.
                Ok(Err(_)) => return Ok(()),
                Err(_) => {
                    let problem = format!("the registry read nothing for {} s", idle.as_secs_f32());
                    return Err(unavailable(subject, problem));
                }
            }
        }
        Ok(())
    };
    (Upload { receiver, remaining: size }.boxed_unsync(), feed)
}

struct Upload {
    receiver: mpsc::Receiver<Bytes>,
    remaining: u64,
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let next = std::task::ready!(self.receiver.poll_recv(cx));
        Poll::Ready(match next {
            Some(piece) => {
                self.remaining = self.remaining.saturating_sub(piece.len() as u64);
                Some(Ok(Frame::data(piece)))
            }
            None if self.remaining > 0 => Some(Err(std::io::Error::other("the blob could not be read"))),
            None => None,
        })
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}
