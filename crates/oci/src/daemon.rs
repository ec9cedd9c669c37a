//! Images of a Docker daemon on this machine, or of what speaks its protocol, such as Podman. They are written to a file
//! in the form of `docker save`, which [`tarball`](crate::tarball) reads.

use crate::failure::{chain, file, innermost, invalid, not_found, unavailable};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use transom_packages::RegistryError;

/// Where a daemon listens by default.
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";
/// How long the daemon may take to begin its response, and to send its next part.
const READ_TIMEOUT: Duration = Duration::from_secs(120);
/// The most bytes that are read of an error.
const ERROR_BYTES: usize = 64 << 10;

type Sender = http1::SendRequest<Empty<Bytes>>;
type Connection = http1::Connection<TokioIo<UnixStream>, Empty<Bytes>>;

/// A daemon on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    socket: PathBuf,
}

impl Daemon {
    /// The daemon that `DOCKER_HOST` names, or the usual one. `None` for one that is not on a socket of this machine.
    pub fn at(docker_host: Option<&str>) -> Option<Self> {
        let socket = match docker_host.filter(|host| !host.is_empty()) {
            None => DEFAULT_SOCKET,
            Some(host) => host.strip_prefix("unix://").filter(|path| path.starts_with('/'))?,
        };
        Some(Self { socket: socket.into() })
    }

    /// Writes an image to a file, as `docker save` does.
    pub async fn save(&self, image: &str, path: &Path) -> Result<(), RegistryError> {
        let (sender, connection) = self.connect().await?;
        let exchange = self.exchange(sender, image, path);
        // The connection ends when the exchange lets go of it.
        let (saved, _) = tokio::join!(exchange, connection);
        saved
    }

    async fn connect(&self) -> Result<(Sender, Connection), RegistryError> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| {
            let cause = innermost(&error);
            unavailable(self.socket.display(), format_args!("the Docker daemon cannot be reached: {cause}"))
        })?;
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.broken(&error))
    }

    async fn exchange(&self, mut sender: Sender, image: &str, path: &Path) -> Result<(), RegistryError> {
        let names = form_urlencoded::Serializer::new(String::new()).append_pair("names", image).finish();
        let request = http::Request::get(format!("/images/get?{names}")).header("host", "docker");
        let request = request.body(Empty::new()).map_err(|error| invalid(image, error))?;
        let response = match tokio::time::timeout(READ_TIMEOUT, sender.send_request(request)).await {
            Ok(response) => response.map_err(|error| self.broken(&error))?,
            Err(_) => return Err(self.paused()),
        };
        let status = response.status();
        let mut body = response.into_body();
        if !status.is_success() {
            let why = self.problem(&mut body).await?;
            return Err(match status.as_u16() {
                404 => not_found(image, format_args!("the Docker daemon does not have it: {why}")),
                status => {
                    invalid(image, format_args!("the Docker daemon responds with status {status}: {why}"))
                }
            });
        }
        let written = |error: std::io::Error| file(path, "write it", &error);
        let mut output = tokio::fs::File::create(path).await.map_err(written)?;
        while let Some(bytes) = self.next(&mut body).await? {
            output.write_all(&bytes).await.map_err(written)?;
        }
        output.flush().await.map_err(written)
    }

    /// The next bytes of a response.
    async fn next(&self, body: &mut Incoming) -> Result<Option<Bytes>, RegistryError> {
        loop {
            match tokio::time::timeout(READ_TIMEOUT, body.frame()).await {
                Err(_) => return Err(self.paused()),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(self.broken(&error)),
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    /// What the daemon says is wrong.
    async fn problem(&self, body: &mut Incoming) -> Result<String, RegistryError> {
        let mut text = Vec::new();
        while let Some(bytes) = self.next(body).await? {
            text.extend_from_slice(&bytes);
            if text.len() > ERROR_BYTES {
                break;
            }
        }
        let message = serde_json::from_slice::<serde_json::Value>(&text).ok();
        let message = message.and_then(|value| value["message"].as_str().map(str::to_owned));
        Ok(message.unwrap_or_else(|| "it gives no reason".to_owned()))
    }

    fn broken(&self, error: &hyper::Error) -> RegistryError {
        unavailable(
            self.socket.display(),
            format_args!("the Docker daemon does not respond: {}", chain(error)),
        )
    }

    fn paused(&self) -> RegistryError {
        let seconds = READ_TIMEOUT.as_secs();
        unavailable(self.socket.display(), format_args!("the Docker daemon paused for {seconds} s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_on_a_socket_of_this_machine() {
        let at = |host| Daemon::at(host).map(|daemon| daemon.socket);
        assert_eq!(at(None), Some(DEFAULT_SOCKET.into()));
        assert_eq!(at(Some("")), Some(DEFAULT_SOCKET.into()));
        assert_eq!(at(Some("unix:///run/podman.sock")), Some("/run/podman.sock".into()));
        for elsewhere in ["tcp://10.0.0.1:2375", "ssh://me@host", "unix://relative", "npipe:////./pipe/x"] {
            assert_eq!(at(Some(elsewhere)), None, "{elsewhere}");
        }
    }
}
