//! A control plane in this process: API server, store, controllers and functions, with a layer between the
//! controllers and the server that counts their writes and can cut them off.

use crate::life::packages::{MemoryRegistry, OnCluster};
pub(super) use crate::life::test_functions::TestFunctions;
use crate::usage_protection::UsageProtection;
use futures_util::StreamExt;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, WatchEvent, WatchParams};
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{self, Poll};
use std::time::Duration;
use tower::Service;
use transom_apiserver::{Identity, Server};
use transom_compose::FunctionRunner;
use transom_controllers::{Context, Controllers, Notice, Options, PackageSources, Protection};
use transom_engine::{Clock, Cluster, DeleteOptions, Key, Metrics};
use transom_function::testing::Scripted;
use transom_function::{Error, Function, Resource, RunFunctionRequest, RunFunctionResponse};
use transom_object::{GroupVersion, GroupVersionKind, meta};
use transom_packages::names::revision_name;
use transom_runner::{PackageImage, RevisionId, RevisionSpec, Source};
use transom_store::Store;
use transom_testkit::embedded;

pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Between the controllers and the server.
#[derive(Default)]
pub(super) struct Wire {
    /// Requests of the controllers that were sent and could change something, except for Events.
    pub writes: AtomicU64,
    /// So many more writes until the line is cut; large: never.
    pub left: AtomicI64,
    pub cut: AtomicBool,
    /// Whether the write that cuts the line is still made, and only its answer lost.
    pub lose_answer: AtomicBool,
    pub log: Mutex<Vec<String>>,
    /// Writes that begin like this are made unreadable on their way, so that the server refuses them.
    pub refused: Mutex<String>,
    /// What was read, watches included.
    pub reads: Mutex<Vec<String>>,
    /// How long after a change a watch reports it, in milliseconds.
    pub lag: AtomicU64,
    /// The plural of the kind whose watches are late; empty: those of all kinds.
    pub late_kind: Mutex<String>,
}

#[derive(Clone)]
struct Cable {
    server: Server,
    wire: Arc<Wire>,
    hidden: Hidden,
}

/// Requests that end like this are not answered.
type Hidden = Arc<tokio::sync::watch::Sender<Option<String>>>;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Sent = UnsyncBoxBody<bytes::Bytes, Failure>;
type Answer = Result<Response<Sent>, Failure>;

/// What a watch sends, later.
fn late(body: Sent, wire: Arc<Wire>, path: String) -> Sent {
    let frames = futures_util::stream::unfold((body, wire, path), |(mut body, wire, path)| async move {
        let frame = body.frame().await?;
        let is_late = path.contains(&*wire.late_kind.lock().unwrap());
        // Even a sleep of nothing takes a while.
        match wire.lag.load(Ordering::SeqCst) {
            lag if lag > 0 && is_late => tokio::time::sleep(Duration::from_millis(lag)).await,
            _ => {}
        }
        Some((frame, (body, wire, path)))
    });
    StreamBody::new(frames).boxed_unsync()
}

impl Service<Request<Body>> for Cable {
    type Response = Response<Sent>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let is_event = request.uri().path().contains("/events");
        let writes = *request.method() != Method::GET && !is_event;
        // A dry run changes nothing, and may be repeated by every process that starts.
        let changes = writes && !request.uri().query().is_some_and(|query| query.contains("dryRun="));
        if changes {
            let left = self.wire.left.fetch_sub(1, Ordering::SeqCst);
            if left == 0 {
                self.wire.cut.store(true, Ordering::SeqCst);
            }
        }
        let lost = changes
            && self.wire.left.load(Ordering::SeqCst) == -1
            && self.wire.lose_answer.load(Ordering::SeqCst);
        if self.wire.cut.load(Ordering::SeqCst) && !lost {
            return Box::pin(std::future::pending());
        }
        if writes {
            self.wire.writes.fetch_add(1, Ordering::SeqCst);
            let line = format!("{} {}", request.method(), request.uri());
            let refused = self.wire.refused.lock().unwrap().clone();
            if !refused.is_empty() && line.starts_with(&refused) {
                let nonsense = http::HeaderValue::from_static("application/nonsense");
                request.headers_mut().insert("content-type", nonsense);
            }
            self.wire.log.lock().unwrap().push(line);
        } else if !is_event {
            self.wire.reads.lock().unwrap().push(request.uri().to_string());
        }
        request.extensions_mut().insert(Identity::admin("crossplane"));
        let server = self.server.clone();
        let (mut hidden, path) = (self.hidden.subscribe(), request.uri().to_string());
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let wire = self.wire.clone();
        Box::pin(async move {
            let seen = |hidden: &Option<String>| hidden.as_ref().is_none_or(|hidden| !path.ends_with(hidden));
            let _ = hidden.wait_for(seen).await;
            let answer = server.handle(request).await;
            if lost {
                std::future::pending::<()>().await;
            }
            let sent = answer.map(|body| body.map_err(Failure::from).boxed_unsync());
            Ok(if watches { sent.map(|body| late(body, wire, path)) } else { sent })
        })
    }
}

pub(super) struct Plane {
    pub server: Server,
    pub wire: Arc<Wire>,
    pub functions: TestFunctions,
    /// The user's way in, past the wire.
    pub user: Cluster,
    pub notices: Arc<Mutex<Vec<Notice>>>,
    pub metrics: Arc<Metrics>,
    protection: Arc<Protection>,
    hidden: Hidden,
    pub options: Options,
    /// What calls functions instead of the router.
    pub runner: Option<Arc<dyn FunctionRunner>>,
    /// Runs packages by Deployments.
    pub on_cluster: Option<OnCluster>,
    /// Where packages come from.
    pub registry: Arc<MemoryRegistry>,
    controllers: Option<Controllers>,
    nop: Option<transom_provider::RunningProvider>,
}

fn client_of(server: &Server, wire: Arc<Wire>, hidden: Hidden) -> kube::Client {
    kube::Client::new(Cable { server: server.clone(), wire, hidden }, "default")
}

impl Plane {
    /// A plane without controllers.
    pub(super) async fn quiet() -> Self {
        Self::guarded(Box::new(transom_apiserver::MastersOnly)).await
    }

    /// A plane without controllers, with this authorizer.
    pub(super) async fn guarded(authorizer: Box<dyn transom_apiserver::Authorizer>) -> Self {
        let store = Store::in_memory(transom_store::Options::default());
        let protection: Arc<Protection> = Arc::default();
        let options = transom_apiserver::Options {
            authorizer,
            admission: vec![Box::new(UsageProtection(protection.clone()))],
            ..Default::default()
        };
        let server = embedded::server_with(&store, options).await;
        let upkeep = server.clone();
        tokio::spawn(async move { upkeep.run_upkeep().await });
        let user = Cluster::new(embedded::kube_client(&server, Identity::admin("user")));
        let (functions, notices, metrics) = (TestFunctions::default(), Arc::default(), Arc::default());
        let wire = Arc::new(Wire { left: AtomicI64::new(i64::MAX), ..Wire::default() });
        Self {
            server,
            wire,
            functions,
            user,
            notices,
            metrics,
            protection,
            hidden: Arc::new(tokio::sync::watch::channel(None).0),
            options: Options::default(),
            runner: None,
            on_cluster: None,
            registry: Arc::default(),
            controllers: None,
            nop: None,
        }
    }

    /// A plane with controllers that have installed their kinds.
    pub(super) async fn new() -> Self {
        let mut plane = Self::quiet().await;
        plane.start().await;
        plane
    }

    pub(super) async fn start(&mut self) {
        self.try_start(i64::MAX, false).await.expect("the controllers start");
    }

    /// Starts controllers that can write so often and no more.
    pub(super) async fn try_start(&mut self, writes: i64, lose_answer: bool) -> transom_engine::Result<()> {
        self.stop();
        let (left, lose_answer) = (AtomicI64::new(writes), AtomicBool::new(lose_answer));
        self.wire = Arc::new(Wire { left, lose_answer, ..Wire::default() });
        let notices = self.notices.clone();
        let context = Context {
            announce: Arc::new(move |notice: &Notice| notices.lock().unwrap().push(notice.clone())),
            metrics: self.metrics.clone(),
            protection: self.protection.clone(),
            options: self.options.clone(),
            ..self.context()
        };
        self.controllers = Some(Controllers::start(context).await?);
        Ok(())
    }

    /// What controllers need of this plane, with the defaults of the binary.
    fn context(&self) -> Context {
        let client = client_of(&self.server, self.wire.clone(), self.hidden.clone());
        let runner = self.runner.clone().unwrap_or_else(|| self.functions.router.clone());
        let read_pull_secret = Arc::new(crate::life::packages::read_pull_secret);
        let packages = PackageSources::new(self.registry.clone(), read_pull_secret, self.registry.clone());
        let clock = Clock::starting_at(transom_object::time::Timestamp::now());
        let functions = self.functions.installer.clone();
        match &self.on_cluster {
            None => Context::new(client, runner, functions, packages, clock),
            Some(on_cluster) => {
                let (functions, providers) = on_cluster.run(&client, clock, self.functions.router.clone());
                Context { providers, ..Context::new(client, runner, functions, packages, clock) }
            }
        }
    }

    /// Starts the provider of NopResources.
    pub(super) async fn run_nops(&mut self) {
        let client = client_of(&self.server, self.wire.clone(), self.hidden.clone());
        let provider = transom_providers::nop::provider();
        provider.install(&transom_engine::Cluster::new(client.clone())).await.expect("its kinds are served");
        let clock = Clock::starting_at(transom_object::time::Timestamp::now());
        let context = transom_provider::Context {
            client,
            clock,
            metrics: self.metrics.clone(),
            seed: 1,
            ownership: transom_engine::Ownership::whole(),
        };
        self.nop = Some(provider.start(context));
    }

    /// Stops the controllers dead.
    pub(super) fn stop(&mut self) {
        self.wire.cut.store(true, Ordering::SeqCst);
        self.controllers = None;
        self.nop = None;
    }

    /// Has the server refuse writes of the controllers that begin like this, until the next call.
    pub(super) fn refuse(&self, writes: &str) {
        *self.wire.refused.lock().unwrap() = writes.to_owned();
    }

    pub(super) fn readiness(&self) -> Arc<transom_engine::Readiness> {
        self.controllers.as_ref().expect("there are controllers").readiness()
    }

    pub(super) fn watched_kinds(&self) -> Vec<GroupVersionKind> {
        let mirrors = self.controllers.iter().flat_map(Controllers::mirrors);
        mirrors.map(|mirror| mirror.gvk().clone()).collect()
    }

    pub(super) fn writes(&self) -> u64 {
        self.wire.writes.load(Ordering::SeqCst)
    }

    /// Does not let the watches of a kind begin, until it does.
    pub(super) fn hide(&self, plural: &str) {
        self.hidden.send_replace(Some(format!("/{plural}?limit=500")));
    }

    pub(super) fn show(&self) {
        self.hidden.send_replace(None);
    }

    /// Watches of a kind report changes so much later.
    pub(super) fn delay_watches(&self, plural: &str, lag: Duration) {
        *self.wire.late_kind.lock().unwrap() = plural.to_owned();
        self.wire.lag.store(u64::try_from(lag.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// What the controllers read since this was last asked.
    pub(super) fn take_reads(&self) -> Vec<String> {
        std::mem::take(&mut *self.wire.reads.lock().unwrap())
    }

    pub(super) fn log(&self) -> Vec<String> {
        self.wire.log.lock().unwrap().clone()
    }

    /// A function of a test, installed under its own name.
    pub(super) async fn function(
        &self,
        name: &str,
        script: impl Fn(RunFunctionRequest) -> Result<RunFunctionResponse, Error> + Send + Sync + 'static,
    ) {
        let function: Arc<dyn Function> = Arc::new(Scripted(script));
        self.functions.scripts.lock().unwrap().insert(name.to_owned(), function);
        let package = format!("example.org/{name}:v1");
        let digest = self.registry.push(&package, &crate::life::packages::function_package(name, ""));
        // Callable from now on, as if the controllers had seen it already.
        let revision = RevisionSpec {
            id: RevisionId { function: name.to_owned(), revision: revision_name(name, &digest) },
            number: 0,
            package: package.clone(),
            source: Source::Package { reference: package.clone(), repository: name.to_owned() },
            traits: Default::default(),
            image: PackageImage::default(),
            config: Arc::default(),
        };
        assert!(self.functions.installer.install(&revision).await.is_ready());
        self.apply(&crate::life::packages::install_function(name, &package)).await;
    }

    /// Waits until a function runs with a runtime config that contains a text.
    pub(super) async fn until_function_runs_with(&self, name: &str, text: &str) {
        let deadline = std::time::Instant::now() + PATIENCE;
        let config = || self.functions.configs.lock().unwrap().get(name).cloned().unwrap_or_default();
        while !config().to_string().contains(text) {
            assert!(std::time::Instant::now() < deadline, "{name} runs with {:#}", config());
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }

    /// Applies documents as a user does.
    pub(super) async fn apply(&self, yaml: &str) {
        for object in documents(yaml) {
            let applied = self.user.apply(&object, "kubectl").await;
            applied.unwrap_or_else(|e| {
                panic!("cannot apply {} {}: {e}", meta::kind(&object), meta::name(&object))
            });
        }
    }

    pub(super) async fn try_apply(&self, yaml: &str) -> transom_engine::Result<Value> {
        self.user.apply(&documents(yaml)[0], "kubectl").await
    }

    /// Collects every state of the objects of a kind from now on.
    pub(super) async fn record(&self, kind: &str, plural: &str) -> Arc<Mutex<Vec<Value>>> {
        let user = embedded::kube_client(&self.server, Identity::admin("user"));
        let gvk = gvk(kind);
        let resource = ApiResource {
            group: gvk.group.to_string(),
            version: gvk.version.to_string(),
            api_version: gvk.api_version(),
            kind: gvk.kind.to_string(),
            plural: plural.to_owned(),
        };
        let api: Api<DynamicObject> = Api::all_with(user, &resource);
        let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
        let events = api.watch(&WatchParams::default().timeout(290), "0").await.expect("it can be watched");
        let recorded = seen.clone();
        tokio::spawn(events.for_each(move |event| {
            if let Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) = event {
                recorded.lock().unwrap().push(json!(object));
            }
            std::future::ready(())
        }));
        seen
    }

    /// An object, by `apiVersion/kind` and `name` or `namespace/name`.
    pub(super) async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        self.user.get(&gvk(kind), namespace, name).await.ok().flatten()
    }

    pub(super) async fn list(&self, kind: &str) -> Vec<Value> {
        self.user.list(&gvk(kind), "", &BTreeMap::new()).await.unwrap_or_default()
    }

    pub(super) async fn delete(&self, kind: &str, name: &str) {
        self.delete_with(kind, name, None).await;
    }

    pub(super) async fn delete_with(&self, kind: &str, name: &str, propagation: Option<&str>) {
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let options = DeleteOptions { propagation, uid: None };
        self.user.delete(&gvk(kind), namespace, name, options).await.expect("it can be deleted");
    }

    pub(super) async fn patch(&self, kind: &str, name: &str, patch: Value) -> Value {
        let object = self.get(kind, name).await.expect("it is there");
        self.user.merge_patch(&object, &patch, "kubectl-edit").await.expect("it can be patched")
    }

    /// Waits until an object looks as wanted.
    pub(super) async fn until(&self, kind: &str, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let object = self.get(kind, name).await;
            if let Some(object) = object.as_ref().filter(|o| wanted(o)) {
                return object.clone();
            }
            if std::time::Instant::now() > deadline {
                let events = self.events_of(name.rsplit('/').next().unwrap_or(name)).await;
                let shown = serde_json::to_string_pretty(&object).unwrap_or_default();
                panic!(
                    "{kind} {name} does not look as wanted:\n{shown}\nevents: {events:#?}\nwrites: {:#?}",
                    self.log()
                );
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }

    /// Waits until an object looks as wanted while the clock of the controllers stands still, so that nothing runs that waits
    /// for a time, such as a retry after a failure.
    pub(super) async fn until_without_time(&self, kind: &str, name: &str, wanted: impl Fn(&Value) -> bool) {
        tokio::time::pause();
        let deadline = std::time::Instant::now() + PATIENCE;
        while !self.get(kind, name).await.is_some_and(|object| wanted(&object)) {
            assert!(std::time::Instant::now() < deadline, "{kind} {name} waits for a time");
            // The clock would be advanced if this task slept, too.
            tokio::task::yield_now().await;
        }
        tokio::time::resume();
    }

    pub(super) async fn until_gone(&self, kind: &str, name: &str) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while let Some(object) = self.get(kind, name).await {
            let shown = serde_json::to_string_pretty(&object).unwrap_or_default();
            assert!(std::time::Instant::now() < deadline, "{kind} {name} does not go:\n{shown}");
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }

    pub(super) async fn until_true(&self, kind: &str, name: &str, condition: &str) -> Value {
        self.until(kind, name, |o| status_of(o, condition) == "True").await
    }

    /// Waits until the line is cut, or the controllers have nothing left to do.
    pub(super) async fn until_cut(&self) {
        let deadline = std::time::Instant::now() + PATIENCE;
        let is_cut = || self.wire.cut.load(Ordering::SeqCst);
        while !is_cut() && !self.is_idle().await {
            assert!(is_cut() || std::time::Instant::now() < deadline, "not idle: {:#?}", self.log());
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }

    /// Waits until nothing is left to do: the watches of the controllers have reported everything that is stored, no key
    /// runs or is ready to run, all events are written, and the server has deleted what lost its owner. Returns the
    /// number of writes.
    pub(super) async fn until_idle(&self) -> u64 {
        let deadline = std::time::Instant::now() + PATIENCE;
        while !self.is_idle().await {
            let overdue = std::time::Instant::now() > deadline;
            assert!(!overdue, "not idle: {:?}\n{:#?}", self.metrics.queues(), self.log());
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        self.writes()
    }

    async fn is_idle(&self) -> bool {
        let Some(revision) = self.server.upkeep_idle_at() else { return false };
        let before = (self.metrics.queues(), self.writes());
        let idle = self.mirrors_are_current().await && self.queues_are_idle();
        idle && before == (self.metrics.queues(), self.writes())
            && self.server.upkeep_idle_at() == Some(revision)
    }

    /// Waits until no key runs or is ready to run, whatever the watches have not reported yet.
    pub(super) async fn until_queues_are_idle(&self) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while !self.queues_are_idle() {
            assert!(std::time::Instant::now() < deadline, "not idle: {:#?}", self.log());
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }

    fn queues_are_idle(&self) -> bool {
        self.controllers.as_ref().is_none_or(Controllers::is_idle)
    }

    /// Whether the watches have reported everything that is stored.
    async fn mirrors_are_current(&self) -> bool {
        let version = |o: &Value| transom_engine::version(meta::resource_version(o));
        for mirror in self.controllers.iter().flat_map(Controllers::mirrors) {
            let stored = self.user.list(mirror.gvk(), "", &BTreeMap::new()).await.unwrap_or_default();
            let stored: BTreeMap<Key, u64> = stored.iter().map(|o| (Key::of(o), version(o))).collect();
            let reported = mirror.all().into_iter().map(|seen| (seen.key.clone(), seen.version)).collect();
            if stored != reported {
                return false;
            }
        }
        true
    }

    /// Lets time pass for the controllers, and waits until they have done what is due then. Returns the number of
    /// writes.
    pub(super) async fn after(&self, time: Duration) -> u64 {
        self.until_idle().await;
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
        // Timers have a resolution of a millisecond.
        tokio::time::sleep(Duration::from_millis(3)).await;
        self.until_idle().await
    }

    /// Lets time pass in steps, and returns how many seconds passed for the controllers, the machine's own included.
    pub(super) async fn after_steps(&self, step: Duration, steps: u32) -> usize {
        let started = tokio::time::Instant::now();
        for _ in 0..steps {
            self.after(step).await;
        }
        usize::try_from(started.elapsed().as_secs()).unwrap_or(usize::MAX)
    }

    /// Waits until the controllers have sent this many writes that begin like this.
    pub(super) async fn until_sent(&self, write: &str, times: usize) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while self.sent(write) < times {
            assert!(std::time::Instant::now() < deadline, "{write} was not sent: {:#?}", self.log());
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }

    /// How many writes that begin like this the controllers have sent.
    pub(super) fn sent(&self, write: &str) -> usize {
        self.log().iter().filter(|line| line.starts_with(write)).count()
    }

    /// Reason and message of the events about an object.
    pub(super) async fn events_of(&self, name: &str) -> Vec<String> {
        let events = self.list("v1/Event").await;
        let about = events.iter().filter(|e| e["involvedObject"]["name"] == name);
        about
            .map(|e| format!("{} {}: {}", text(&e["type"]), text(&e["reason"]), text(&e["message"])))
            .collect()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn documents(yaml: &str) -> Vec<Value> {
    let documents = transom_object::yaml::read_documents(yaml).expect("it is YAML");
    documents.into_iter().map(|d| d.value).filter(|v| !v.is_null()).collect()
}

pub(super) fn gvk(kind: &str) -> GroupVersionKind {
    let (version, kind) = kind.rsplit_once('/').expect("apiVersion/kind");
    GroupVersion::parse(version).expect("an apiVersion").with_kind(kind)
}

/// The condition of an object, or null.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let list = object["status"]["conditions"].as_array();
    list.into_iter().flatten().find(|c| c["type"] == kind).unwrap_or(&Value::Null)
}

pub(super) fn status_of<'a>(object: &'a Value, kind: &str) -> &'a str {
    text(&condition(object, kind)["status"])
}

pub(super) fn reason_of<'a>(object: &'a Value, kind: &str) -> &'a str {
    text(&condition(object, kind)["reason"])
}

pub(super) fn message_of<'a>(object: &'a Value, kind: &str) -> &'a str {
    text(&condition(object, kind)["message"])
}

/// A composed resource that is wanted and ready.
pub(super) fn ready(object: Value) -> Resource {
    let mut resource = Resource::new(object).expect("an object");
    resource.set_ready(transom_function::Ready::True);
    resource
}

pub(super) fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data})
}
