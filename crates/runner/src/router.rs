//! Calls functions by name: keeps the instance of every revision, and which revision of each function is called.
//!
//! A call ends in a response or in an error that names the function; its time is limited by the caller or by
//! [`Options::deadline`]. The router does not start or stop anything, and does not know how an instance runs.

use crate::account::{Account, CallAccount, severity};
use crate::endpoint::{Endpoint, EndpointError, connection_causes};
use crate::instance::{InProcess, Instance};
use crate::remote::Remote;
use crate::revision::RevisionId;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tonic::{Code, Status};
use transom_compose::{FunctionRunner, GrpcCode, RunError, StepRef};
use transom_function::client::DEFAULT_MAX_MESSAGE_SIZE;
use transom_function::{Function, RunFunctionRequest, RunFunctionResponse, async_trait};
use transom_object::suggest::nearest;

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

/// Called with a revision of a function.
type Changed = Arc<dyn Fn(&RevisionId) + Send + Sync>;

/// The instances of all revisions. Can be changed while calls are made; calls under way keep their instance.
pub struct Router {
    routes: RwLock<Routes>,
    options: Options,
    account: Account,
    /// The packages that a Function can be installed from without anything else, by the usual name of the Function.
    packages: BTreeMap<String, String>,
    changed: RwLock<Option<Changed>>,
}

#[derive(Default)]
struct Routes {
    functions: BTreeMap<String, Revisions>,
    /// Why functions that are installed cannot be called.
    reasons: BTreeMap<String, String>,
    generation: u64,
}

/// The revisions of one function.
#[derive(Default)]
struct Revisions {
    /// The name of the revision that is called.
    active: Option<String>,
    routes: BTreeMap<String, Route>,
}

#[derive(Clone)]
struct Route {
    instance: Arc<dyn Instance>,
    /// The package that the revision comes from.
    package: Arc<str>,
    calls: Arc<CallAccount>,
    /// Different for every instance and package that a revision ever has.
    generation: u64,
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
        }
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

    /// Adds a revision, or replaces its instance. It is called once it is [activated](Self::activate).
    pub fn add(&self, id: RevisionId, package: &str, instance: Arc<dyn Instance>) {
        let mut routes = self.write();
        let generation = routes.generation + 1;
        let calls = self.account.calls(&id.function, package, instance.target());
        let revisions = &mut routes.functions.entry(id.function).or_default().routes;
        let known = revisions.get(&id.revision);
        if known.is_some_and(|r| Arc::ptr_eq(&r.instance, &instance) && *r.package == *package) {
            return;
        }
        let (package, calls) = (package.into(), Arc::new(calls));
        revisions.insert(id.revision, Route { instance, package, calls, generation });
        routes.generation = generation;
    }

    /// Sends the calls of a function to one of its revisions. Does nothing if there is no such revision.
    pub fn activate(&self, id: &RevisionId) {
        let mut routes = self.write();
        if let Some(revisions) = routes.functions.get_mut(&id.function)
            && revisions.routes.contains_key(&id.revision)
        {
            revisions.active = Some(id.revision.clone());
            routes.reasons.remove(&id.function);
        }
    }

    /// The revision that is called for a function, and its instance.
    pub fn active(&self, function: &str) -> Option<(RevisionId, Arc<dyn Instance>)> {
        let routes = self.read();
        let revisions = routes.functions.get(function)?;
        let revision = revisions.active.as_ref()?;
        let instance = revisions.routes.get(revision)?.instance.clone();
        Some((RevisionId { function: function.to_owned(), revision: revision.clone() }, instance))
    }

    /// All revisions of a function.
    pub fn revisions(&self, function: &str) -> Vec<RevisionId> {
        let routes = self.read();
        let names = routes.functions.get(function).into_iter().flat_map(|f| f.routes.keys());
        let id = |revision: &String| RevisionId { function: function.to_owned(), revision: revision.clone() };
        names.map(id).collect()
    }

    /// Removes a revision, and its connection. Calls under way may finish.
    pub fn remove_revision(&self, id: &RevisionId) {
        let mut routes = self.write();
        let Some(revisions) = routes.functions.get_mut(&id.function) else { return };
        revisions.routes.remove(&id.revision);
        if revisions.active.as_ref() == Some(&id.revision) {
            revisions.active = None;
        }
        if revisions.routes.is_empty() {
            routes.functions.remove(&id.function);
        }
    }

    /// Removes all revisions of a function, and returns them.
    pub fn remove(&self, function: &str) -> Vec<RevisionId> {
        let removed = self.revisions(function);
        let mut routes = self.write();
        routes.functions.remove(function);
        routes.reasons.remove(function);
        removed
    }

    /// Says why a function that is installed cannot be called, for as long as it cannot.
    pub fn explain(&self, function: &str, reason: &str) {
        self.write().reasons.insert(function.to_owned(), reason.to_owned());
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
        let id = RevisionId::sole(function);
        self.add(id.clone(), "", instance);
        self.activate(&id);
    }

    /// Has `changed` called with the revision that became reachable or unreachable, as calls find out. It replaces what
    /// was set before.
    pub fn on_change(&self, changed: Arc<dyn Fn(&RevisionId) + Send + Sync>) {
        *self.changed.write().unwrap_or_else(PoisonError::into_inner) = Some(changed);
    }

    fn notify(&self, function: &str) {
        let changed = self.changed.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let (Some(changed), Some((revision, _))) = (changed, self.active(function)) {
            changed(&revision);
        }
    }

    /// Whether a function can be called.
    pub fn knows(&self, function: &str) -> bool {
        self.route(function).is_some()
    }

    fn read(&self) -> RwLockReadGuard<'_, Routes> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Routes> {
        self.routes.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn route(&self, function: &str) -> Option<Route> {
        let routes = self.read();
        let revisions = routes.functions.get(function)?;
        revisions.routes.get(revisions.active.as_ref()?).cloned()
    }

    /// A number that changes whenever what is called for the function does; `None` for a function that cannot be called.
    pub(crate) fn generation(&self, function: &str) -> Option<u64> {
        self.route(function).map(|route| route.generation)
    }

    /// What a call returns, or the deadline if it takes longer.
    async fn within_deadline<T>(&self, call: impl Future<Output = T>) -> Result<T, Duration> {
        match self.options.deadline {
            Some(deadline) => timeout(deadline, call).await.map_err(|_| deadline),
            None => Ok(call.await),
        }
    }

    /// Why a function cannot be called, and what to do about it.
    fn missing(&self, function: &str) -> String {
        let apply = |name: &str, package: &str| {
            format!(
                "{name} is built in: apply a Function of that name (apiVersion pkg.crossplane.io/v1) with spec.package \
                 {package}"
            )
        };
        if let Some(reason) = self.read().reasons.get(function) {
            return reason.clone();
        }
        let mut reason = "no such Function is installed".to_owned();
        if let Some(package) = self.packages.get(function) {
            reason.push_str(&format!("; {}", apply(function, package)));
        } else if let Some(near) = nearest(function, self.read().functions.keys().map(String::as_str)) {
            reason.push_str(&format!("; did you mean {near:?}?"));
        } else if let Some(near) = nearest(function, self.packages.keys().map(String::as_str)) {
            let package = &self.packages[near];
            reason.push_str(&format!("; did you mean {near:?}? {}", apply(near, package)));
        }
        reason
    }
}

#[async_trait]
impl FunctionRunner for Router {
    async fn run(
        &self,
        step: StepRef<'_>,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let function = step.function.to_owned();
        let Some(route) = self.route(step.function) else {
            let reason = self.missing(step.function);
            return Err(RunError::Unknown { function, reason });
        };
        let started = Instant::now();
        route.calls.sent();
        let outcome = self.within_deadline(route.instance.call(request)).await;
        let (code, severity) = match &outcome {
            Ok(Ok(response)) => (Code::Ok, severity(response)),
            Ok(Err(status)) => (status.code(), "Normal"),
            Err(_) => (Code::DeadlineExceeded, "Normal"),
        };
        route.calls.ended(code, severity, started.elapsed());
        if route.instance.record(code) {
            self.notify(step.function);
        }
        match outcome {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(status)) => Err(failed(function, &route.instance.location(), &status)),
            Err(after) => Err(RunError::Deadline { function, after }),
        }
    }
}

fn failed(function: String, location: &str, status: &Status) -> RunError {
    // A status with a source was made from it in this process: its message is the text of one of the sources.
    let why = match std::error::Error::source(status) {
        Some(source) => connection_causes(source),
        None => status.message().to_owned(),
    };
    RunError::Failed { function, code: grpc_code(status.code()), message: format!("{why} ({location})") }
}

/// The code of a call that failed. A status that is an error although its code is `Ok` has no known code.
fn grpc_code(code: Code) -> GrpcCode {
    match code {
        Code::Ok | Code::Unknown => GrpcCode::Unknown,
        Code::Cancelled => GrpcCode::Cancelled,
        Code::InvalidArgument => GrpcCode::InvalidArgument,
        Code::DeadlineExceeded => GrpcCode::DeadlineExceeded,
        Code::NotFound => GrpcCode::NotFound,
        Code::AlreadyExists => GrpcCode::AlreadyExists,
        Code::PermissionDenied => GrpcCode::PermissionDenied,
        Code::ResourceExhausted => GrpcCode::ResourceExhausted,
        Code::FailedPrecondition => GrpcCode::FailedPrecondition,
        Code::Aborted => GrpcCode::Aborted,
        Code::OutOfRange => GrpcCode::OutOfRange,
        Code::Unimplemented => GrpcCode::Unimplemented,
        Code::Internal => GrpcCode::Internal,
        Code::Unavailable => GrpcCode::Unavailable,
        Code::DataLoss => GrpcCode::DataLoss,
        Code::Unauthenticated => GrpcCode::Unauthenticated,
    }
}
