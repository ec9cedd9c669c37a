//! Calls functions: keeps the instance of every revision, and calls the one that a step wants.
//!
//! A call ends in a response or in an error that names the function; its time is limited by the caller or by
//! [`Options::deadline`]. The router does not start or stop anything, and does not know how an instance runs.

use crate::account::{Account, severity};
use crate::endpoint::{Endpoint, EndpointError};
use crate::failure::{failed, grpc_code};
use crate::inline::{InlineCall, InlineRunner};
use crate::instance::{InProcess, Instance};
use crate::remote::Remote;
use crate::revision::{PackageImage, RevisionId, RevisionSpec};
use crate::routes::{Route, Routes, Target};
use crate::runtime::Changed;
use crate::source::Source;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tonic::Code;
use transom_compose::{Answer, FunctionRunner, RunError, StepRef, WantedRevision};
use transom_function::client::DEFAULT_MAX_MESSAGE_SIZE;
use transom_function::{Function, RunFunctionRequest, RunFunctionResponse, async_trait};
use transom_object::suggest::nearest;
use transom_xapi::InlineFunction;
use transom_xapi::function::RevisionTraits;

/// Limits for every call.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a call may take, waiting for the function to start included; `None` if the caller limits that.
    pub deadline: Option<Duration>,
    /// How long a call waits for a function that cannot be reached yet.
    pub wait_for_start: Duration,
    /// How large a response may be, in bytes.
    pub max_message_size: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            deadline: None,
            // Short: the caller reports the failure, and tries again.
            wait_for_start: Duration::from_millis(500),
            max_message_size: DEFAULT_MAX_MESSAGE_SIZE,
        }
    }
}

/// Called with the name of a function.
type Rerouted = Arc<dyn Fn(&str) + Send + Sync>;

/// The instances of all revisions. Can be changed while calls are made; calls under way keep their instance.
pub struct Router {
    routes: RwLock<Routes>,
    options: Options,
    account: Account,
    /// The packages that a Function can be installed from without anything else, by the usual name of the Function.
    packages: BTreeMap<String, String>,
    changed: RwLock<Option<Changed>>,
    rerouted: RwLock<Option<Rerouted>>,
    inline: Option<Arc<dyn InlineRunner>>,
}

/// Whether a revision can be called.
pub enum Callable {
    /// It is known to answer.
    Ready(Arc<dyn Instance>),
    /// It does not answer yet. It is called if no other can be: calls then fail with the reason.
    Unready(Arc<dyn Instance>),
    /// There is nothing to call, for this reason.
    Not(String),
}

/// The revision that a step calls.
pub(crate) struct Chosen {
    route: Arc<Route>,
    target: Target,
}

impl Chosen {
    /// A number that changes whenever what is called does.
    pub(crate) fn generation(&self) -> u64 {
        self.target.generation
    }

    /// The name of the FunctionRevision, if there is one.
    pub(crate) fn revision(&self) -> Option<Arc<str>> {
        let id = &self.route.id;
        (!id.is_sole()).then(|| id.revision.as_str().into())
    }
}

impl Default for Router {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Router {
    /// A router without functions.
    pub fn new(options: Options) -> Self {
        Self {
            routes: RwLock::default(),
            options,
            account: Account::default(),
            packages: BTreeMap::new(),
            changed: RwLock::default(),
            rerouted: RwLock::default(),
            inline: None,
        }
    }

    /// Runs the inline functions of steps.
    #[must_use]
    pub fn with_inline(mut self, runner: Arc<dyn InlineRunner>) -> Self {
        self.inline = Some(runner);
        self
    }

    /// Counts the calls of functions that are added from now on, how they end and how long they take.
    #[must_use]
    pub fn counting(mut self, account: Account) -> Self {
        self.account = account;
        self
    }

    /// Names packages that can be installed, by the usual names of their Functions. They are suggested when a function
    /// is called that does not exist.
    #[must_use]
    pub fn offering(mut self, packages: impl IntoIterator<Item = (String, String)>) -> Self {
        self.packages.extend(packages);
        self
    }

    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// The limits for every call.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Adds an active revision, or replaces what is known of it.
    pub fn set(&self, revision: &RevisionSpec, callable: Callable) {
        let mut routes = self.write();
        let known = routes.get(&revision.id).and_then(|route| route.target.clone().ok());
        let ready = matches!(callable, Callable::Ready(_));
        let target = match callable {
            Callable::Not(reason) => Err(reason),
            Callable::Ready(instance) | Callable::Unready(instance) => {
                let is_same = |target: &Target| {
                    let same_package =
                        routes.get(&revision.id).is_some_and(|r| r.package == revision.package);
                    Arc::ptr_eq(&target.instance, &instance) && same_package
                };
                let known = known.filter(is_same);
                Ok(known.unwrap_or_else(|| {
                    let RevisionSpec { id, package, .. } = revision;
                    let calls = Arc::new(self.account.calls(&id.function, package, instance.target()));
                    Target { instance, calls, generation: routes.next_generation() }
                }))
            }
        };
        let RevisionSpec { id, number, package, traits, .. } = revision.clone();
        let function = id.function.clone();
        let changed = routes.insert(Route { id, number, traits, package, active: true, ready, target });
        drop(routes);
        if changed {
            self.notify_rerouted(&function);
        }
    }

    /// Marks a revision as inactive. It is still called while no active revision is ready.
    pub(crate) fn retire(&self, id: &RevisionId) {
        let mut routes = self.write();
        let Some(route) = routes.get(id).map(|route| Route { active: false, ..(**route).clone() }) else {
            return;
        };
        let changed = routes.insert(route);
        drop(routes);
        if changed {
            self.notify_rerouted(&id.function);
        }
    }

    /// Revisions that are not active any more and need not be called: an active one of their function is ready.
    pub(crate) fn superseded(&self, function: &str) -> Vec<RevisionId> {
        let routes = self.read();
        if !routes.of(function).any(|route| route.active && route.ready) {
            return Vec::new();
        }
        routes.of(function).filter(|route| !route.active).map(|route| route.id.clone()).collect()
    }

    /// The revision that is called for a step that wants none in particular, and its instance.
    pub fn active(&self, function: &str) -> Option<(RevisionId, Arc<dyn Instance>)> {
        let chosen = self.chosen(function, WantedRevision::Newest)?;
        Some((chosen.route.id.clone(), chosen.target.instance))
    }

    /// All revisions of a function.
    pub fn revisions(&self, function: &str) -> Vec<RevisionId> {
        self.read().of(function).map(|route| route.id.clone()).collect()
    }

    /// Removes a revision, and its connection. Calls under way may finish.
    pub fn remove_revision(&self, id: &RevisionId) {
        if self.write().remove(id) {
            self.notify_rerouted(&id.function);
        }
    }

    /// Removes all revisions of a function, and returns them.
    pub fn remove(&self, function: &str) -> Vec<RevisionId> {
        let removed = self.revisions(function);
        let mut routes = self.write();
        routes.forget_reason(function);
        for id in &removed {
            routes.remove(id);
        }
        drop(routes);
        if !removed.is_empty() {
            self.notify_rerouted(function);
        }
        removed
    }

    /// Says why a function that is installed cannot be called, for as long as it cannot.
    pub fn explain(&self, function: &str, reason: &str) {
        self.write().explain(function, reason);
    }

    /// Runs a function that has no Function object in this process.
    pub fn run_in_process(&self, function: impl Into<String>, implementation: Arc<dyn Function>) {
        self.set_sole(function.into(), Arc::new(InProcess::new(implementation)));
    }

    /// Calls a function that has no Function object at an endpoint.
    pub fn call_at(&self, function: impl Into<String>, endpoint: Endpoint) -> Result<(), EndpointError> {
        self.set_sole(function.into(), Arc::new(Remote::new(endpoint, &self.options)?));
        Ok(())
    }

    fn set_sole(&self, function: String, instance: Arc<dyn Instance>) {
        let source = Source::Builtin(function.clone());
        let (id, traits) = (RevisionId::sole(function), RevisionTraits::default());
        let revision = RevisionSpec {
            id,
            number: 0,
            package: String::new(),
            source,
            traits,
            image: PackageImage::default(),
            config: Arc::default(),
        };
        self.set(&revision, Callable::Ready(instance));
    }

    /// Has `changed` called with the revision that became reachable or unreachable, as calls find out. It replaces what
    /// was set before.
    pub fn on_change(&self, changed: Changed) {
        *self.changed.write().unwrap_or_else(PoisonError::into_inner) = Some(changed);
    }

    /// Has `rerouted` called with a function after its calls may have begun to be routed in another way. It replaces what was
    /// set before.
    pub fn on_reroute(&self, rerouted: Arc<dyn Fn(&str) + Send + Sync>) {
        *self.rerouted.write().unwrap_or_else(PoisonError::into_inner) = Some(rerouted);
    }

    fn notify_rerouted(&self, function: &str) {
        let rerouted = self.rerouted.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(rerouted) = rerouted {
            rerouted(function);
        }
    }

    /// Whether a function can be called.
    pub fn knows(&self, function: &str) -> bool {
        self.chosen(function, WantedRevision::Newest).is_some()
    }

    fn read(&self) -> RwLockReadGuard<'_, Routes> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Routes> {
        self.routes.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn chosen(&self, function: &str, wanted: WantedRevision<'_>) -> Option<Chosen> {
        let route = self.read().choose(function, wanted)?.clone();
        let target = route.target.clone().ok()?;
        Some(Chosen { route, target })
    }

    /// The revision that is called for a step now.
    pub fn revision_for(&self, step: StepRef<'_>) -> Result<RevisionId, RunError> {
        self.choose(step).map(|chosen| chosen.route.id.clone())
    }

    /// The revision that is called for a step, and how.
    pub(crate) fn choose(&self, step: StepRef<'_>) -> Result<Chosen, RunError> {
        let StepRef { function, revision: wanted, .. } = step;
        let route = self.read().choose(function, wanted).cloned();
        let Some(route) = route else { return Err(self.missing(function, wanted)) };
        match route.target.clone() {
            Ok(target) => Ok(Chosen { route, target }),
            Err(reason) => Err(RunError::Unknown { function: function.to_owned(), reason }),
        }
    }

    /// What a call returns, or the deadline if it takes longer.
    async fn within_deadline<T>(&self, call: impl Future<Output = T>) -> Result<T, Duration> {
        match self.options.deadline {
            Some(deadline) => timeout(deadline, call).await.map_err(|_| deadline),
            None => Ok(call.await),
        }
    }

    /// Why a step cannot call what it wants, and what to do about it.
    fn missing(&self, function: &str, wanted: WantedRevision<'_>) -> RunError {
        if let Some(error) = self.read().missing(function, wanted) {
            return error;
        }
        let reason = match self.read().reason(function) {
            Some(reason) => reason.to_owned(),
            None => self.unknown(function),
        };
        RunError::Unknown { function: function.to_owned(), reason }
    }

    /// That there is no function of a name, and which one may be meant.
    fn unknown(&self, function: &str) -> String {
        let apply = |name: &str, package: &str| {
            format!(
                "{name} is built in: apply a Function of that name (apiVersion pkg.crossplane.io/v1) with spec.package \
                 {package}"
            )
        };
        let mut reason = "no such Function is installed".to_owned();
        if let Some(package) = self.packages.get(function) {
            reason.push_str(&format!("; {}", apply(function, package)));
        } else if let Some(near) = nearest(function, self.read().names()) {
            reason.push_str(&format!("; did you mean {near:?}?"));
        } else if let Some(near) = nearest(function, self.packages.keys().map(String::as_str)) {
            let package = &self.packages[near];
            reason.push_str(&format!("; did you mean {near:?}? {}", apply(near, package)));
        }
        reason
    }

    /// Calls a revision that was chosen for a step.
    pub(crate) async fn call(
        &self,
        chosen: &Chosen,
        step: StepRef<'_>,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let (started, Target { instance, calls, .. }) = (Instant::now(), &chosen.target);
        calls.sent();
        let attributes = || {
            let RevisionId { function, revision } = chosen.route.id.clone();
            vec![("step", step.name.to_owned()), ("function", function), ("revision", revision)]
        };
        let calling = self.within_deadline(instance.call(request));
        let outcome = transom_telemetry::traced("call", attributes, calling).await;
        let (code, severity) = match &outcome {
            Ok(Ok(response)) => (Code::Ok, severity(response)),
            Ok(Err(status)) => (status.code(), "Normal"),
            Err(_) => (Code::DeadlineExceeded, "Normal"),
        };
        calls.ended(code, severity, started.elapsed());
        if instance.record(code) {
            let changed = self.changed.read().unwrap_or_else(PoisonError::into_inner).clone();
            changed.iter().for_each(|changed| changed(&chosen.route.id));
        }
        let function = step.function.to_owned();
        match outcome {
            Ok(Ok(response)) => {
                log(chosen, step, &response);
                Ok(response)
            }
            Ok(Err(status)) => Err(failed(function, &instance.location(), &status)),
            Err(after) => Err(RunError::Deadline { function, after }),
        }
    }
}

impl Router {
    /// Calls the inline function of a step.
    async fn run_inline(
        &self,
        step: StepRef<'_>,
        function: &InlineFunction,
        request: RunFunctionRequest,
    ) -> Result<Answer, RunError> {
        let name = step.function.to_owned();
        let Some(runner) = &self.inline else {
            let reason = "inline functions are not supported here".to_owned();
            return Err(RunError::Unknown { function: name, reason });
        };
        let (started, calls) = (Instant::now(), self.account.calls(step.name, step.function, "inline"));
        calls.sent();
        let call = InlineCall { step: step.name, function };
        let outcome = self.within_deadline(runner.call(call, request)).await;
        let (code, severity) = match &outcome {
            Ok(Ok(response)) => (Code::Ok, severity(response)),
            Ok(Err(status)) => (status.code(), "Normal"),
            Err(_) => (Code::DeadlineExceeded, "Normal"),
        };
        calls.ended(code, severity, started.elapsed());
        match outcome {
            Ok(Ok(response)) => Ok(response.into()),
            Ok(Err(status)) => {
                let (code, message) = (grpc_code(status.code()), status.message().to_owned());
                Err(RunError::Failed { function: name, code, message })
            }
            Err(after) => Err(RunError::Deadline { function: name, after }),
        }
    }
}

/// Logs the results of a function.
fn log(chosen: &Chosen, step: StepRef<'_>, response: &RunFunctionResponse) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let RevisionId { function, revision } = &chosen.route.id;
    let StepRef { name, iteration, .. } = step;
    tracing::debug!(step = name, function, revision, iteration, "the function answered");
    for result in &response.results {
        let (severity, message) = (result.severity().as_str_name(), result.message.as_str());
        tracing::debug!(step = name, function, revision, severity, message, "result of the function");
    }
}

#[async_trait]
impl FunctionRunner for Router {
    async fn run(&self, step: StepRef<'_>, request: RunFunctionRequest) -> Result<Answer, RunError> {
        if let Some(function) = step.inline {
            return self.run_inline(step, function, request).await;
        }
        let chosen = self.choose(step)?;
        let response = self.call(&chosen, step, request).await?;
        Ok(Answer { response, revision: chosen.revision() })
    }
}
