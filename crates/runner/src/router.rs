//! The functions that can be called, by the name of their Function.

use crate::account::{Account, Call, Nobody, severity};
use crate::endpoint::{Endpoint, EndpointError, causes, chain};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status};
use transom_compose::{FunctionRunner, RunError, StepRef};
use transom_function::client::{DEFAULT_MAX_MESSAGE_SIZE, FunctionClient};
use transom_function::{Function, RunFunctionRequest, RunFunctionResponse, answer, async_trait};
use transom_object::suggest::nearest;

const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Limits for every call.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a call may take, waiting included.
    pub deadline: Duration,
    /// How long to wait for a function that nobody can reach yet.
    pub patience: Duration,
    /// How large an answer may be, in bytes.
    pub max_message_size: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(120),
            // Whoever waits is better told than left waiting, and tries again.
            patience: Duration::from_millis(500),
            max_message_size: DEFAULT_MAX_MESSAGE_SIZE,
        }
    }
}

/// Where every function runs. Can be changed while calls are made; those that began keep to where they began.
pub struct Functions {
    routes: RwLock<Routes>,
    options: Options,
    account: Arc<dyn Account>,
    /// The packages that a Function can be installed from without anything else, by the usual name of the Function.
    packages: BTreeMap<String, String>,
    /// Called with the name of a function that calls begin or cease to reach.
    changed: OnceLock<Changed>,
}

/// Is told the name of a function.
type Changed = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
struct Routes {
    by_name: BTreeMap<String, Route>,
    generation: u64,
}

#[derive(Clone)]
struct Route {
    place: Place,
    /// The package that the function comes from.
    package: Arc<str>,
    /// Different whenever anything about the route is.
    generation: u64,
}

#[derive(Clone)]
enum Place {
    InProcess(Arc<dyn Function>),
    Remote {
        endpoint: Endpoint,
        client: FunctionClient,
        /// Whether the last call or the last attempt to connect got through.
        reached: Arc<AtomicBool>,
    },
}

impl Place {
    /// Whether this is the same function in the same place.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::InProcess(one), Self::InProcess(other)) => Arc::ptr_eq(one, other),
            (Self::Remote { endpoint: one, .. }, Self::Remote { endpoint: other, .. }) => one == other,
            _ => false,
        }
    }

    fn target(&self) -> &str {
        match self {
            Self::InProcess(_) => "in-process",
            Self::Remote { endpoint, .. } => endpoint.address(),
        }
    }
}

impl Default for Functions {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Functions {
    pub fn new(options: Options) -> Self {
        Self {
            routes: RwLock::default(),
            options,
            account: Arc::new(Nobody),
            packages: BTreeMap::new(),
            changed: OnceLock::new(),
        }
    }

    /// Counts what is called, how it ends and how long it takes.
    #[must_use]
    pub fn counting(mut self, account: Arc<dyn Account>) -> Self {
        self.account = account;
        self
    }

    /// Says which packages are there to be installed, by the usual names of their Functions, for those who call one that
    /// is not.
    #[must_use]
    pub fn offering(mut self, packages: impl IntoIterator<Item = (String, String)>) -> Self {
        self.packages.extend(packages);
        self
    }

    /// Why a function cannot be called, and what to do about it.
    fn missing(&self, name: &str) -> String {
        let apply = |name: &str, package: &str| {
            format!(
                "{name} is built in: apply a Function of that name (apiVersion pkg.crossplane.io/v1) with spec.package \
                 {package}"
            )
        };
        let mut reason = "no such Function is installed".to_owned();
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(package) = self.packages.get(name) {
            reason.push_str("; ");
            reason.push_str(&apply(name, package));
        } else if let Some(near) = nearest(name, routes.by_name.keys().map(String::as_str)) {
            reason.push_str(&format!("; did you mean {near:?}?"));
        } else if let Some(near) = nearest(name, self.packages.keys().map(String::as_str)) {
            let package = &self.packages[near];
            reason.push_str(&format!("; did you mean {near:?}? {}", apply(near, package)));
        }
        reason
    }

    pub(crate) fn account(&self) -> &dyn Account {
        &*self.account
    }

    /// Runs a function in this process.
    pub fn run_in_process(&self, name: impl Into<String>, function: Arc<dyn Function>) {
        self.set(name.into(), Place::InProcess(function));
    }

    /// Calls a function elsewhere. The connection to an endpoint that does not change is kept.
    pub fn call_at(&self, name: impl Into<String>, endpoint: Endpoint) -> Result<(), EndpointError> {
        let name = name.into();
        let known = self.route(&name).map(|route| route.place);
        if matches!(known, Some(Place::Remote { endpoint: known, .. }) if known == endpoint) {
            return Ok(());
        }
        let client =
            FunctionClient::new(endpoint.channel()?).with_max_message_size(self.options.max_message_size);
        self.set(name, Place::Remote { endpoint, client, reached: Arc::new(AtomicBool::new(true)) });
        Ok(())
    }

    /// Notes the package that a function comes from. Another package is another function.
    pub fn comes_from(&self, name: &str, package: &str) {
        let mut routes = self.write();
        let generation = routes.generation + 1;
        if let Some(route) = routes.by_name.get_mut(name).filter(|route| *route.package != *package) {
            (route.package, route.generation) = (package.into(), generation);
            routes.generation = generation;
        }
    }

    /// Whether a function can be reached where it is said to listen; otherwise why not. It is not called.
    pub async fn reach(&self, name: &str) -> Result<(), String> {
        match self.route(name).map(|route| route.place) {
            Some(Place::Remote { endpoint, reached, .. }) => {
                let outcome = endpoint.reach().await;
                reached.store(outcome.is_ok(), Ordering::Relaxed);
                outcome
            }
            Some(Place::InProcess(_)) => Ok(()),
            None => Err("no such Function is installed".to_owned()),
        }
    }

    /// Calls back when calls begin or cease to reach a function. Only the first who asks is called.
    pub fn on_change(&self, changed: Arc<dyn Fn(&str) + Send + Sync>) {
        let _ = self.changed.set(changed);
    }

    /// Notes whether a call got through, and tells of it if the one before did not end alike.
    fn note(&self, function: &str, place: &Place, code: Code) {
        let Place::Remote { reached, .. } = place else { return };
        let got_through = code != Code::Unavailable;
        if reached.swap(got_through, Ordering::Relaxed) != got_through
            && let Some(changed) = self.changed.get()
        {
            changed(function);
        }
    }

    /// Whether a function can be called.
    pub fn knows(&self, name: &str) -> bool {
        self.route(name).is_some()
    }

    /// Forgets a function, and its connection.
    pub fn remove(&self, name: &str) {
        self.write().by_name.remove(name);
    }

    fn write(&self) -> RwLockWriteGuard<'_, Routes> {
        self.routes.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, name: String, place: Place) {
        let mut routes = self.write();
        if routes.by_name.get(&name).is_some_and(|route| route.place.is(&place)) {
            return;
        }
        routes.generation += 1;
        let generation = routes.generation;
        let package = routes.by_name.get(&name).map_or_else(|| "".into(), |route| route.package.clone());
        routes.by_name.insert(name, Route { place, package, generation });
    }

    fn route(&self, name: &str) -> Option<Route> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).by_name.get(name).cloned()
    }

    /// A number that changes whenever the function does; nothing for one that cannot be called.
    pub(crate) fn generation(&self, name: &str) -> Option<u64> {
        self.route(name).map(|route| route.generation)
    }

    /// Calls again as long as nobody can be reached: a function may just be starting. Any other answer is final.
    async fn call(
        &self,
        client: &FunctionClient,
        request: &RunFunctionRequest,
    ) -> Result<RunFunctionResponse, Status> {
        let give_up = Instant::now() + self.options.patience;
        loop {
            match client.run(request).await {
                Err(status) if status.code() == Code::Unavailable && Instant::now() < give_up => {
                    tracing::debug!(error = chain(&status), "the function cannot be reached yet");
                    sleep(RETRY_INTERVAL).await;
                }
                answer => return answer,
            }
        }
    }
}

#[async_trait]
impl FunctionRunner for Functions {
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
        let (deadline, started) = (self.options.deadline, Instant::now());
        let target = route.place.target();
        let call = Call { function: step.function, package: &route.package, target };
        call.sent(&*self.account);
        let outcome = match &route.place {
            Place::InProcess(built_in) => timeout(deadline, answer(&**built_in, request)).await,
            Place::Remote { client, .. } => timeout(deadline, self.call(client, &request)).await,
        };
        let (code, severity) = match &outcome {
            Ok(Ok(response)) => (Code::Ok, severity(response)),
            Ok(Err(status)) => (status.code(), "Normal"),
            Err(_) => (Code::DeadlineExceeded, "Normal"),
        };
        call.ended(&*self.account, code, severity, started.elapsed());
        self.note(step.function, &route.place, code);
        match outcome {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(status)) => Err(failed(function, &route.place, &status)),
            Err(_) => Err(RunError::Deadline { function, after: deadline }),
        }
    }
}

fn failed(function: String, place: &Place, status: &Status) -> RunError {
    let place = match place {
        Place::InProcess(_) => "in this process".to_owned(),
        Place::Remote { endpoint, .. } => format!("at {}", endpoint.address()),
    };
    let mut words = vec![status.message().to_owned()];
    // The transport keeps the interesting part, why there is no connection, to itself, and repeats the rest.
    words.extend(std::error::Error::source(status).into_iter().flat_map(causes));
    let mut said = BTreeSet::new();
    words.retain(|word| word != "transport error" && said.insert(word.clone()));
    if words.is_empty() {
        words.push(status.message().to_owned());
    }
    let message = format!("{} ({place})", words.join(": "));
    RunError::Failed { function, code: format!("{:?}", status.code()), message }
}
