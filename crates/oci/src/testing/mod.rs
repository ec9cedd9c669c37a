//! For tests of this crate and with it: a registry in this process, ordinary unless a fault is set. Everything here
//! panics when it fails, which fails the test.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test helper fails its test")]
#![expect(missing_docs, reason = "what tests set and look at is named by its fields")]

pub mod images;
mod respond;

use crate::image::media_type;
use crate::remote::{RemoteOptions, RemoteRegistry};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use transom_packages::{Credentials, Digest, Reference};

/// The repository that references of [`Server::reference`] name. Others are served as well.
pub const REPOSITORY: &str = "acme/package";

/// An image as its manifest and blobs.
pub struct Image {
    pub manifest: Vec<u8>,
    pub blobs: Vec<Vec<u8>>,
}

pub type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// What a request is answered with instead.
#[derive(Clone, Debug)]
pub enum Fault {
    /// A status with headers.
    Status(u16, Vec<(&'static str, String)>),
    /// A redirect.
    Redirect(String),
    /// A redirect to the same address.
    RedirectToItself,
    /// No response.
    HangBeforeHeaders,
    /// No body.
    HangAfterHeaders,
    /// Half of the body, then nothing.
    HangWithinBody,
    /// Half of the body, then the connection ends.
    Truncate,
    /// Other bytes, with their own length.
    Replace(Bytes),
    /// This many bytes without end in sight, without a length.
    Endless(u64),
    /// The ordinary response without the header that names its digest.
    WithoutDigest,
    /// The ordinary response, but the header names this digest.
    NamesDigest(String),
}

/// A fault, for requests whose method and path contain this text.
pub struct Rule {
    pub matches: &'static str,
    pub fault: Fault,
    /// How often; without a number, always.
    pub times: Option<u32>,
}

/// Who may read.
#[derive(Clone, Debug, Default)]
pub enum Access {
    #[default]
    Anyone,
    Basic,
    /// A token from this realm.
    Bearer {
        realm: String,
    },
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub request: String,
    pub query: String,
    pub authorization: Option<String>,
    pub user_agent: Option<String>,
    pub body: Bytes,
}

#[derive(Default)]
pub struct State {
    /// By tag and digest; in other repositories than [`REPOSITORY`] by `REPOSITORY:TAG`.
    pub manifests: BTreeMap<String, (String, Bytes)>,
    pub blobs: BTreeMap<String, Bytes>,
    pub tags: Vec<String>,
    pub page: usize,
    pub rules: Vec<Rule>,
    pub access: Access,
    pub seen: Vec<Seen>,
    /// Keeps responses that hang open.
    pub open: Vec<tokio::sync::mpsc::Sender<std::io::Result<Bytes>>>,
}

pub struct Server {
    pub host: String,
    pub state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub async fn start() -> Self {
        Self::start_with(None).await
    }

    pub async fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, tls.clone(), Arc::clone(&shared)));
            }
        });
        Self { host, state, task }
    }

    pub fn reference(&self, tag: &str) -> Reference {
        let (registry, repository) = (self.host.clone(), REPOSITORY.to_owned());
        Reference { registry, repository, tag: Some(tag.to_owned()), digest: None }
    }

    /// Stores an image under a tag and its digest, and returns a reference by digest.
    pub fn store(&self, tag: &str, image: &Image) -> Reference {
        self.reference(tag).at(self.push(REPOSITORY, tag, image))
    }

    pub fn store_manifest(&self, tag: &str, media_type: &str, bytes: &[u8]) -> Reference {
        self.reference(tag).at(self.push_manifest(REPOSITORY, tag, media_type, bytes))
    }

    /// Stores an image of any repository under a tag and its digest, and returns the digest.
    pub fn push(&self, repository: &str, tag: &str, image: &Image) -> Digest {
        let mut state = self.state.lock().unwrap();
        for blob in &image.blobs {
            state.blobs.insert(Digest::of(blob).to_string(), Bytes::copy_from_slice(blob));
        }
        drop(state);
        self.push_manifest(repository, tag, media_type::OCI_MANIFEST, &image.manifest)
    }

    /// Stores a manifest of any repository under a tag and its digest, and returns the digest.
    pub fn push_manifest(&self, repository: &str, tag: &str, media_type: &str, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        let mut state = self.state.lock().unwrap();
        for name in [tag, digest.as_str()] {
            let stored = (media_type.to_owned(), Bytes::copy_from_slice(bytes));
            state.manifests.insert(respond::key(repository, name), stored);
        }
        digest
    }

    pub fn fault(&self, matches: &'static str, fault: Fault, times: Option<u32>) {
        self.state.lock().unwrap().rules.push(Rule { matches, fault, times });
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    /// Methods and paths of all requests.
    pub fn requests(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.request).collect()
    }

    pub fn require(&self, access: Access) {
        self.state.lock().unwrap().access = access;
    }

    pub fn credentials(&self, username: &str, password: &str) -> Credentials {
        let registry = self.host.clone();
        let (username, password) = (username.to_owned(), password.to_owned());
        Credentials { registry, username, password, identity_token: None }
    }
}

async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, state: Arc<Mutex<State>>) {
    let service = hyper::service::service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, std::convert::Infallible>(respond::respond(&state, request).await) }
    });
    let http = hyper::server::conn::http1::Builder::new();
    // Clients go away in the middle of responses: that is what some tests are about.
    match tls {
        None => drop(http.serve_connection(TokioIo::new(stream), service).await),
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                drop(http.serve_connection(TokioIo::new(stream), service).await);
            }
        }
    }
}

/// Options with short waits between attempts. They do not give up because a machine is busy.
pub fn options() -> RemoteOptions {
    RemoteOptions {
        system_roots: false,
        attempts: 3,
        backoff: Duration::from_millis(1),
        backoff_max: Duration::from_millis(1500),
        ..RemoteOptions::default()
    }
}

pub fn client() -> RemoteRegistry {
    RemoteRegistry::new(options()).unwrap()
}

/// A client that soon gives up a server that hangs.
pub fn hasty() -> RemoteRegistry {
    let timeout = Duration::from_millis(400);
    let options = RemoteOptions { response_timeout: timeout, idle_timeout: timeout, ..options() };
    RemoteRegistry::new(options).unwrap()
}
