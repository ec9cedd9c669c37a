//! Functions are installed, changed and removed without a gap in which they cannot be called.

use crate::calls::{Actor, options, request, step};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};
use transom_compose::{FunctionRunner, StepRef, WantedRevision, environment, resources_mode};
use transom_function::testing::{Scripted, serve};
use transom_function::{Function, FunctionSet, RunFunctionRequest, async_trait};
use transom_runner::{
    Assembly, FunctionRuntime, InProcess, Installer, LocalRuntime, Problem, Reason, Resolver, RevisionId,
    RevisionSpec, Router, RuntimeState,
};
use transom_xapi::function::FunctionRevision;

/// A revision of the function `f`, named by its package and endpoint.
fn function(package: &str, endpoint: Option<&str>) -> RevisionSpec {
    numbered(0, package, endpoint)
}

fn numbered(number: i64, package: &str, endpoint: Option<&str>) -> RevisionSpec {
    let annotations = endpoint.map(|endpoint| json!({"transom.io/endpoint": endpoint}));
    let metadata = json!({
        "name": format!("f-{package}-{}", endpoint.unwrap_or_default()),
        "labels": {"pkg.crossplane.io/package": "f"}, "annotations": annotations.unwrap_or_default(),
    });
    let spec = json!({"image": package, "desiredState": "Active", "revision": number});
    let revision = FunctionRevision::deserialize(&json!({"metadata": metadata, "spec": spec})).unwrap();
    RevisionSpec::of(&revision, &Resolver::new(["function-word"]))
}

fn at(address: SocketAddr) -> RevisionSpec {
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
    called_by(router, WantedRevision::Newest).await
}

async fn called_by(router: &Router, revision: WantedRevision<'_>) -> Option<String> {
    let response = router.run(StepRef { revision, ..step("f") }, request("")).await.ok()?.response;
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
    let remote =
        |number, address: SocketAddr| numbered(number, "example.org/remote:v1", Some(&address.to_string()));
    assert!(installer.install(&remote(1, old)).await.is_ready());
    assert_eq!(called(&router).await.as_deref(), Some("old"));
    for _ in 0..2 {
        let state = installer.install(&remote(2, missing)).await;
        let problem = state.problem().expect("nothing listens there");
        assert!(matches!(state, RuntimeState::Pending { .. }) && problem.reason == Reason::Unreachable);
        assert!(problem.message.starts_with(&format!("cannot reach {missing}: ")), "{problem}");
        assert_eq!(called(&router).await.as_deref(), Some("old"), "it is called until the new one is ready");
        installer.retire(&remote(1, old).id).await;
        assert_eq!(called(&router).await.as_deref(), Some("old"), "also when it is not active any more");
        assert_eq!(router.revisions("f").len(), 2);
    }
    assert!(installer.install(&remote(3, new)).await.is_ready());
    assert_eq!(called(&router).await.as_deref(), Some("new"));
    installer.retire(&remote(2, missing).id).await;
    assert_eq!(router.revisions("f"), [remote(3, new).id], "what is not called is released");
}

#[tokio::test]
async fn several_active_revisions_are_called_as_steps_want() {
    let Installed { installer, router } = local();
    let labelled = |number: i64, address: SocketAddr, channel: &str| {
        let mut spec = numbered(number, &format!("r.io/f:v{number}"), Some(&address.to_string()));
        spec.id.revision = format!("f-{number}");
        spec.traits.labels.insert("channel".to_owned(), channel.to_owned());
        spec.traits.digest = format!("sha256:{number}");
        spec
    };
    let rerouted = Arc::new(Mutex::new(0));
    let count = rerouted.clone();
    router.on_reroute(Arc::new(move |function: &str| {
        assert_eq!(function, "f");
        *count.lock().unwrap() += 1;
    }));
    let (one, two) = (serve(word("one")).await, serve(word("two")).await);
    for _ in 0..2 {
        assert!(installer.install(&labelled(1, one, "stable")).await.is_ready());
        assert!(installer.install(&labelled(2, two, "alpha")).await.is_ready());
    }
    assert_eq!(*rerouted.lock().unwrap(), 2, "what is installed again changes nothing");
    let labels = |channel: &str| BTreeMap::from([("channel".to_owned(), channel.to_owned())]);
    let (stable, alpha) = (labels("stable"), labels("alpha"));
    for (wanted, word) in [
        (WantedRevision::Newest, Some("two")),
        (WantedRevision::Named("f-1"), Some("one")),
        (WantedRevision::Named("f-3"), None),
        (WantedRevision::Labelled(&stable), Some("one")),
        (WantedRevision::Labelled(&alpha), Some("two")),
        (WantedRevision::Image("r.io/f@sha256:1"), Some("one")),
        (WantedRevision::Image("r.io/f@sha256:3"), None),
    ] {
        assert_eq!(called_by(&router, wanted).await.as_deref(), word, "{wanted:?}");
    }
    // Labels move.
    assert!(installer.install(&labelled(2, two, "stable")).await.is_ready());
    assert_eq!(*rerouted.lock().unwrap(), 3);
    assert_eq!(called_by(&router, WantedRevision::Labelled(&stable)).await.as_deref(), Some("two"));
    assert_eq!(called_by(&router, WantedRevision::Labelled(&alpha)).await, None);
    // One that is not active any more is released at once, since the other is ready.
    installer.retire(&labelled(2, two, "").id).await;
    assert_eq!(called(&router).await.as_deref(), Some("one"));
    let step = StepRef { revision: WantedRevision::Named("f-2"), ..step("f") };
    let error = router.run(step, request("")).await.unwrap_err().to_string();
    assert!(
        error.contains("FunctionRevision \"f-2\"") && error.ends_with("active are f-1 (channel=stable)"),
        "{error}"
    );
}

#[tokio::test]
async fn a_function_that_never_was_ready_fails_with_the_reason() {
    let Installed { installer, router } = local();
    let missing = unused().await;
    assert!(!installer.install(&at(missing)).await.is_ready());
    let error = router.run(step("f"), request("")).await.unwrap_err().to_string();
    assert!(error.contains("Unavailable") && error.contains(&missing.to_string()), "{error}");
    let other = unused().await;
    let newer = numbered(1, "example.org/remote:v1", Some(&other.to_string()));
    assert!(!installer.install(&newer).await.is_ready());
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
            "\"other\" is not built in: this runtime does not run packages; or say where the function \
             listens with the annotation transom.io/endpoint",
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
    let ready = |name| RuntimeState::Ready(Arc::new(InProcess::new(Arc::new(word(name)))));
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
        installer.install(&numbered(1, "v2", None)).await;
        assert_eq!(called(&router).await.as_deref(), Some("one"));
        installer.retire(&function("v1", None).id).await;
        assert_eq!(called(&router).await.as_deref(), Some("one"));
    }
    set("v2", ready("two"));
    installer.install(&numbered(1, "v2", None)).await;
    assert_eq!(called(&router).await.as_deref(), Some("two"));
    let log = runtime.log.lock().unwrap().clone();
    let released: Vec<_> = log.iter().filter(|line| line.starts_with("release")).collect();
    assert_eq!((released.len(), log.last().map(String::as_str)), (1, Some("release f")), "{log:?}");
}

#[tokio::test]
async fn what_a_killed_process_did_not_release_is_released_when_it_is_retired() {
    let (runtime, router) = (Arc::new(Hostile::default()), Arc::new(Router::new(options())));
    let installer = Installer::new(Resolver::default(), runtime.clone(), router.clone());
    let ready = RuntimeState::Ready(Arc::new(InProcess::new(Arc::new(word("two")))));
    runtime.states.lock().unwrap().insert("v2".to_owned(), ready);
    installer.install(&numbered(1, "v2", None)).await;
    // It was deactivated by the process before, which ended then.
    installer.retire(&function("v1", None).id).await;
    assert_eq!(*runtime.log.lock().unwrap(), ["ensure v2", "release f"]);
    assert_eq!(called(&router).await.as_deref(), Some("two"));
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

#[tokio::test]
async fn the_newer_of_two_ready_revisions_is_called_whichever_is_installed_last() {
    let (runtime, router) = (Arc::new(Hostile::default()), Arc::new(Router::new(options())));
    let installer = Installer::new(Resolver::default(), runtime.clone(), router.clone());
    let ready = |name| RuntimeState::Ready(Arc::new(InProcess::new(Arc::new(word(name)))));
    let (first, second) = (numbered(1, "v1", None), numbered(2, "v2", None));
    for (package, state) in [("v1", ready("one")), ("v2", ready("two"))] {
        runtime.states.lock().unwrap().insert(package.to_owned(), state);
    }
    installer.install(&second).await;
    // A run that read the first revision before it was deactivated.
    installer.install(&first).await;
    assert_eq!(called(&router).await.as_deref(), Some("two"));
    installer.retire(&first.id).await;
    assert_eq!(
        router.revisions("f"),
        std::slice::from_ref(&second.id),
        "what is not called is released at once"
    );
    // A roll-back gives the first one the highest number.
    installer.install(&numbered(3, "v1", None)).await;
    assert_eq!(called(&router).await.as_deref(), Some("one"));
    // One that is retired is called until another is ready, whatever its number.
    installer.discard(&second.id).await;
    installer.retire(&first.id).await;
    assert_eq!(called(&router).await.as_deref(), Some("one"));
    assert_eq!(router.revisions("f"), std::slice::from_ref(&first.id));
    installer.install(&second).await;
    assert_eq!(called(&router).await.as_deref(), Some("two"));
    installer.discard(&second.id).await;
    assert!(!router.knows("f"));
}

#[tokio::test]
async fn an_older_revision_is_called_while_the_newer_is_not_ready() {
    let Installed { installer, router } = local();
    let missing = unused().await.to_string();
    let newer = numbered(2, "example.org/remote:v2", Some(&missing));
    assert!(!installer.install(&newer).await.is_ready());
    assert!(installer.install(&numbered(1, "example.org/function-word:v1", None)).await.is_ready());
    assert_eq!(called(&router).await.as_deref(), Some("builtin"));
    assert!(!installer.install(&newer).await.is_ready());
    assert_eq!(called(&router).await.as_deref(), Some("builtin"));
}

#[tokio::test]
async fn calls_of_a_function_without_an_active_revision_fail_with_the_reason() {
    let Installed { installer, router } = local();
    let builtin = function("example.org/function-word:v1", None);
    installer.install(&builtin).await;
    installer.deactivate("f", "no revision is active").await;
    let error = router.run(step("f"), request("")).await.unwrap_err().to_string();
    assert_eq!(error, "there is no function \"f\": no revision is active");
    installer.install(&builtin).await;
    installer.remove("f").await;
    let error = router.run(step("f"), request("")).await.unwrap_err().to_string();
    assert!(error.contains("no such Function is installed"), "{error}");
    installer.install(&function("example.org/other:v1", None)).await;
    let error = router.run(step("f"), request("")).await.unwrap_err().to_string();
    assert!(error.contains("\"other\" is not built in"), "{error}");
}

/// One function of this process.
struct Sole(Arc<dyn Function>);

impl FunctionSet for Sole {
    fn names(&self) -> Vec<String> {
        vec!["function-word".to_owned()]
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Function>> {
        (name == "function-word").then(|| self.0.clone())
    }

    fn original_version(&self, _: &str) -> Option<&'static str> {
        Some("v1.2.3")
    }

    fn templates(&self) -> Arc<dyn Function> {
        Arc::new(word("templates"))
    }

    fn environment(&self) -> Arc<dyn Function> {
        Arc::new(word("environment"))
    }
}

#[tokio::test]
async fn an_assembly_runs_its_functions_and_compositions_of_crossplane_v1() {
    let assembly = Assembly::new(Sole(Arc::new(word("builtin"))), options());
    let router = Arc::new(assembly.router());
    let installer = Installer::new(assembly.resolver(), Arc::new(assembly.runtime()), router.clone());
    let state = installer.install(&function("example.org/function-word:v1", None)).await;
    assert_eq!(state.instance().unwrap().note(), "runs in this process; equals function-word v1.2.3");
    assert_eq!(called(&router).await.as_deref(), Some("builtin"));
    for (function, expected) in
        [(resources_mode::FUNCTION, "templates"), (environment::FUNCTION, "environment")]
    {
        let answer = router.run(step(function), request("")).await.unwrap();
        let context = answer.response.context.unwrap();
        assert_eq!(context.fields()["word"], expected);
    }
}

#[tokio::test]
async fn a_built_in_says_how_it_runs_and_what_it_equals() {
    let builtin: Arc<dyn Function> = Arc::new(word("builtin"));
    let find = move |_: &str| Some(builtin.clone());
    let plain = LocalRuntime::new(find.clone(), options());
    let versioned = LocalRuntime::new(find, options()).with_versions(|_| Some("v1.2.3"));
    let spec = function("example.org/function-word:v1", None);
    for (runtime, expected) in
        [(plain, "runs in this process"), (versioned, "runs in this process; equals function-word v1.2.3")]
    {
        assert_eq!(runtime.ensure(&spec).await.instance().unwrap().note(), expected);
    }
}
