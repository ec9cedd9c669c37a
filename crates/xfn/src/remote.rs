//! Functions that another runner runs, over Crossplane's protocol.

use crate::host::WantedImage;
use crate::protocol::{
    ImagePullAuth, ImagePullConfig, ImagePullPolicy, NetworkConfig, NetworkPolicy, PATH, ResourceConfig,
    ResourceLimits, RunFunctionConfig, RunFunctionRequest, RunFunctionResponse,
};
use crate::serve::RunnerAddress;
use crate::settings::RunSettings;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic_prost::ProstCodec;
use transom_object::error_chain::chain;
use transom_packages::Credentials;
use transom_xapi::package::PullPolicy;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// The largest answer, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// What a runner may take beyond the function's timeout: it pulls the image.
const PULL_WITHIN: Duration = Duration::from_secs(60);

/// Has a runner run the program of an image.
pub(crate) async fn run(
    endpoint: &str,
    image: &WantedImage,
    settings: &RunSettings,
    input: Vec<u8>,
) -> Result<Vec<u8>, String> {
    let address = RunnerAddress::parse(endpoint).map_err(|e| format!("container.runner.endpoint: {e}"))?;
    let unreachable = |e: &(dyn std::error::Error + 'static)| {
        format!(
            "the runner {endpoint} cannot be reached: {}; is it started, as by transom xfn start?",
            chain(e)
        )
    };
    let channel = connect(address).await.map_err(|e| unreachable(&e))?;
    let mut grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    grpc.ready().await.map_err(|e| unreachable(&e))?;
    let request = tonic::Request::new(message(image, settings, input));
    let codec = ProstCodec::<RunFunctionRequest, RunFunctionResponse>::default();
    let call = grpc.unary(request, PathAndQuery::from_static(PATH), codec);
    let answered = tokio::time::timeout(settings.timeout + PULL_WITHIN, call).await;
    let answered = answered.map_err(|_| format!("the runner {endpoint} did not answer"))?;
    match answered {
        Ok(response) => Ok(response.into_inner().output),
        Err(status) => Err(format!("the runner {endpoint} failed: {}", status.message())),
    }
}

async fn connect(address: RunnerAddress) -> Result<Channel, tonic::transport::Error> {
    let endpoint = match &address {
        RunnerAddress::Tcp(address) => Endpoint::from_shared(format!("http://{address}"))?,
        RunnerAddress::Unix(_) => Endpoint::from_static("http://localhost"),
    };
    let endpoint = endpoint.connect_timeout(CONNECT_WITHIN);
    let RunnerAddress::Unix(path) = address else { return endpoint.connect().await };
    let connector = tower::service_fn(move |_: Uri| {
        let path = path.clone();
        async move { Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(path).await?)) }
    });
    endpoint.connect_with_connector(connector).await
}

fn message(image: &WantedImage, settings: &RunSettings, input: Vec<u8>) -> RunFunctionRequest {
    let policy = match settings.policy {
        PullPolicy::IfNotPresent => ImagePullPolicy::IfNotPresent,
        PullPolicy::Always => ImagePullPolicy::Always,
        PullPolicy::Never => ImagePullPolicy::Never,
    };
    let network = if settings.host_network { NetworkPolicy::Runner } else { NetworkPolicy::Isolated };
    let limits = ResourceLimits {
        memory: settings.limits.memory_bytes.to_string(),
        cpu: format!("{}m", settings.limits.cpu_millis),
    };
    let auth = auth(image);
    RunFunctionRequest {
        image: image.reference.clone(),
        input,
        image_pull_config: Some(ImagePullConfig { pull_policy: policy as i32, auth }),
        run_function_config: Some(RunFunctionConfig {
            resources: Some(ResourceConfig { limits: Some(limits) }),
            network: Some(NetworkConfig { policy: network as i32 }),
            timeout: prost_types::Duration::try_from(settings.timeout).ok(),
        }),
    }
}

/// The credentials for the image's registry: the protocol has room for one.
fn auth(image: &WantedImage) -> Option<ImagePullAuth> {
    let reference = transom_packages::Reference::parse(&image.reference).ok()?;
    let of_registry = |credentials: &&Credentials| credentials.registry == reference.registry;
    let found = image.credentials.iter().find(of_registry)?;
    Some(ImagePullAuth {
        username: found.username.clone(),
        password: found.password.clone(),
        identity_token: found.identity_token.clone().unwrap_or_default(),
        ..ImagePullAuth::default()
    })
}
