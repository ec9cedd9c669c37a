//! For tests of functions and with functions: a builder of requests, a function run until its requirements are met, a
//! function that is a closure, and servers. Everything here panics when it fails, which fails the test.
#![allow(clippy::panic, reason = "a test helper fails its test")]

use crate::proto::v1::credentials::Source;
use crate::proto::v1::resource_selector::Match;
use crate::proto::v1beta1::function_runner_service_server as beta;
use crate::{
    Capability, Error, Function, RequestMeta, Resource, ResourceSelector, Resources, RunFunctionRequest,
    RunFunctionResponse, ServeError, ServeOptions, Server, State, Struct, answer, async_trait,
};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::server::TcpIncoming;

/// How often a function may change its requirements.
const MAX_ITERATIONS: usize = 5;

fn resource(object: Value) -> Resource {
    Resource::new(object).unwrap_or_else(|e| panic!("not a resource: {e}"))
}

/// Builds a request like those of a current control plane.
#[derive(Clone, Debug)]
pub struct RequestBuilder(RunFunctionRequest);

impl RequestBuilder {
    /// A request for a composite resource for which nothing exists or is desired yet.
    pub fn new(composite: Value) -> Self {
        use Capability::{Capabilities, Conditions, Credentials, RequiredResources, RequiredSchemas};
        let capabilities = [Capabilities, RequiredResources, Credentials, Conditions, RequiredSchemas];
        let capabilities = capabilities.map(|capability| capability as i32).to_vec();
        Self(RunFunctionRequest {
            meta: Some(RequestMeta { tag: "test".to_owned(), capabilities }),
            observed: Some(State::of(resource(composite))),
            desired: Some(State::default()),
            ..RunFunctionRequest::default()
        })
    }

    /// Sets the tag.
    #[must_use]
    pub fn tag(mut self, tag: &str) -> Self {
        self.0.meta.get_or_insert_with(RequestMeta::default).tag = tag.to_owned();
        self
    }

    /// Sets the step's input.
    #[must_use]
    pub fn input(mut self, input: Value) -> Self {
        self.0.input = Some(Struct::try_from(input).unwrap_or_else(|e| panic!("not an input: {e}")));
        self
    }

    /// Adds a value to the context.
    #[must_use]
    pub fn context(mut self, key: &str, value: Value) -> Self {
        self.0.context.get_or_insert_with(Struct::default).fields_mut().insert(key.to_owned(), value);
        self
    }

    /// Adds a composed resource that exists.
    #[must_use]
    pub fn observed(mut self, name: &str, object: Value) -> Self {
        let state = self.0.observed.get_or_insert_with(State::default);
        state.resources.insert(name.to_owned(), resource(object));
        self
    }

    /// Adds a composed resource that an earlier step wants.
    #[must_use]
    pub fn desired(mut self, name: &str, object: Value) -> Self {
        let state = self.0.desired.get_or_insert_with(State::default);
        state.resources.insert(name.to_owned(), resource(object));
        self
    }

    /// Adds one key of the credentials of a name.
    #[must_use]
    pub fn credential(mut self, name: &str, key: &str, value: &[u8]) -> Self {
        let source = &mut self.0.credentials.entry(name.to_owned()).or_default().source;
        let Source::CredentialData(data) =
            source.get_or_insert_with(|| Source::CredentialData(Default::default()));
        data.data.insert(key.to_owned(), value.to_vec());
        self
    }

    /// Sets the resources that satisfy a requirement.
    #[must_use]
    pub fn required(mut self, name: &str, objects: impl IntoIterator<Item = Value>) -> Self {
        let items = objects.into_iter().map(resource).collect();
        self.0.required_resources.insert(name.to_owned(), Resources { items });
        self
    }

    /// The request.
    pub fn build(self) -> RunFunctionRequest {
        self.0
    }
}

/// Runs a function until it requires nothing new, finding what it requires among the objects of `world`.
///
/// # Panics
/// When the call fails, or the requirements change with every response.
pub async fn run(
    function: &impl Function,
    request: RunFunctionRequest,
    world: &[Value],
) -> RunFunctionResponse {
    let (mut request, mut last_required) = (request, None);
    for _ in 0..=MAX_ITERATIONS {
        let response =
            answer(function, request.clone()).await.unwrap_or_else(|e| panic!("the call failed: {e}"));
        let required = response.requirements.clone();
        if required.is_none() || required == last_required || is_fatal(&response) {
            return response;
        }
        request.required_resources = required
            .iter()
            .flat_map(|r| &r.resources)
            .map(|(name, selector)| {
                let items =
                    world.iter().filter(|object| matches(selector, object)).cloned().map(resource).collect();
                (name.clone(), Resources { items })
            })
            .collect();
        last_required = required;
    }
    panic!("the requirements did not become stable in {MAX_ITERATIONS} iterations")
}

/// A function that is a closure.
pub struct Scripted<F>(pub F);

#[async_trait]
impl<F> Function for Scripted<F>
where
    F: Fn(RunFunctionRequest) -> Result<RunFunctionResponse, Error> + Send + Sync + 'static,
{
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        (self.0)(request)
    }
}

/// Serves a function without TLS on a free port of this machine, for as long as the runtime lives.
///
/// # Panics
/// When there is no free port.
pub async fn serve(function: impl Function) -> SocketAddr {
    let options = ServeOptions { insecure: true, ..ServeOptions::default() };
    let Served { address, stop, .. } = serve_with(function, options).await;
    // A server stops when the sender is dropped.
    std::mem::forget(stop);
    address
}

/// A function that is served until it is stopped or dropped.
pub struct Served {
    /// Where calls are answered.
    pub address: SocketAddr,
    /// Where metrics are served, if they are.
    pub metrics_address: Option<SocketAddr>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ServeError>>,
}

impl Served {
    /// Stops the server, and waits until the calls under way have ended.
    ///
    /// # Panics
    /// When the server failed.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        let ended = self.task.await.unwrap_or_else(|e| panic!("the server panicked: {e}"));
        ended.unwrap_or_else(|e| panic!("the server failed: {e}"));
    }
}

/// Serves a function on this machine, at a free port unless the options name an address other than the default.
///
/// # Panics
/// When the server cannot listen.
pub async fn serve_with(function: impl Function, mut options: ServeOptions) -> Served {
    if options.address == ServeOptions::default().address {
        options.address = "127.0.0.1:0".to_owned();
    }
    let server = Server::bind(&options).await.unwrap_or_else(|e| panic!("cannot serve: {e}"));
    let address = server.local_addr().unwrap_or_else(|| panic!("not a TCP server"));
    let metrics_address = server.metrics_addr();
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(server.run(function, async {
        let _ = stopped.await;
    }));
    Served { address, metrics_address, stop, task }
}

/// Serves version v1beta1 of the protocol only, on a free port of this machine, for as long as the runtime lives. The
/// response to every request is the one that [`RunFunctionRequest::start_response`] returns.
///
/// # Panics
/// When there is no free port.
pub async fn serve_v1beta1() -> SocketAddr {
    serve_verbatim(|mut request| request.start_response()).await
}

/// The same for responses that a script makes. They are sent as they are, where [`serve`] sets the tag.
///
/// # Panics
/// When there is no free port.
pub async fn serve_verbatim(
    script: impl Fn(RunFunctionRequest) -> RunFunctionResponse + Send + Sync + 'static,
) -> SocketAddr {
    struct Beta<F>(F);

    #[async_trait]
    impl<F> beta::FunctionRunnerService for Beta<F>
    where
        F: Fn(RunFunctionRequest) -> RunFunctionResponse + Send + Sync + 'static,
    {
        async fn run_function(
            &self,
            request: tonic::Request<RunFunctionRequest>,
        ) -> Result<tonic::Response<RunFunctionResponse>, tonic::Status> {
            Ok(tonic::Response::new((self.0)(request.into_inner())))
        }
    }

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap_or_else(|e| panic!("no port: {e}"));
    let address = listener.local_addr().unwrap_or_else(|e| panic!("no address: {e}"));
    let service = beta::FunctionRunnerServiceServer::new(Beta(script));
    let server = tonic::transport::Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    address
}

fn is_fatal(response: &RunFunctionResponse) -> bool {
    response.results.iter().any(|result| result.severity() == crate::Severity::Fatal)
}

/// Whether a selector selects an object.
pub fn matches(selector: &ResourceSelector, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let selected = match &selector.r#match {
        None => true,
        Some(Match::MatchName(name)) => metadata["name"] == name.as_str(),
        Some(Match::MatchLabels(wanted)) => {
            wanted.labels.iter().all(|(key, value)| metadata["labels"][key] == value.as_str())
        }
    };
    let namespace = selector.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    selected
        && object["apiVersion"] == selector.api_version.as_str()
        && object["kind"] == selector.kind.as_str()
        && namespace.is_none_or(|namespace| metadata["namespace"] == namespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_select() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata":
            {"name": "p", "namespace": "ns", "labels": {"app": "x"}}});
        for (selector, expected) in [
            (ResourceSelector::all("v1", "Pod"), true),
            (ResourceSelector::all("v2", "Pod"), false),
            (ResourceSelector::all("v1", "Node"), false),
            (ResourceSelector::named("v1", "Pod", "p"), true),
            (ResourceSelector::named("v1", "Pod", "q"), false),
            (ResourceSelector::labelled("v1", "Pod", [("app", "x")]), true),
            (ResourceSelector::labelled("v1", "Pod", [("app", "y")]), false),
            (ResourceSelector::all("v1", "Pod").in_namespace("ns"), true),
            (ResourceSelector::all("v1", "Pod").in_namespace("other"), false),
        ] {
            assert_eq!(matches(&selector, &pod), expected, "{selector:?}");
        }
    }

    /// Requires one more thing each time, up to a number.
    struct Greedy(usize);

    #[async_trait]
    impl Function for Greedy {
        async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
            let mut response = request.start_response();
            for number in 0..=request.required_resources.len().min(self.0) {
                response.require(number.to_string(), ResourceSelector::all("v1", "Pod"));
            }
            Ok(response)
        }
    }

    #[tokio::test]
    async fn a_function_is_called_until_its_requirements_are_stable() {
        let response = run(&Greedy(2), RequestBuilder::new(json!({})).build(), &[]).await;
        assert_eq!(response.requirements.unwrap().resources.len(), 3);
    }

    #[tokio::test]
    #[should_panic(expected = "did not become stable")]
    async fn requirements_that_grow_do_not() {
        run(&Greedy(usize::MAX), RequestBuilder::new(json!({})).build(), &[]).await;
    }
}
