//! Starting and stopping revisions of functions.
//!
//! A [`FunctionRuntime`] makes a revision runnable and returns the [`Instance`] to call. It does not route calls: see
//! [`Router`](crate::Router) and [`Installer`](crate::Installer). [`LocalRuntime`] runs what needs no container.

use crate::endpoint::{Endpoint, ReadTls};
use crate::instance::{InProcess, Instance};
use crate::remote::Remote;
use crate::revision::{RevisionId, RevisionSpec};
use crate::router::Options;
use crate::source::{ENDPOINT_ANNOTATION, FORCED_RUNTIME_ANNOTATION, Source};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use transom_function::error_chain::chain;
use transom_function::{Function, async_trait};

/// Runs revisions of functions.
#[async_trait]
pub trait FunctionRuntime: Send + Sync + 'static {
    /// Makes a revision runnable, if it is not yet, and returns its state. It is called again whenever the state may
    /// have changed, and returns the same instance as long as the revision is not released.
    async fn ensure(&self, revision: &RevisionSpec) -> RuntimeState;

    /// Stops a revision and frees what it holds. Calls under way may finish. Unknown revisions are ignored.
    async fn release(&self, revision: &RevisionId);

    /// What users should know about how a revision ended that was released, such as that it had to be killed. A change of it
    /// is reported as one of its state.
    fn remark(&self, _revision: &RevisionId) -> Option<String> {
        None
    }

    /// Has `changed` called with a revision whose state has changed by itself. A runtime whose revisions change by calls
    /// alone need not.
    fn on_change(&self, _changed: Changed) {}

    /// After which time a revision that was ensured has to be ensured again although nothing of it changes, such as to replace
    /// a certificate before it expires.
    fn due_in(&self, _revision: &RevisionId) -> Option<Duration> {
        None
    }
}

/// Called with a revision of a function.
pub type Changed = Arc<dyn Fn(&RevisionId) + Send + Sync>;

/// The state of a revision.
#[derive(Clone)]
pub enum RuntimeState {
    /// It cannot be reached yet, and may be without any change to it.
    Pending {
        /// What it waits for.
        problem: Problem,
        /// What to call, if calls can be attempted already: they wait a moment for the function to start.
        instance: Option<Arc<dyn Instance>>,
    },
    /// It can be called.
    Ready(Arc<dyn Instance>),
    /// It cannot be run until it, or this program, is changed.
    Failed(Problem),
}

impl RuntimeState {
    /// What can be called, if anything.
    pub fn instance(&self) -> Option<&Arc<dyn Instance>> {
        match self {
            Self::Ready(instance) => Some(instance),
            Self::Pending { instance, .. } => instance.as_ref(),
            Self::Failed(_) => None,
        }
    }

    /// Why the revision is not ready.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Ready(_) => None,
            Self::Pending { problem, .. } | Self::Failed(problem) => Some(problem),
        }
    }

    /// Whether the revision can be called.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready(_))
    }
}

impl fmt::Debug for RuntimeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending { problem, .. } => write!(f, "Pending({problem:?})"),
            Self::Ready(instance) => write!(f, "Ready({})", instance.target()),
            Self::Failed(problem) => write!(f, "Failed({problem:?})"),
        }
    }
}

/// Why a revision is not ready.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// For programs.
    pub reason: Reason,
    /// For users: what is wrong, and where possible what to do about it.
    pub message: String,
}

impl Problem {
    /// A problem.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// The machine-readable reason why a revision is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Nothing answers at the endpoint, or not with the expected certificate.
    Unreachable,
    /// The function says that it is not ready.
    NotServing,
    /// The endpoint's address or certificates are malformed.
    InvalidEndpoint,
    /// The function is not built in, and this runtime does not run packages.
    UnsupportedPackage,
    /// The image of the package is being pulled.
    Pulling,
    /// The image of the package cannot be pulled.
    ImageUnavailable,
    /// The image of the package cannot be run: it is malformed, for another machine, or has no program.
    InvalidImage,
    /// The function's container was started and cannot be called yet.
    Starting,
    /// The function's container has ended, and is started again later.
    Ended,
    /// The Deployment has no pod that is available. A change of that is reported.
    Unavailable,
    /// The objects that run it on a cluster cannot be written.
    NotDeployed,
}

impl Reason {
    /// The reason as conditions write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "Unreachable",
            Self::NotServing => "NotServing",
            Self::InvalidEndpoint => "InvalidEndpoint",
            Self::UnsupportedPackage => "UnsupportedPackage",
            Self::Pulling => "Pulling",
            Self::ImageUnavailable => "ImageUnavailable",
            Self::InvalidImage => "InvalidImage",
            Self::Starting => "Starting",
            Self::Ended => "Ended",
            Self::Unavailable => "Unavailable",
            Self::NotDeployed => "NotDeployed",
        }
    }
}

/// Finds built-in functions by name.
pub type FindBuiltin = Box<dyn Fn(&str) -> Option<Arc<dyn Function>> + Send + Sync>;

/// Finds the version of the original that a built-in function equals, by the name of the built-in.
pub type FindVersion = Box<dyn Fn(&str) -> Option<&'static str> + Send + Sync>;

/// Runs built-in functions in this process and calls functions at endpoints. It starts nothing.
pub struct LocalRuntime {
    builtins: FindBuiltin,
    versions: FindVersion,
    tls: Option<ReadTls>,
    options: Options,
    /// Why packages are not run.
    without_packages: String,
    instances: Mutex<BTreeMap<RevisionId, Kept>>,
}

/// What is kept for a revision, to return the same instance again.
#[derive(Clone)]
enum Kept {
    InProcess { function: Arc<dyn Function>, instance: Arc<dyn Instance> },
    Remote { address: String, instance: Arc<dyn Instance> },
}

impl LocalRuntime {
    /// A runtime for these built-in functions. Functions at endpoints are called in plain text.
    pub fn new(
        builtins: impl Fn(&str) -> Option<Arc<dyn Function>> + Send + Sync + 'static,
        options: Options,
    ) -> Self {
        Self {
            builtins: Box::new(builtins),
            versions: Box::new(|_| None),
            tls: None,
            options,
            without_packages: "this runtime does not run packages".to_owned(),
            instances: Mutex::default(),
        }
    }

    /// Says of built-in functions which versions of the originals they equal.
    #[must_use]
    pub fn with_versions(
        mut self,
        versions: impl Fn(&str) -> Option<&'static str> + Send + Sync + 'static,
    ) -> Self {
        self.versions = Box::new(versions);
        self
    }

    /// Calls functions at endpoints with mutual TLS. The certificates are read when a function is first called, and again
    /// after it could not be reached with them.
    #[must_use]
    pub fn with_tls(mut self, tls: Option<ReadTls>) -> Self {
        self.tls = tls;
        self
    }

    /// Sets the reason why packages are not run.
    #[must_use]
    pub fn without_packages(mut self, why: impl Into<String>) -> Self {
        self.without_packages = why.into();
        self
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RevisionId, Kept>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_process(&self, id: &RevisionId, name: &str, function: Arc<dyn Function>) -> RuntimeState {
        let mut instances = self.lock();
        if let Some(Kept::InProcess { function: kept, instance }) = instances.get(id)
            && Arc::ptr_eq(kept, &function)
        {
            return RuntimeState::Ready(instance.clone());
        }
        let original = (self.versions)(name).map(|version| format!("{name} {version}"));
        let instance: Arc<dyn Instance> = Arc::new(InProcess::new(function.clone()).equal_to(original));
        instances.insert(id.clone(), Kept::InProcess { function, instance: instance.clone() });
        RuntimeState::Ready(instance)
    }

    async fn remote(&self, id: &RevisionId, address: &str) -> RuntimeState {
        let instance = match self.connect(id, address) {
            Ok(instance) => instance,
            Err(problem) => return RuntimeState::Failed(problem),
        };
        match instance.probe().await {
            Ok(()) => RuntimeState::Ready(instance),
            Err(problem) => RuntimeState::Pending { problem, instance: Some(instance) },
        }
    }

    /// The kept instance of an endpoint, or a new one.
    fn connect(&self, id: &RevisionId, address: &str) -> Result<Arc<dyn Instance>, Problem> {
        let mut instances = self.lock();
        if let Some(Kept::Remote { address: kept, instance }) = instances.get(id)
            && kept == address
        {
            return Ok(instance.clone());
        }
        let invalid = |message: String| Problem::new(Reason::InvalidEndpoint, message);
        let endpoint = match &self.tls {
            Some(read) => Endpoint::mutual_tls(address, read().map_err(|error| invalid(chain(&error)))?),
            None => Endpoint::plaintext(address),
        };
        let mut remote = Remote::new(endpoint, &self.options).map_err(|error| invalid(chain(&error)))?;
        if let Some(read) = &self.tls {
            remote = remote.with_certificates(read.clone());
        }
        let instance: Arc<dyn Instance> = Arc::new(remote);
        instances
            .insert(id.clone(), Kept::Remote { address: address.to_owned(), instance: instance.clone() });
        Ok(instance)
    }
}

impl LocalRuntime {
    fn not_built_in(&self, repository: &str) -> Problem {
        let message = format!(
            "{repository:?} is not built in: {}; or say where the function listens with the annotation \
             {ENDPOINT_ANNOTATION}",
            self.without_packages
        );
        Problem::new(Reason::UnsupportedPackage, message)
    }

    fn forced(&self, repository: &str) -> Problem {
        let message = format!(
            "{}; remove the annotation {FORCED_RUNTIME_ANNOTATION} to run {repository:?}, which is built in, or say where \
             the function listens with the annotation {ENDPOINT_ANNOTATION}",
            self.without_packages
        );
        Problem::new(Reason::UnsupportedPackage, message)
    }
}

#[async_trait]
impl FunctionRuntime for LocalRuntime {
    async fn ensure(&self, revision: &RevisionSpec) -> RuntimeState {
        match &revision.source {
            Source::Endpoint { address, .. } => self.remote(&revision.id, address).await,
            Source::Builtin(name) => match (self.builtins)(name) {
                Some(function) => self.in_process(&revision.id, name, function),
                None => RuntimeState::Failed(self.not_built_in(name)),
            },
            Source::Package { repository, .. } if (self.builtins)(repository).is_some() => {
                RuntimeState::Failed(self.forced(repository))
            }
            Source::Package { repository, .. } => RuntimeState::Failed(self.not_built_in(repository)),
        }
    }

    async fn release(&self, revision: &RevisionId) {
        self.lock().remove(revision);
    }
}
