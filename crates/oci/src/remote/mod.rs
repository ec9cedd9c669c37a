//! Registries over HTTP, by the distribution specification of OCI.
//!
//! A registry is not trusted with anything but what is verified: every byte is checked against a digest, every size,
//! time, redirect and attempt is bounded, and credentials go nowhere but to the registry and its token realm.
//!
//! | module | purpose |
//! |---|---|
//! | `options` | limits, trust, proxies: all that the caller decides |
//! | `connect`, `proxy`, `tls` | connections |
//! | `http` | one request: redirects, timeouts, bounded bodies |
//! | `attempts` | when a request that failed is sent again |
//! | `challenge`, `auth` | the authentication that a registry requires |
//! | `machine` | credentials of the machine, where those that were given are not enough |
//! | `tags` | lists of tags, page by page |
//! | `upload` | pushing |
//! | `transfer` | how far blobs are on their way |

mod attempts;
mod auth;
mod challenge;
mod connect;
mod http;
mod machine;
mod options;
mod proxy;
mod tags;
mod tls;
mod transfer;
mod upload;

use self::auth::{Access, Sessions};
use self::http::{Answer, Call, Http};
use self::machine::MachineCredentials;
use crate::credentials::matching;
use crate::failure::{invalid, unavailable};
use crate::image::{Descriptor, Document, MANIFEST_BYTES_MAX, media_type};
use crate::package;
use crate::source::{Blob, ImageSource, RawManifest, tagged_referrers};
use ::http::header::{ACCEPT, CONTENT_TYPE};
use ::http::{Method, StatusCode, Uri};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Mutex;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transom_packages::{Credentials, Digest, Fetched, Reference, Registry, RegistryError, RegistryErrorKind};

pub use options::RemoteOptions;
pub use proxy::{Proxies, ProxyError};
pub use transfer::{Transfer, TransferListener};
pub use upload::{Progress, ProgressListener};

const MANIFEST_TYPES: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";
const CONTENT_DIGEST: &str = "docker-content-digest";

/// A client of registries.
pub struct RemoteRegistry {
    http: Http,
    sessions: Sessions,
    machine: MachineCredentials,
    /// Registries on this machine, and whether they speak TLS.
    local_tls: Mutex<BTreeMap<String, bool>>,
}

impl RemoteRegistry {
    /// A client. Reads the system's certificate authorities, if they are wanted.
    pub fn new(options: RemoteOptions) -> Result<Self, RegistryError> {
        let local_tls = Mutex::new(BTreeMap::new());
        let (sessions, machine) = (Sessions::default(), MachineCredentials::default());
        Ok(Self { http: Http::new(options)?, sessions, machine, local_tls })
    }

    /// How many requests were sent since the start, with those for tokens and after redirects.
    pub fn requests(&self) -> u64 {
        self.http.sent()
    }

    fn options(&self) -> &RemoteOptions {
        &self.http.options
    }

    /// The address below `/v2/` of a reference's repository.
    async fn address(&self, reference: &Reference, rest: &str) -> Result<Uri, RegistryError> {
        let host = match &*reference.registry {
            "docker.io" | "index.docker.io" => "registry-1.docker.io",
            other => other,
        };
        let scheme = self.scheme(reference, host).await?;
        let repository = repository(reference)?;
        let address = format!("{scheme}://{host}/v2/{repository}/{rest}");
        address.parse().map_err(|_| invalid(reference, "the reference cannot be made an address"))
    }

    /// TLS, except where plain HTTP is allowed. A registry on this machine may speak either: it is asked once.
    async fn scheme(&self, reference: &Reference, host: &str) -> Result<&'static str, RegistryError> {
        let wrong = |_| invalid(reference, "the registry is not a host");
        let authority: ::http::uri::Authority = host.parse().map_err(wrong)?;
        if authority.as_str().contains('@') {
            return Err(invalid(reference, "the registry has a user, which is refused"));
        }
        if !self.options().allows_plain(&authority) {
            return Ok("https");
        }
        if !options::is_loopback(authority.host()) {
            return Ok("http");
        }
        let known = self.local_tls.lock().ok().and_then(|known| known.get(host).copied());
        let tls = match known {
            Some(tls) => tls,
            None => {
                let asked = speaks_tls(&authority);
                let tls = tokio::time::timeout(self.options().connect_timeout, asked).await;
                // A server that does not answer is not remembered: the request that follows says so.
                let Ok(Some(tls)) = tls else { return Ok("http") };
                if let Ok(mut known) = self.local_tls.lock() {
                    known.insert(host.to_owned(), tls);
                }
                tls
            }
        };
        Ok(if tls { "https" } else { "http" })
    }

    /// Sends a request about a reference's repository with the credentials that apply to it; if the registry refuses these,
    /// with those of the machine: first those that were found a short time ago.
    async fn send(
        &self,
        reference: &Reference,
        push: bool,
        call: Call,
        with: &[Credentials],
    ) -> Result<Answer, RegistryError> {
        let access = access(reference, push)?;
        let subject = reference.to_string();
        let kept = self.machine.kept(&access);
        let candidates = candidates(with, &kept, reference);
        let sent = self.sessions.send(&self.http, &subject, &access, call.clone(), &candidates).await;
        let (refused, config) = match (sent, &self.options().machine_config) {
            (Err(error), Some(config)) if error.kind == RegistryErrorKind::Unauthorized => (error, config),
            (sent, _) => return sent,
        };
        match self.machine.find(config, &access, reference).await {
            Ok(found) if found.is_empty() || found == kept => Err(refused),
            Ok(found) => {
                let candidates: Vec<&Credentials> = found.iter().collect();
                self.sessions.send(&self.http, &subject, &access, call, &candidates).await
            }
            Err(error) => Err(RegistryError { message: format!("{}; {error}", refused.message), ..refused }),
        }
    }

    /// Ends an operation at its deadline.
    async fn within<T>(
        &self,
        reference: &Reference,
        deadline: Duration,
        operation: impl Future<Output = Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        match tokio::time::timeout(deadline, operation).await {
            Ok(result) => result,
            Err(_) => Err(unavailable(
                reference,
                format_args!("not complete within {} s, given up", deadline.as_secs_f32()),
            )),
        }
    }

    async fn manifest_call(&self, method: Method, reference: &Reference) -> Result<Call, RegistryError> {
        let uri = self.address(reference, &format!("manifests/{}", identifier(reference)?)).await?;
        Ok(Call::new(method, uri).header(ACCEPT, MANIFEST_TYPES))
    }

    /// The digest that `HEAD` names, if it does.
    async fn head(
        &self,
        reference: &Reference,
        with: &[Credentials],
    ) -> Result<Option<Digest>, RegistryError> {
        let call = self.manifest_call(Method::HEAD, reference).await?;
        let answer = self.send(reference, false, call, with).await?;
        if !answer.status.is_success() {
            return Ok(None);
        }
        content_digest(reference, &answer)
    }
}

impl RemoteRegistry {
    /// What the registry's API lists as referring to a digest, if it has one: the first page, which has what counts.
    async fn listed_referrers(
        &self,
        reference: &Reference,
        digest: &Digest,
        with: &[Credentials],
    ) -> Result<Option<Vec<Descriptor>>, RegistryError> {
        let uri = self.address(reference, &format!("referrers/{digest}")).await?;
        let call = Call::new(Method::GET, uri).header(ACCEPT, media_type::OCI_INDEX);
        let answer = self.send(reference, false, call, with).await?;
        if answer.status != StatusCode::OK {
            return Ok(None);
        }
        let subject = format!("{reference}: referrers");
        let bytes = answer.bytes(&subject, MANIFEST_BYTES_MAX).await?;
        match Document::parse(&bytes) {
            Ok(Document::Index(index)) => Ok(Some(index.manifests)),
            _ => Ok(None),
        }
    }
}

/// The credentials that a request is sent with, in this order: those that were given for its repository, and those of the machine
/// that are known.
fn candidates<'a>(
    given: &'a [Credentials],
    kept: &'a [Credentials],
    reference: &Reference,
) -> Vec<&'a Credentials> {
    matching(given, reference).into_iter().chain(kept).collect()
}

/// The digest that a registry says its response has.
fn content_digest(reference: &Reference, answer: &Answer) -> Result<Option<Digest>, RegistryError> {
    let Some(named) = answer.headers.get(CONTENT_DIGEST) else { return Ok(None) };
    let digest = Digest::parse(named.to_str().unwrap_or_default());
    digest.map(Some).map_err(|error| invalid(reference, format_args!("the registry names a digest: {error}")))
}

/// The path of a repository. Docker Hub's own images have a name of one part.
fn repository(reference: &Reference) -> Result<String, RegistryError> {
    let name = &reference.repository;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/".contains(c);
    let parts_are_sound = name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if !name.chars().all(allowed) || !parts_are_sound {
        return Err(invalid(
            reference,
            "the repository may have lower-case letters, digits, '.', '_', '-' and '/' only",
        ));
    }
    let hub = matches!(&*reference.registry, "docker.io" | "index.docker.io" | "registry-1.docker.io");
    Ok(if hub && !name.contains('/') { format!("library/{name}") } else { name.clone() })
}

fn identifier(reference: &Reference) -> Result<&str, RegistryError> {
    let identifier = reference.identifier();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    if identifier.chars().all(allowed) && !identifier.starts_with(['.', '-']) {
        return Ok(identifier);
    }
    Err(invalid(reference, "the tag may have letters, digits, '.', '_' and '-' only"))
}

fn access(reference: &Reference, push: bool) -> Result<Access, RegistryError> {
    Ok(Access { registry: reference.registry.clone(), repository: repository(reference)?, push })
}

/// Whether a server on this machine speaks TLS: to a request in plain HTTP, such a server answers with an alert, with
/// status 400, or not at all. Nothing secret is in that request.
async fn speaks_tls(authority: &::http::uri::Authority) -> Option<bool> {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let mut stream = tokio::net::TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await.ok()?;
    let request = format!("GET /v2/ HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut start = [0; 12];
    let mut filled = 0;
    while filled < start.len() {
        match stream.read(&mut start[filled..]).await {
            Ok(read) if read > 0 => filled += read,
            _ => break,
        }
    }
    Some(!start.starts_with(b"HTTP/") || start.ends_with(b" 400"))
}

#[async_trait]
impl ImageSource for RemoteRegistry {
    async fn manifest(
        &self,
        reference: &Reference,
        with: &[Credentials],
    ) -> Result<RawManifest, RegistryError> {
        let call = self.manifest_call(Method::GET, reference).await?;
        let answer = self.send(reference, false, call, with).await?;
        if answer.status != StatusCode::OK {
            return Err(answer.failure(&reference.to_string(), "repository, tag or digest").await);
        }
        let named = content_digest(reference, &answer)?;
        let media_type = answer.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = media_type.unwrap_or(media_type::OCI_MANIFEST).to_owned();
        let bytes = answer.bytes(&format!("{reference}: manifest"), MANIFEST_BYTES_MAX).await?;
        let digest = Digest::of(&bytes);
        // The digest in the reference decides; without one, the registry must at least agree with itself.
        if let Some(expected) =
            reference.digest.as_ref().or(named.as_ref()).filter(|expected| **expected != digest)
        {
            let problem =
                format!("the manifest has the digest {digest}, not {expected}; it was damaged or replaced");
            return Err(invalid(reference, problem));
        }
        Ok(RawManifest { digest, media_type, bytes })
    }

    async fn blob(
        &self,
        reference: &Reference,
        descriptor: &Descriptor,
        with: &[Credentials],
    ) -> Result<Blob, RegistryError> {
        let uri = self.address(reference, &format!("blobs/{}", descriptor.digest)).await?;
        let answer = self.send(reference, false, Call::new(Method::GET, uri), with).await?;
        let subject = reference.to_string();
        if answer.status != StatusCode::OK {
            return Err(answer.failure(&subject, &format!("blob {}", descriptor.digest)).await);
        }
        if let Some(length) = answer.content_length().filter(|length| *length != descriptor.size) {
            let problem = format!("blob {} has {length} bytes, not {}", descriptor.digest, descriptor.size);
            return Err(invalid(reference, problem));
        }
        let chunks = self.options().transfers.download(descriptor, answer.chunks(subject.clone()));
        Ok(Blob::new(subject, descriptor, chunks))
    }

    async fn referrers(
        &self,
        reference: &Reference,
        digest: &Digest,
        with: &[Credentials],
    ) -> Result<Vec<Descriptor>, RegistryError> {
        match self.listed_referrers(reference, digest, with).await? {
            Some(listed) => Ok(listed),
            // A registry without this API has a list at a tag.
            None => tagged_referrers(self, reference, digest, with).await,
        }
    }
}

#[async_trait]
impl Registry for RemoteRegistry {
    async fn resolve(&self, reference: &Reference, with: &[Credentials]) -> Result<Digest, RegistryError> {
        if let Some(digest) = &reference.digest {
            return Ok(digest.clone());
        }
        let resolve = async {
            match self.head(reference, with).await? {
                Some(digest) => Ok(digest),
                None => Ok(self.manifest(reference, with).await?.digest),
            }
        };
        self.within(reference, self.options().deadline, resolve).await
    }

    async fn fetch(&self, reference: &Reference, with: &[Credentials]) -> Result<Fetched, RegistryError> {
        let fetch = package::fetch(self, reference, with, self.options().limits);
        self.within(reference, self.options().deadline, fetch).await
    }

    async fn tags(&self, reference: &Reference, with: &[Credentials]) -> Result<Vec<String>, RegistryError> {
        self.within(reference, self.options().deadline, self.list_tags(reference, with)).await
    }
}
