//! Slow request heads on HTTP/1 connections.
//!
//! A connection may rest for minutes between two requests, but once the first byte of a request has come, the rest
//! of its head must follow soon. The HTTP library has one clock for both, so this one watches the bytes: a head is
//! open from the first byte that comes while no request is served until the request is handed to the service.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What is known of one connection's requests.
pub(super) struct Heads {
    started: Instant,
    /// Milliseconds after `started` at which the open head began, plus one; 0 when none is open.
    open_since: AtomicU64,
    served: AtomicUsize,
    any: AtomicBool,
}

impl Heads {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            open_since: AtomicU64::new(0),
            served: AtomicUsize::new(0),
            any: AtomicBool::new(false),
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
    }

    fn bytes_came(&self) {
        if self.served.load(Ordering::Relaxed) == 0 {
            let now = self.now() + 1;
            // A head that is open already began earlier.
            let _ = self.open_since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// A head is complete: until the guard is dropped, what comes is the request's body.
    pub(super) fn complete(self: &Arc<Self>) -> Serving {
        self.served.fetch_add(1, Ordering::Relaxed);
        self.any.store(true, Ordering::Relaxed);
        self.open_since.store(0, Ordering::Relaxed);
        Serving(Arc::clone(self))
    }

    /// Whether any request has come.
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Returns when a head has been open for longer than `limit`.
    pub(super) async fn overdue(&self, limit: Duration) {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        loop {
            tokio::time::sleep(limit / 4).await;
            let since = self.open_since.load(Ordering::Relaxed);
            if since > 0 && self.now().saturating_sub(since) >= limit_ms {
                return;
            }
        }
    }
}

pub(super) struct Serving(Arc<Heads>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.served.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream that tells when bytes come.
pub(super) struct Heard<S> {
    pub(super) stream: S,
    pub(super) heads: Arc<Heads>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.heads.bytes_came();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<S> {
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
