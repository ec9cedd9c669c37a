//! Response bodies: bytes, a chain of shared bytes, or a stream.

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Body, Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Pieces of a response that become available over time.
pub(crate) type ByteStream = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The body of every response. A list is a chain of the stored objects' own bytes: nothing is copied.
pub enum ApiBody {
    /// Pieces that are sent one after the other.
    Chain(VecDeque<Bytes>),
    /// The events of a watch.
    Stream(ByteStream),
}

impl ApiBody {
    /// A body without content.
    pub fn empty() -> Self {
        Self::Chain(VecDeque::new())
    }

    /// The length in bytes; `None` for a stream.
    pub fn known_length(&self) -> Option<u64> {
        match self {
            Self::Chain(parts) => Some(parts.iter().map(|b| b.len() as u64).sum()),
            Self::Stream(_) => None,
        }
    }
}

impl From<Bytes> for ApiBody {
    fn from(bytes: Bytes) -> Self {
        Self::Chain(VecDeque::from([bytes]))
    }
}

impl From<Vec<u8>> for ApiBody {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Chain(parts) => Poll::Ready(parts.pop_front().map(|b| Ok(Frame::data(b)))),
            Self::Stream(s) => s.as_mut().poll_next(cx).map(|next| next.map(|b| Ok(Frame::data(b)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Chain(parts) if parts.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        self.known_length().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
