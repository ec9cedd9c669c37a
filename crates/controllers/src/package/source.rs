//! From the reference of a package to its content: ImageConfigs decide where it is pulled from and with which Secret, the
//! registry does the rest. Secrets are read for each request to the registry, and errors contain nothing of them. They are
//! followed: a change of one that a run read requeues its key.

use super::{PullSecretReader, Shared};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use transom_engine::{BoxError, Dependency, Error, ErrorContext, Following, Key, Result, RunLog};
use transom_object::GroupVersionKind;
use transom_packages::image_config::{self, ImagePlan};
use transom_packages::lock::graph::Mirrors;
use transom_packages::stream::{self, Package as PackageContent};
use transom_packages::{
    Content, Credentials, Digest, Fetched, PackageKind, Reference, RegistryError, RegistryErrorKind,
};
use transom_xapi::composition::NameReference;
use transom_xapi::connection;
use transom_xapi::package::{Installation, PullPolicy};
use transom_xapi::{ImageConfig, Package, PackageRevision};

use crate::catalog::kinds;

/// How long the registry may take to say which digest a tag leads to, or which tags there are.
const LOOKUP_WITHIN: Duration = Duration::from_secs(60);
/// How long the registry may take to send a package.
const FETCH_WITHIN: Duration = Duration::from_secs(180);
/// The longest wait that a registry can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(6 * 60 * 60);
/// The largest `package.yaml` that is read at once.
const SMALL_BYTES: usize = 256 << 10;

/// A run, as far as it reads Secrets.
#[derive(Clone, Copy)]
pub(super) struct Run<'r> {
    /// What it reads and writes.
    pub(super) log: &'r RunLog,
    /// Its key.
    pub(super) key: &'r Key,
    /// The Secrets and ServiceAccounts that it and other runs of its controller read.
    pub(super) followed: &'r Following,
}

impl<'r> Run<'r> {
    /// A run that begins: what the one before it read no longer requeues its key.
    pub(super) fn begin(log: &'r RunLog, key: &'r Key, followed: &'r Following) -> Self {
        followed.forget(key);
        Self { log, key, followed }
    }
}

/// How many packages of one registry are fetched and read at a time.
const FETCHES_OF_A_REGISTRY: usize = 8;

/// The fetches under way, by registry: one that does not respond, or sends all that is allowed, takes the slots of its own
/// packages only.
#[derive(Default)]
pub(super) struct Fetches(Mutex<BTreeMap<String, Arc<Semaphore>>>);

impl Fetches {
    async fn slot(&self, registry: &str) -> Result<OwnedSemaphorePermit> {
        let slots = {
            let mut registries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            registries.retain(|name, slots| name == registry || Arc::strong_count(slots) > 1);
            let slots = registries.entry(registry.to_owned());
            slots.or_insert_with(|| Arc::new(Semaphore::new(FETCHES_OF_A_REGISTRY))).clone()
        };
        slots.acquire_owned().await.map_err(Error::domain)
    }
}

impl Shared {
    /// All ImageConfigs, in the order of their names.
    pub(super) fn image_configs(&self) -> Vec<ImageConfig> {
        self.plane.catalog.image_configs.all().iter().map(|config| (**config).clone()).collect()
    }

    /// What the ImageConfigs say about a reference.
    pub(super) fn plan_image(&self, text: &str) -> Result<ImagePlan> {
        let reference = Reference::parse(text).map_err(Error::permanent)?;
        image_config::plan(&self.image_configs(), &reference).map_err(Error::permanent)
    }

    /// The same for an image that has no revision yet, by the ImageConfigs that the server has: the watch may not have
    /// reported one that was written before the package, and without it the image would be installed unverified.
    pub(super) async fn plan_new_image(&self, text: &str) -> Result<ImagePlan> {
        let reference = Reference::parse(text).map_err(Error::permanent)?;
        let listed = self.plane.cluster.list(&kinds::image_config(), "", &BTreeMap::new()).await;
        let listed = listed.context("cannot list ImageConfigs")?;
        let configs: Result<Vec<ImageConfig>, _> = listed.iter().map(ImageConfig::deserialize).collect();
        image_config::plan(&configs.map_err(Error::permanent)?, &reference).map_err(Error::permanent)
    }

    /// Where sources are pulled from, for those that an ImageConfig rewrites.
    pub(super) fn mirrors<'s>(&self, sources: impl IntoIterator<Item = &'s str>) -> Mirrors {
        image_config::mirrors(&self.image_configs(), sources)
    }

    /// The digest that an image has now. A reference with a digest needs no request.
    pub(super) async fn resolve(
        &self,
        run: Run<'_>,
        plan: &ImagePlan,
        secrets: &[NameReference],
    ) -> Result<Digest> {
        if let Some(digest) = &plan.resolved.digest {
            return Ok(digest.clone());
        }
        let with = self.credentials(run, plan.pull_secret.as_deref(), secrets).await?;
        let asked = self.registry.resolve(&plan.resolved, &with);
        within(LOOKUP_WITHIN, &plan.resolved, asked).await
    }

    /// The content of an image at a digest, as a package of a kind. It must have been verified.
    pub(super) async fn content(
        &self,
        run: Run<'_>,
        kind: PackageKind,
        plan: &ImagePlan,
        digest: &Digest,
        installation: &Installation,
    ) -> Result<PackageContent> {
        let pinned = plan.resolved.at(digest.clone());
        // Held until the content is read: as many packages of a registry are in memory at most.
        let _slot = self.fetches.slot(&pinned.registry).await?;
        let fetched = match installation.pull_policy() {
            PullPolicy::Never => self.at_hand(&pinned).await?,
            PullPolicy::IfNotPresent | PullPolicy::Always => {
                let secrets = &installation.package_pull_secrets;
                let with = self.credentials(run, plan.pull_secret.as_deref(), secrets).await?;
                within(FETCH_WITHIN, &pinned, self.registry.fetch(&pinned, &with)).await?
            }
        };
        let invalid = |error: stream::StreamError| Error::permanent(format!("{pinned}: {error}"));
        let content = self.parse(fetched.content).await?.map_err(invalid)?;
        content.must_be(kind).map_err(invalid)?;
        Ok(content)
    }

    /// The content of an image that must not be pulled.
    async fn at_hand(&self, pinned: &Reference) -> Result<Fetched> {
        let found = within(FETCH_WITHIN, pinned, self.registry.at_hand(pinned)).await?;
        found.ok_or_else(|| {
            Error::domain(format!(
                "{pinned} is not in the cache of packages, and spec.packagePullPolicy is Never; set it to IfNotPresent to \
                 pull the image, or install from a file that has it"
            ))
        })
    }

    /// Reads a package. A large one is read on a thread that may block, so that others go on, and one at a time, because
    /// it takes much memory.
    async fn parse(&self, content: Content) -> Result<Result<PackageContent, stream::StreamError>> {
        if content.len() <= SMALL_BYTES {
            return Ok(stream::parse(&content));
        }
        let _one = self.large.lock().await;
        let parsed = tokio::task::spawn_blocking(move || stream::parse(&content)).await;
        parsed.map_err(|error| Error::domain(format!("cannot read a package: {error}")))
    }

    /// A request for the tags of a source, and words that tell it apart from requests to other places and with other
    /// credentials.
    pub(super) async fn tags(
        &self,
        run: Run<'_>,
        source: &str,
        secrets: &[NameReference],
    ) -> Result<(String, BoxFuture<'static, Result<Vec<String>>>)> {
        let reference = Reference::parse_source(source).map_err(Error::permanent)?;
        // Prefixes of ImageConfigs may end in the colon before a tag.
        let any = Reference { tag: Some("latest".to_owned()), ..reference };
        let plan = image_config::plan(&self.image_configs(), &any).map_err(Error::permanent)?;
        let with = self.credentials(run, plan.pull_secret.as_deref(), secrets).await?;
        let registry = self.registry.clone();
        let words = format!("{} {}", plan.resolved, fingerprint(&with));
        let asked = async move {
            let asked = registry.tags(&plan.resolved, &with);
            within(LOOKUP_WITHIN, &plan.resolved, asked).await
        };
        Ok((words, asked.boxed()))
    }

    /// The credentials in the pull secret of an ImageConfig, those of the package, and those of the service account.
    pub(super) async fn credentials(
        &self,
        run: Run<'_>,
        configured: Option<&str>,
        named: &[NameReference],
    ) -> Result<Vec<Credentials>> {
        let mut all = Vec::new();
        for name in configured.into_iter().chain(named.iter().map(|secret| secret.name.as_str())) {
            let found = self.pull_secret(run, name).await?;
            all.extend(found.ok_or_else(|| {
                let namespace = &self.plane.options.namespace;
                Error::domain(format!(
                    "cannot get pull secret {name:?}: there is no such Secret in namespace {namespace:?}"
                ))
            })?);
        }
        for name in self.account_secrets(run).await? {
            // As for Pods, a Secret of the account that does not exist is left out.
            all.extend(self.pull_secret(run, &name).await?.unwrap_or_default());
        }
        Ok(all)
    }

    async fn account_secrets(&self, run: Run<'_>) -> Result<Vec<String>> {
        let account = GroupVersionKind::new("", "v1", "ServiceAccount");
        let name = &self.plane.options.service_account;
        let read = self.read_followed(run, &account, name).await;
        let Some(account) = read.context(format!("cannot get ServiceAccount {name}"))? else {
            return Ok(Vec::new());
        };
        let secrets = account.get("imagePullSecrets").and_then(|list| list.as_array()).into_iter().flatten();
        Ok(secrets.filter_map(|secret| secret["name"].as_str().map(str::to_owned)).collect())
    }

    async fn pull_secret(&self, run: Run<'_>, name: &str) -> Result<Option<Vec<Credentials>>> {
        let namespace = &self.plane.options.namespace;
        let read = self.read_followed(run, &kinds::secret(), name).await;
        let read = read.context(format!("cannot get pull secret {name:?}"))?;
        let Some(secret) = read else { return Ok(None) };
        let reader: &PullSecretReader = &self.read_pull_secret;
        let credentials = reader(&connection::details(&secret)).map_err(Error::domain);
        credentials.context(format!("cannot use pull secret {name:?} in namespace {namespace:?}")).map(Some)
    }

    /// An object in the namespace of the control plane. The key of the run is requeued when it changes or comes to exist.
    pub(super) async fn read_followed(
        &self,
        run: Run<'_>,
        gvk: &GroupVersionKind,
        name: &str,
    ) -> Result<Option<Value>> {
        let namespace = &self.plane.options.namespace;
        // Followed before it is read, so that no change is missed.
        let (gvk_of, namespace_of) = (gvk.clone(), namespace.clone());
        let object = Dependency::Named { gvk: gvk_of, namespace: namespace_of, name: name.to_owned() };
        run.followed.add(run.key, object);
        self.plane.read(run.log, gvk, namespace, name).await
    }
}

/// Whether the package, with what the ImageConfigs say about it now, is what its current revision was made from.
pub(super) fn is_unchanged(package: &Package, plan: &ImagePlan) -> bool {
    let status = &package.status;
    status.current_identifier == package.spec.package
        && status.resolved_package == plan.resolved.to_string()
        && status.applied_image_config_refs == plan.applied
}

/// Whether a revision says where it was pulled from.
pub(super) fn is_recorded(revision: &PackageRevision, plan: &ImagePlan) -> bool {
    let status = &revision.status;
    status.resolved_image == plan.resolved.to_string() && status.applied_image_config_refs == plan.applied
}

/// Distinguishes credentials without keeping them.
fn fingerprint(credentials: &[Credentials]) -> Digest {
    let parts = credentials.iter().map(|c| (&c.registry, &c.username, &c.password, &c.identity_token));
    Digest::of(format!("{:?}", parts.collect::<Vec<_>>()).as_bytes())
}

/// The error of a request to a registry. It is sent again no earlier than the registry asks for, within reason.
pub(super) fn failed(cause: impl Into<BoxError>, asked: Option<Duration>) -> Error {
    match asked {
        Some(asked) => Error::deferred(cause, asked.min(LONGEST_WAIT)),
        None => Error::domain(cause),
    }
}

/// The error with what can be done about it.
fn with_remedy(error: RegistryError) -> RegistryError {
    let remedy = match error.kind {
        RegistryErrorKind::NotFound => "check the reference, and the ImageConfigs that rewrite it",
        RegistryErrorKind::Unauthorized => {
            "name a Secret with credentials in spec.packagePullSecrets or in an ImageConfig"
        }
        _ => return error,
    };
    RegistryError { message: format!("{}; {remedy}", error.message), ..error }
}

/// The answer of the registry, unless it takes too long.
pub(super) async fn within<T>(
    time: Duration,
    reference: &Reference,
    asked: impl Future<Output = Result<T, RegistryError>>,
) -> Result<T> {
    match tokio::time::timeout(time, asked).await {
        Ok(answer) => answer.map_err(|error| {
            let asked = error.retry_after;
            failed(with_remedy(error), asked)
        }),
        Err(_) => {
            let (registry, seconds) = (&reference.registry, time.as_secs());
            Err(Error::domain(format!(
                "{reference}: registry {registry} did not respond within {seconds} seconds"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_one_remedy() {
        let message = "r.io/a:v1: access is refused; no credentials were given".to_owned();
        let refused = RegistryError { kind: RegistryErrorKind::Unauthorized, message, retry_after: None };
        assert_eq!(
            with_remedy(refused).message,
            "r.io/a:v1: access is refused; no credentials were given; name a Secret with credentials in \
             spec.packagePullSecrets or in an ImageConfig"
        );
    }

    #[test]
    fn what_a_registry_asks_for_is_kept_within_reason() {
        let asks = |seconds: Option<u64>| {
            let error = failed("busy", seconds.map(Duration::from_secs));
            error.retry_after().map(|asked| asked.as_secs())
        };
        assert_eq!((asks(None), asks(Some(3600)), asks(Some(u64::MAX))), (None, Some(3600), Some(21_600)));
    }

    #[test]
    fn credentials_differ_when_any_of_their_parts_differs() {
        let of = |registry: &str, username: &str, password: &str, token: Option<&str>| Credentials {
            registry: registry.to_owned(),
            username: username.to_owned(),
            password: password.to_owned(),
            identity_token: token.map(str::to_owned),
        };
        let all = [of("r", "u", "p", None), of("r", "u", "p2", None), of("r", "up", "", None)];
        let more = [of("r2", "u", "p", None), of("r", "u", "p", Some("")), of("r", "u", "p", Some("t"))];
        let one_each = all.iter().chain(&more).map(std::slice::from_ref);
        let distinct: std::collections::BTreeSet<String> =
            one_each.chain([&[][..], &all[..2]]).map(|list| fingerprint(list).to_string()).collect();
        assert_eq!(distinct.len(), 8);
    }
}
