//! A deadline for the headers of HTTP/1 requests.
//!
//! A connection may be idle for minutes between two requests, but once the first byte of a request has arrived, the rest
//! of its headers must follow soon. The HTTP library has one timeout for both, so this module watches the bytes: headers
//! are incomplete from the first byte that arrives while no request is served until the request is handed to the service.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The state of one connection.
pub struct HeaderProgress {
    started: Instant,
    /// Milliseconds after `started` at which incomplete headers began, plus one; 0 when there are none.
    incomplete_since: AtomicU64,
    /// Requests that the service is working on.
    served: AtomicUsize,
    any: AtomicBool,
}

impl HeaderProgress {
    /// Of a connection that was just accepted.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            incomplete_since: AtomicU64::new(0),
            served: AtomicUsize::new(0),
            any: AtomicBool::new(false),
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
    }

    fn bytes_arrived(&self) {
        if self.served.load(Ordering::Relaxed) == 0 {
            let now = self.now() + 1;
            // Headers that are incomplete already began earlier.
            let _ = self.incomplete_since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Headers are complete: until the guard is dropped, arriving bytes are the request's body.
    pub fn complete(self: &Arc<Self>) -> Serving {
        self.served.fetch_add(1, Ordering::Relaxed);
        self.any.store(true, Ordering::Relaxed);
        self.incomplete_since.store(0, Ordering::Relaxed);
        Serving(Arc::clone(self))
    }

    /// Whether any request has been received.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Returns when headers have been incomplete for longer than `limit`.
    pub async fn overdue(&self, limit: Duration) {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        loop {
            tokio::time::sleep(limit / 4).await;
            let since = self.incomplete_since.load(Ordering::Relaxed);
            if since > 0 && self.now().saturating_sub(since) >= limit_ms {
                return;
            }
        }
    }
}

/// A request that the service is working on.
pub struct Serving(Arc<HeaderProgress>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.served.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream that records when bytes arrive.
pub struct ObservedStream<S> {
    /// What is read and written.
    pub stream: S,
    /// Where arriving bytes are recorded.
    pub headers: Arc<HeaderProgress>,
}

impl<S: AsyncRead + Unpin> AsyncRead for ObservedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.headers.bytes_arrived();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ObservedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
