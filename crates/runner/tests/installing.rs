//! Functions are installed, changed and removed without a gap in which they cannot be called.

use crate::calls::{Actor, options, request, step};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};
use transom_compose::FunctionRunner;
use transom_function::testing::{Scripted, serve};
use transom_function::{Function, RunFunctionRequest, async_trait};
use transom_runner::{
    FunctionRuntime, InProcess, Installer, LocalRuntime, Problem, Reason, Resolver, RevisionId, RevisionSpec,
    Router, RuntimeState,
};
use transom_xapi::Function as FunctionObject;

fn function(package: &str, endpoint: Option<&str>) -> FunctionObject {
    let annotations = endpoint.map(|endpoint| json!({"transom.io/endpoint": endpoint}));
    let metadata = json!({"name": "f", "annotations": annotations.unwrap_or_default()});
    FunctionObject::deserialize(&json!({"metadata": metadata, "spec": {"package": package}})).unwrap()
}

fn at(address: SocketAddr) -> FunctionObject {
    function("example.org/remote:v1", Some(&address.to_string()))
}

/// An address at which nothing listens.
async fn unused() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// A function that responds with a word in its context.
fn word(word: &'static str) -> impl Function {
    Scripted(move |mut request: RunFunctionRequest| {
        let mut response = request.start_response();
        response.set_context("word", word);
        Ok(response)
    })
}

async fn called(router: &Router) -> Option<String> {
    let response = router.run(step("f"), request("")).await.ok()?;
    response.context?.fields().get("word")?.as_str().map(str::to_owned)
}

struct Installed {
    installer: Installer,
    router: Arc<Router>,
}

/// An installer of functions at endpoints and one built-in.
fn local() -> Installed {
    let router = Arc::new(Router::new(options()));
    let builtin: Arc<dyn Function> = Arc::new(word("builtin"));
    let find = move |name: &str| (name == "function-word").then(|| builtin.clone());
    let runtime = Arc::new(LocalRuntime::new(find, options()));
    let installer = Installer::new(Resolver::new(["function-word"]), runtime, router.clone());
    Installed { installer, router }
}

#[tokio::test]
async fn a_built_in_is_installed_once() {
    let Installed { installer, router } = local();
    for _ in 0..2 {
        let state = installer.install(&function("example.org/function-word:v1", None)).await;
        assert!(state.is_ready(), "{state:?}");
        assert_eq!(called(&router).await.as_deref(), Some("builtin"));
        assert_eq!(router.revisions("f").len(), 1);
    }
    let (id, instance) = router.active("f").unwrap();
    assert!(id.revision.starts_with("f-") && instance.target() == "in-process", "{id}");
    installer.remove("f").await;
    assert!(!router.knows("f"));
}

#[tokio::test]
async fn a_new_endpoint_is_ready_before_the_old_one_is_released() {
    let Installed { installer, router } = local();
    let (old, missing, new) = (serve(word("old")).await, unused().await, serve(word("new")).await);
    assert!(installer.install(&at(old)).await.is_ready());
    assert_eq!(called(&router).await.as_deref(), Some("old"));
    for _ in 0..2 {
        let state = installer.install(&at(missing)).await;
        let problem = state.problem().expect("nothing listens there");
        assert!(matches!(state, RuntimeState::Pending { .. }) && problem.reason == Reason::Unreachable);
        assert!(problem.message.starts_with(&format!("cannot reach {missing}: ")), "{problem}");
        assert_eq!(called(&router).await.as_deref(), Some("old"), "it is called until the new one is ready");
        assert_eq!(router.revisions("f").len(), 2);
    }
    assert!(installer.install(&at(new)).await.is_ready());
    assert_eq!(called(&router).await.as_deref(), Some("new"));
    assert_eq!(router.revisions("f").len(), 1, "what is not called is released");
}

#[tokio::test]
async fn a_function_that_never_was_ready_fails_with_the_reason() {
    let Installed { installer, router } = local();
    let missing = unused().await;
    assert!(!installer.install(&at(missing)).await.is_ready());
    let error = router.run(step("f"), request("")).await.unwrap_err().to_string();
    assert!(error.contains("Unavailable") && error.contains(&missing.to_string()), "{error}");
    let other = unused().await;
    assert!(!installer.install(&at(other)).await.is_ready());
    let error = router.run(step("f"), request("")).await.unwrap_err().to_string();
    assert!(error.contains(&other.to_string()), "neither is ready, so the newer is called: {error}");
}

#[tokio::test]
async fn what_cannot_be_run_says_why_and_leaves_what_runs() {
    let Installed { installer, router } = local();
    installer.install(&function("example.org/function-word:v1", None)).await;
    for (function, reason, text) in [
        (
            function("example.org/other:v1", None),
            Reason::UnsupportedPackage,
            "\"other\" is not built in, and packages cannot be run yet; say where the function listens with the \
             annotation transom.io/endpoint",
        ),
        (
            function("example.org/other:v1", Some("nowhere")),
            Reason::InvalidEndpoint,
            "\"nowhere\" is not an address of a function; write it like localhost:9443: it needs a host and a port",
        ),
    ] {
        let state = installer.install(&function).await;
        assert!(matches!(state, RuntimeState::Failed(_)), "{state:?}");
        assert_eq!(state.problem(), Some(&Problem::new(reason, text)));
        assert_eq!(called(&router).await.as_deref(), Some("builtin"));
    }
}

/// A runtime whose revisions are in the states that a test sets by package.
#[derive(Default)]
struct Hostile {
    states: Mutex<BTreeMap<String, RuntimeState>>,
    log: Mutex<Vec<String>>,
}

#[async_trait]
impl FunctionRuntime for Hostile {
    async fn ensure(&self, revision: &RevisionSpec) -> RuntimeState {
        self.log.lock().unwrap().push(format!("ensure {}", revision.package));
        self.states.lock().unwrap()[&revision.package].clone()
    }

    async fn release(&self, revision: &RevisionId) {
        self.log.lock().unwrap().push(format!("release {}", revision.function));
    }
}

#[tokio::test]
async fn a_revision_that_is_never_ready_or_flaps_does_not_interrupt_calls() {
    let (runtime, router) = (Arc::new(Hostile::default()), Arc::new(Router::new(options())));
    let installer = Installer::new(Resolver::default(), runtime.clone(), router.clone());
    let ready = |name| RuntimeState::Ready(Arc::new(InProcess(Arc::new(word(name)))));
    let starting = || {
        let problem = Problem::new(Reason::Unreachable, "the container is starting");
        RuntimeState::Pending { problem, instance: None }
    };
    let set = |package: &str, state| drop(runtime.states.lock().unwrap().insert(package.to_owned(), state));
    set("v1", starting());
    assert!(!installer.install(&function("v1", None)).await.is_ready());
    assert!(!router.knows("f"), "there is nothing to call yet");
    set("v1", ready("one"));
    installer.install(&function("v1", None)).await;
    set("v2", starting());
    for _ in 0..3 {
        installer.install(&function("v2", None)).await;
        assert_eq!(called(&router).await.as_deref(), Some("one"));
    }
    set("v2", ready("two"));
    installer.install(&function("v2", None)).await;
    assert_eq!(called(&router).await.as_deref(), Some("two"));
    let log = runtime.log.lock().unwrap().clone();
    let released: Vec<_> = log.iter().filter(|line| line.starts_with("release")).collect();
    assert_eq!((released.len(), log.last().map(String::as_str)), (1, Some("release f")), "{log:?}");
}

#[tokio::test]
async fn the_connection_of_a_revision_is_kept() {
    let address = serve(Actor).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let front = listener.local_addr().unwrap();
    let (accepted, mut connections) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut inbound, _)) = listener.accept().await {
            let _ = accepted.send(());
            tokio::spawn(async move {
                let mut outbound = TcpStream::connect(address).await.expect("connects");
                let _ = tokio::io::copy_bidirectional(&mut inbound, &mut outbound).await;
            });
        }
    });
    let Installed { installer, router } = local();
    for _ in 0..5 {
        assert!(installer.install(&at(front)).await.is_ready());
        router.run(step("f"), request("echo")).await.unwrap();
    }
    for _ in 0..6 {
        connections.recv().await.expect("each of the five probes connects, and all calls share a connection");
    }
    router.run(step("f"), request("echo")).await.unwrap();
    assert!(connections.try_recv().is_err(), "one connection carries all calls");
}
