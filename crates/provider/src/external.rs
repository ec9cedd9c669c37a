//! What a provider implements for each of its kinds.

use crate::kind::Layout;
use crate::secret;
use crate::waking::{Followed, Waker};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::time::Duration;
use transom_engine::{Cluster, Dependency, ErrorContext, Result};
use transom_object::time::Timestamp;
use transom_object::{GroupVersionKind, meta};
use transom_xapi::connection::{self, Details};
use transom_xapi::constants::annotation;
use transom_xapi::{Condition, conditions};

/// What managed resources of a kind stand for. The methods are called by the reconciler, never two at once for one managed
/// resource, and may be called again after a crash at any point: each of them starts from the actual state of the external resource.
///
/// Errors become conditions and events that users read. They must not contain secrets.
pub trait External: Send + Sync + 'static {
    /// `spec.forProvider`.
    type Parameters: DeserializeOwned + Serialize + Send + Sync;
    /// What [`connect`](Self::connect) returns to the other methods: a connection, a client, or nothing.
    type Session: Send + Sync;

    /// Connects to what the ProviderConfig leads to.
    fn connect(
        &self,
        resource: &Resource<'_, Self::Parameters>,
    ) -> impl Future<Output = Result<Self::Session>> + Send;

    /// Observes the external resource. Changes nothing.
    fn observe(
        &self,
        session: &Self::Session,
        resource: &Resource<'_, Self::Parameters>,
    ) -> impl Future<Output = Result<Observation<Self::Parameters>>> + Send;

    /// Creates the external resource.
    fn create(
        &self,
        session: &Self::Session,
        resource: &Resource<'_, Self::Parameters>,
    ) -> impl Future<Output = Result<Creation>> + Send;

    /// Updates the external resource to what the spec wants.
    fn update(
        &self,
        session: &Self::Session,
        resource: &Resource<'_, Self::Parameters>,
    ) -> impl Future<Output = Result<Update>> + Send;

    /// Deletes the external resource. It is not an error if it does not exist.
    fn delete(
        &self,
        session: &Self::Session,
        resource: &Resource<'_, Self::Parameters>,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Protects what the managed resource needs from being deleted. Called in every reconcile of one that is not being
    /// deleted, once it has its own finalizer.
    fn protect(
        &self,
        _: &Self::Session,
        _: &Resource<'_, Self::Parameters>,
    ) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }

    /// Ends that protection, and forgets the managed resource: it is about to lose its finalizer. There is no session, because
    /// the external system need not be reachable.
    fn release(&self, _: &Resource<'_, Self::Parameters>) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }

    /// Forgets a managed resource that is gone, also without a [`release`](Self::release), by its waker: it may have been deleted
    /// before it had a finalizer, or after that was removed by hand.
    fn forget(&self, _: &Waker) {}
}

/// A managed resource, as its provider sees it.
pub struct Resource<'a, P> {
    /// `spec.forProvider`.
    pub parameters: P,
    /// The whole object.
    pub object: &'a Value,
    /// Its ProviderConfig, if its kind has one.
    pub config: Option<&'a Value>,
    /// The cluster that the managed resource is in, to read Secrets from.
    pub cluster: &'a Cluster,
    /// The same cluster, with the rights that the provider has for managed resources: see
    /// [`Provider::acting_as`](crate::Provider::acting_as).
    pub identity: &'a Cluster,
    /// The time.
    pub now: Timestamp,
    /// Which fields its spec has.
    pub layout: Layout,
    pub(crate) followed: Followed<'a>,
}

impl<P> Resource<'_, P> {
    /// Has a change of another object in the cluster trigger a reconcile. Call this before the object is read; it holds until
    /// the next reconcile.
    pub fn follow(&self, dependency: Dependency) {
        self.followed.follow(dependency);
    }

    /// Says that a failure of this reconcile is due to what it follows: there is no retry before that changes or the next poll.
    pub fn wait_for_followed(&self) {
        self.followed.wait();
    }

    /// Triggers a reconcile of this managed resource later.
    pub fn waker(&self) -> Waker {
        self.followed.waker()
    }

    /// The name of the external resource; empty if it has none yet.
    pub fn external_name(&self) -> &str {
        meta::annotation(self.object, annotation::EXTERNAL_NAME).unwrap_or_default()
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        meta::is_deleting(self.object)
    }

    /// What was published in its connection secret; nothing if it is not to be published.
    pub async fn published(&self) -> Result<Option<Details>> {
        let Some((namespace, name)) = secret::place(self.object, self.layout) else { return Ok(None) };
        let kind = GroupVersionKind::new("", "v1", "Secret");
        let live =
            self.cluster.get(&kind, &namespace, &name).await.context("cannot get connection secret")?;
        Ok(Some(live.as_ref().map(connection::details).unwrap_or_default()))
    }

    /// A part of `status.atProvider`.
    pub fn at_provider(&self, field: &str) -> Option<&Value> {
        self.object.get("status")?.get("atProvider")?.get(field)
    }

    /// The condition of a type, as it was written last.
    pub fn condition(&self, kind: &str) -> Condition {
        conditions::get(&conditions::of(self.object), kind)
    }
}

/// The observed state of the external resource.
#[derive(Clone, Debug)]
pub struct Observation<P> {
    /// Whether it exists.
    pub exists: bool,
    /// Whether it is as the spec wants it.
    pub up_to_date: bool,
    /// How it differs from the spec, human-readable. Must not contain secrets.
    pub difference: String,
    /// The parameters, with fields filled that the spec does not set; see [`late_initialize`].
    pub late_initialized: Option<P>,
    /// How to connect to it.
    pub connection: Details,
    /// Conditions of the managed resource, such as `Ready`, which only the provider can know.
    pub conditions: Vec<Condition>,
    /// `status.atProvider`; without it the field stays as it is.
    pub at_provider: Option<Value>,
    /// When to look again, if sooner than at the next poll.
    pub again_after: Option<Duration>,
}

impl<P> Observation<P> {
    /// It does not exist.
    pub fn missing() -> Self {
        Self { exists: false, up_to_date: false, conditions: Vec::new(), ..Self::up_to_date() }
    }

    /// It exists, is as it should be, and can be used.
    pub fn up_to_date() -> Self {
        Self {
            exists: true,
            up_to_date: true,
            difference: String::new(),
            late_initialized: None,
            connection: Details::new(),
            conditions: vec![Condition::available()],
            at_provider: None,
            again_after: None,
        }
    }

    /// It exists, can be used, and differs from what the spec wants.
    pub fn differs(difference: impl Into<String>) -> Self {
        Self { up_to_date: false, difference: difference.into(), ..Self::up_to_date() }
    }

    /// It exists, can be used, and is as it should be unless there are differences.
    pub fn compared(differences: &[String]) -> Self {
        Self { up_to_date: differences.is_empty(), difference: differences.join("; "), ..Self::up_to_date() }
    }
}

/// What a creation returned.
#[derive(Clone, Debug, Default)]
pub struct Creation {
    /// How to connect to what was created.
    pub connection: Details,
    /// The name of the external resource, if the external system chose it.
    pub external_name: Option<String>,
}

/// What an update returned.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// Connection details that changed.
    pub connection: Details,
    /// Fields of `status.atProvider` that changed.
    pub at_provider: Map<String, Value>,
    /// Conditions of the managed resource that changed.
    pub conditions: Vec<Condition>,
}

/// Keeps the value that the spec sets; else takes the observed one. Returns whether it did.
pub fn late_initialize<T: Clone>(wanted: &mut Option<T>, observed: &T) -> bool {
    let unset = wanted.is_none();
    wanted.get_or_insert_with(|| observed.clone());
    unset
}
