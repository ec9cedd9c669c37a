//! Serves Crossplane's protocol of runners: runs programs of images for control planes.

use crate::host::WantedImage;
use crate::local::Programs;
use crate::protocol::{
    ImagePullAuth, ImagePullPolicy, NetworkPolicy, PATH, RunFunctionRequest, RunFunctionResponse, SERVICE,
};
use crate::settings::{RunSettings, limits};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::{Code, Response, Status};
use tonic_prost::ProstCodec;
use transom_object::error_chain::chain;
use transom_packages::{Credentials, Reference};
use transom_xapi::inline::{DEFAULT_CPU, DEFAULT_MEMORY};
use transom_xapi::package::PullPolicy;

/// How long a call may take that does not say, as in Crossplane.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(25);
/// The largest request, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Where a runner is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunnerAddress {
    /// A host and a port.
    Tcp(String),
    /// A socket in the file system; if its name begins with NUL, an abstract one.
    Unix(PathBuf),
}

/// A text that is not an address of a runner.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address; use HOST:PORT, unix:PATH or unix-abstract:NAME")]
pub struct AddressError(pub String);

impl RunnerAddress {
    /// Reads an address as gRPC writes it, or as Crossplane's flags do: `@NAME` for an abstract socket.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let abstract_socket = |name: &str| Ok(Self::Unix(format!("\0{name}").into()));
        if let Some(name) = text.strip_prefix("unix-abstract:").or_else(|| text.strip_prefix('@')) {
            return abstract_socket(name);
        }
        if let Some(path) = text.strip_prefix("unix://").or_else(|| text.strip_prefix("unix:")) {
            return Ok(Self::Unix(path.into()));
        }
        if text.starts_with('/') {
            return Ok(Self::Unix(text.into()));
        }
        let address = text.strip_prefix("dns:///").or_else(|| text.strip_prefix("dns:")).unwrap_or(text);
        match address.rsplit_once(':') {
            Some((_, port)) if port.parse::<u16>().is_ok() => Ok(Self::Tcp(address.to_owned())),
            _ => Err(AddressError(text.to_owned())),
        }
    }
}

/// Serves a runner until `stop` ends, and nothing of its containers is left. `ready` is called when it can be called.
pub async fn serve(
    programs: Arc<Programs>,
    address: &RunnerAddress,
    stop: impl Future<Output = ()>,
    ready: impl FnOnce(),
) -> io::Result<()> {
    let router = Server::builder().add_service(Runner { programs: programs.clone() });
    let served = match address {
        RunnerAddress::Tcp(address) => {
            let address =
                if address.starts_with(':') { format!("0.0.0.0{address}") } else { address.clone() };
            let listener = TcpListener::bind(&address).await?;
            ready();
            router.serve_with_incoming_shutdown(TcpListenerStream::new(listener), stop).await
        }
        RunnerAddress::Unix(path) => {
            let listener = UnixListener::bind(path)?;
            ready();
            let served = router.serve_with_incoming_shutdown(UnixListenerStream::new(listener), stop).await;
            // An abstract one has no file.
            let _ = std::fs::remove_file(path);
            served
        }
    };
    // Programs whose callers have given up may still be ending.
    programs.idle().await;
    served.map_err(io::Error::other)
}

#[derive(Clone)]
struct Runner {
    programs: Arc<Programs>,
}

impl NamedService for Runner {
    const NAME: &'static str = SERVICE;
}

impl Service<http::Request<Body>> for Runner {
    type Response = http::Response<Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let runner = self.clone();
        Box::pin(async move {
            if request.uri().path() != PATH {
                return Ok(Status::unimplemented("there is no such method").into_http());
            }
            let codec = ProstCodec::<RunFunctionResponse, RunFunctionRequest>::default();
            let mut grpc = Grpc::new(codec).max_decoding_message_size(MESSAGE_BYTES_MAX);
            Ok(grpc.unary(runner, request).await)
        })
    }
}

impl UnaryService<RunFunctionRequest> for Runner {
    type Response = RunFunctionResponse;
    type Future = BoxFuture<Response<RunFunctionResponse>, Status>;

    fn call(&mut self, request: tonic::Request<RunFunctionRequest>) -> Self::Future {
        let programs = self.programs.clone();
        Box::pin(async move {
            let RunFunctionRequest { input, .. } = request.get_ref().clone();
            let (image, settings) = wanted(request.get_ref()).map_err(Status::invalid_argument)?;
            let ran = programs.run(&image, &settings, false, input).await;
            let output = ran.map_err(|problem| Status::new(Code::Unknown, chain(&problem)))?;
            Ok(Response::new(RunFunctionResponse { output }))
        })
    }
}

/// What a request asks for.
fn wanted(request: &RunFunctionRequest) -> Result<(WantedImage, RunSettings), String> {
    let pull = request.image_pull_config.clone().unwrap_or_default();
    let run = request.run_function_config.clone().unwrap_or_default();
    let policy = match pull.pull_policy() {
        ImagePullPolicy::Always => PullPolicy::Always,
        ImagePullPolicy::Never => PullPolicy::Never,
        ImagePullPolicy::Unspecified | ImagePullPolicy::IfNotPresent => PullPolicy::IfNotPresent,
    };
    let given = run.resources.and_then(|resources| resources.limits).unwrap_or_default();
    let or = |text: String, default: &str| if text.is_empty() { default.to_owned() } else { text };
    let (cpu, memory) = (or(given.cpu, DEFAULT_CPU), or(given.memory, DEFAULT_MEMORY));
    let timeout = match run.timeout {
        Some(timeout) => timeout.try_into().map_err(|_| "timeout: it is not a duration".to_owned())?,
        None => DEFAULT_TIMEOUT,
    };
    let settings = RunSettings {
        policy,
        timeout,
        host_network: run.network.is_some_and(|network| network.policy() == NetworkPolicy::Runner),
        limits: limits(&cpu, &memory)
            .map_err(|(name, problem)| format!("resources.limits.{name}: {problem}"))?,
    };
    let reference = Reference::parse(&request.image).map_err(|e| format!("image: {e}"))?;
    let credentials = pull.auth.map(|auth| credentials(&reference, auth)).transpose()?;
    let credentials = credentials.into_iter().flatten().collect();
    Ok((WantedImage { reference: request.image.clone(), policy, credentials }, settings))
}

/// The credentials in a request, if there are any.
fn credentials(reference: &Reference, auth: ImagePullAuth) -> Result<Option<Credentials>, String> {
    let (mut username, mut password) = (auth.username, auth.password);
    if username.is_empty() && !auth.auth.is_empty() {
        let wrong = || "auth: it is not USER:PASSWORD in Base64".to_owned();
        let decoded = BASE64_STANDARD.decode(&auth.auth).map_err(|_| wrong())?;
        let text = String::from_utf8(decoded).map_err(|_| wrong())?;
        let (user, secret) = text.split_once(':').ok_or_else(wrong)?;
        (username, password) = (user.to_owned(), secret.to_owned());
    }
    let identity_token = Some(auth.identity_token).filter(|token| !token.is_empty());
    if username.is_empty() && identity_token.is_none() {
        return Ok(None);
    }
    Ok(Some(Credentials { registry: reference.registry.clone(), username, password, identity_token }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_grpc_and_crossplane_write_them() {
        let unix = |path: &str| Ok(RunnerAddress::Unix(path.into()));
        for (text, expected) in [
            ("unix-abstract:crossplane/fn/default.sock", unix("\0crossplane/fn/default.sock")),
            ("@crossplane/fn/default.sock", unix("\0crossplane/fn/default.sock")),
            ("unix:/run/x.sock", unix("/run/x.sock")),
            ("unix:///run/x.sock", unix("/run/x.sock")),
            ("localhost:1234", Ok(RunnerAddress::Tcp("localhost:1234".into()))),
            ("dns:///runner:1234", Ok(RunnerAddress::Tcp("runner:1234".into()))),
        ] {
            assert_eq!(RunnerAddress::parse(text), expected, "{text}");
        }
        assert!(RunnerAddress::parse("runner").unwrap_err().to_string().contains("HOST:PORT"));
    }

    #[test]
    fn a_request_without_settings_has_crossplanes_defaults() {
        let request = RunFunctionRequest { image: "r.io/f:v1".into(), ..RunFunctionRequest::default() };
        let (image, settings) = wanted(&request).unwrap();
        assert_eq!((image.reference.as_str(), image.policy), ("r.io/f:v1", PullPolicy::IfNotPresent));
        assert_eq!((settings.timeout, settings.host_network), (DEFAULT_TIMEOUT, false));
        assert_eq!((settings.limits.cpu_millis, settings.limits.memory_bytes), (100, 128 << 20));
    }

    #[test]
    fn credentials_come_in_crossplanes_forms() {
        let reference = Reference::parse("r.io/f:v1").unwrap();
        let auth = |auth: ImagePullAuth| credentials(&reference, auth);
        let plain = ImagePullAuth { username: "u".into(), password: "p".into(), ..ImagePullAuth::default() };
        assert_eq!(auth(plain).unwrap().unwrap().username, "u");
        let encoded = ImagePullAuth { auth: BASE64_STANDARD.encode("u:p"), ..ImagePullAuth::default() };
        assert_eq!(auth(encoded).unwrap().unwrap().password, "p");
        assert!(auth(ImagePullAuth::default()).unwrap().is_none());
        assert!(auth(ImagePullAuth { auth: "!".into(), ..ImagePullAuth::default() }).is_err());
    }
}
