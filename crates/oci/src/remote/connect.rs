//! Connections to registries: TCP, through a proxy where one is set, and TLS.

use super::proxy::{Proxies, Proxy};
use crate::failure::innermost;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Opens connections for the pool of the client.
#[derive(Clone)]
pub(super) struct Connector {
    settings: Arc<Settings>,
}

struct Settings {
    tls: TlsConnector,
    proxies: Proxies,
    timeout: Duration,
}

trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// An open connection.
pub(super) struct Stream {
    transport: Box<dyn Transport>,
    /// Whether a proxy reads the requests, which therefore need whole addresses.
    proxied: bool,
}

impl Connector {
    pub(super) fn new(tls: rustls::ClientConfig, proxies: Proxies, timeout: Duration) -> Self {
        Self { settings: Arc::new(Settings { tls: TlsConnector::from(Arc::new(tls)), proxies, timeout }) }
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let settings = Arc::clone(&self.settings);
        Box::pin(async move {
            let timeout = settings.timeout;
            match tokio::time::timeout(timeout, connect(&settings, &uri)).await {
                Ok(stream) => stream.map(TokioIo::new),
                Err(_) => Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("no connection within {} s", timeout.as_secs_f32()),
                )),
            }
        })
    }
}

async fn connect(settings: &Settings, uri: &Uri) -> io::Result<Stream> {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let tls = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
    let Some(proxy) = settings.proxies.choose(uri) else {
        let transport: Box<dyn Transport> = Box::new(tcp(host, port).await?);
        let transport = if tls { secure(settings, transport, host).await? } else { transport };
        return Ok(Stream { transport, proxied: false });
    };
    let unreachable = |error: io::Error| {
        let (host, port, cause) = (&proxy.host, proxy.port, innermost(&error));
        io::Error::new(error.kind(), format!("the proxy {host}:{port} cannot be reached: {cause}"))
    };
    let mut transport: Box<dyn Transport> =
        Box::new(tcp(&proxy.host, proxy.port).await.map_err(unreachable)?);
    if proxy.tls {
        transport = secure(settings, transport, &proxy.host).await?;
    }
    if !tls {
        return Ok(Stream { transport, proxied: true });
    }
    tunnel(&mut transport, proxy, host, port).await?;
    Ok(Stream { transport: secure(settings, transport, host).await?, proxied: false })
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn secure(
    settings: &Settings,
    transport: Box<dyn Transport>,
    host: &str,
) -> io::Result<Box<dyn Transport>> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, "the host is not a name that TLS can verify")
    })?;
    Ok(Box::new(settings.tls.connect(name, transport).await?))
}

/// Asks a proxy for a connection to a host.
async fn tunnel(transport: &mut Box<dyn Transport>, proxy: &Proxy, host: &str, port: u16) -> io::Result<()> {
    const RESPONSE_BYTES_MAX: usize = 16 << 10;
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n").into_bytes();
    if let Some(authorization) = &proxy.authorization {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    transport.write_all(&request).await?;
    transport.flush().await?;
    // One byte at a time: what follows the response belongs to TLS.
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        if response.len() >= RESPONSE_BYTES_MAX {
            return Err(io::Error::other("the proxy's response is too long"));
        }
        response.push(transport.read_u8().await?);
    }
    let line = response.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let status = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    if status.len() == 3 && status[0] == b'2' {
        return Ok(());
    }
    let status = String::from_utf8_lossy(status).chars().take(3).collect::<String>();
    Err(io::Error::other(format!("the proxy {proxy:?} refused the connection with status {status:?}")))
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.proxied)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.transport).poll_write(cx, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_shutdown(cx)
    }
}
