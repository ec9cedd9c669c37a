//! Objects: observe, apply, delete.

use super::references::{self, Resolved};
use super::target::{Surroundings, Target, Targets};
use super::watching::{Interest, Watching};
use super::{comparison, manifest, readiness};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use transom_engine::apply_is_noop;
use transom_object::{GroupVersionKind, fieldpath, meta};
use transom_provider::{
    Condition, Creation, Details, Error, ErrorContext, External, Observation, Resource, Result, Update,
    Waker, secret_data,
};

/// How often what is not ready is looked at.
const UNREADY_POLL_INTERVAL: Duration = Duration::from_secs(30);
/// On a ProviderConfig: the status of Objects does not show the data of Secrets.
const SANITIZE_ANNOTATION: &str = "transom.io/sanitize-secrets";

pub(super) struct Objects {
    pub(super) targets: Arc<Targets>,
    pub(super) watching: Arc<Watching>,
}

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Parameters {
    manifest: Value,
    deletion_propagation_policy: Option<String>,
}

/// One reconcile of an Object.
pub(super) struct Session {
    target: Arc<Target>,
    observed: OnceLock<Observed>,
}

/// What the observation of an Object found.
struct Observed {
    /// With what its references filled in, which is never written to its spec.
    manifest: Value,
    resolved: Resolved,
    exists: bool,
}

impl Observed {
    /// Why a server refused the manifest, without what was copied into it: servers show the values that they refuse.
    fn redact(&self, error: Error) -> Error {
        match error {
            Error::Refused { code, reason, message } => {
                let message = manifest::redacted(&message, &self.resolved.copied);
                Error::Refused { code, reason, message }
            }
            other => other,
        }
    }
}

impl Session {
    fn observed(&self) -> Result<&Observed> {
        self.observed.get().ok_or_else(|| Error::permanent("the object was not observed"))
    }
}

type Of<'a> = Resource<'a, Parameters>;

impl Objects {
    /// Watches the object, if the Object asks for it.
    fn watch(&self, target: &Target, resource: &Of<'_>, manifest: &Value) {
        let waker = resource.waker();
        let wanted = resource.object.pointer("/spec/watch").and_then(Value::as_bool).unwrap_or_default();
        match meta::gvk(manifest).filter(|_| wanted) {
            Some(gvk) => {
                let namespace = Some(meta::namespace(manifest).to_owned());
                let name = Some(meta::name(manifest).to_owned());
                self.watching.watch(&waker, target, Interest { gvk, namespace, name });
            }
            None => self.watching.forget(&waker),
        }
    }

    async fn apply(session: &Session, resource: &Of<'_>) -> Result<Value> {
        let manager = manifest::manager(resource.object);
        let observed = session.observed()?;
        session.target.apply(&observed.manifest, &manager).await.map_err(|e| observed.redact(e))
    }
}

/// Whether the object may be written. One that may not is never compared, which takes the right to write.
fn is_written(object: &Value) -> bool {
    let listed = object.pointer("/spec/managementPolicies").and_then(Value::as_array);
    listed.is_none_or(|all| all.iter().any(|policy| ["Create", "Update", "*"].iter().any(|p| policy == p)))
}

/// How the object differs from what applying the manifest would make of it.
async fn difference(target: &Target, live: &Value, observed: &Observed, manager: &str) -> Result<String> {
    let wanted = &observed.manifest;
    if apply_is_noop(live, wanted, manager, "") {
        return Ok(String::new());
    }
    let Some(owned) = comparison::owned(live, manager) else {
        return Ok("was not applied by this Object yet".to_owned());
    };
    let tried = target.cluster.try_apply(wanted, manager).await.map_err(|e| observed.redact(e));
    let tried = tried.context("cannot dry run SSA")?;
    let desired = comparison::owned(&tried, manager).unwrap_or_default();
    Ok(comparison::difference(&owned, &desired))
}

fn observed_manifest(resource: &Of<'_>, live: &Value) -> Value {
    let sanitized = resource.config.and_then(|config| meta::annotation(config, SANITIZE_ANNOTATION));
    manifest::observed_manifest(live, sanitized == Some("true"))
}

fn readiness_of(resource: &Of<'_>, live: &Value, up_to_date: bool) -> Option<Condition> {
    readiness::condition(resource.object.pointer("/spec/readiness"), live, up_to_date)
}

/// The connection details that an Object takes from objects of its cluster.
async fn connection_details(target: &Target, object: &Value) -> Result<Details> {
    let mut details = Details::new();
    let wanted = object.pointer("/spec/connectionDetails").and_then(Value::as_array);
    for wanted in wanted.into_iter().flatten() {
        let text = |field: &str| wanted.get(field).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
        let gvk = GroupVersionKind::new(group, version, text("kind"));
        let identity = super::identity(&gvk, text("namespace"), text("name"));
        let found = target.get(&identity).await.context("cannot get object")?;
        let missing = || Error::domain(format!("{} {:?} not found", gvk.kind, text("name")));
        let found = found.ok_or_else(missing).context("cannot get object")?;
        let path = text("fieldPath");
        let value = fieldpath::get(&found, path).map_err(Error::domain);
        let value = plain(value.context("cannot get value at fieldPath")?);
        let is_encoded = text("apiVersion") == "v1" && gvk.kind == "Secret" && path.starts_with("data");
        let bytes = if is_encoded {
            let decoded = secret_data(&json!({"data": {"value": value}})).remove("value");
            decoded.ok_or_else(|| Error::domain("cannot decode secret data"))?
        } else {
            value.into_bytes()
        };
        details.insert(text("toConnectionSecretKey").to_owned(), bytes);
    }
    Ok(details)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl External for Objects {
    type Parameters = Parameters;
    type Session = Session;

    async fn connect(&self, resource: &Of<'_>) -> Result<Session> {
        let config = resource.config.ok_or_else(|| Error::permanent("cannot get ProviderConfig"))?;
        let around = Surroundings { cluster: resource.cluster, identity: resource.identity };
        let target = self.targets.of(config, &around, |dependency| resource.follow(dependency)).await;
        let target = target.context("cannot build kube client for provider config")?;
        Ok(Session { target, observed: OnceLock::new() })
    }

    async fn observe(&self, session: &Session, resource: &Of<'_>) -> Result<Observation<Parameters>> {
        let mut manifest = manifest::named(resource.parameters.manifest.clone(), resource.object);
        let deleting = resource.is_deleting();
        let resolved = match deleting {
            true => Resolved::default(),
            false => {
                let resolved = references::resolve(resource, &mut manifest).await;
                resolved.context("cannot resolve resource references")?
            }
        };
        let target = &session.target;
        self.watch(target, resource, &manifest);
        let live = match target.get(&manifest).await {
            // Its definition was deleted, and all objects with it.
            Err(e) if deleting && e.is_unknown_kind() => None,
            live => live.context("cannot get object")?,
        };
        let observed = Observed { manifest, resolved, exists: live.is_some() };
        let observed = session.observed.get_or_init(|| observed);
        let Some(live) = live else { return Ok(Observation::missing()) };
        let difference = match is_written(resource.object) && !deleting {
            true => difference(target, &live, observed, &manifest::manager(resource.object)).await?,
            false => String::new(),
        };
        let up_to_date = difference.is_empty();
        let connection = match up_to_date && !deleting {
            true => {
                connection_details(target, resource.object).await.context("cannot get connection details")?
            }
            false => Details::new(),
        };
        let ready = readiness_of(resource, &live, up_to_date);
        let is_ready =
            ready.as_ref().map_or_else(|| resource.condition("Ready").is_true(), Condition::is_true);
        Ok(Observation {
            up_to_date,
            difference,
            connection,
            conditions: ready.into_iter().collect(),
            at_provider: Some(json!({"manifest": observed_manifest(resource, &live)})),
            again_after: (!is_ready && !deleting).then_some(UNREADY_POLL_INTERVAL),
            ..Observation::up_to_date()
        })
    }

    async fn create(&self, session: &Session, resource: &Of<'_>) -> Result<Creation> {
        Self::apply(session, resource).await.context("cannot create object")?;
        Ok(Creation::default())
    }

    async fn update(&self, session: &Session, resource: &Of<'_>) -> Result<Update> {
        // An apply would create it.
        if !session.observed()?.exists {
            return Err(Error::domain(
                "the object does not exist, and spec.managementPolicies has no Create",
            ));
        }
        let live = Self::apply(session, resource).await.context("cannot apply object")?;
        let ready = readiness_of(resource, &live, true);
        let at_provider = Map::from_iter([("manifest".to_owned(), observed_manifest(resource, &live))]);
        Ok(Update { at_provider, conditions: ready.into_iter().collect(), ..Update::default() })
    }

    async fn delete(&self, session: &Session, resource: &Of<'_>) -> Result<()> {
        let propagation = resource.parameters.deletion_propagation_policy.as_deref();
        let deleted = session.target.delete(&session.observed()?.manifest, propagation).await;
        deleted.context("cannot delete object")
    }

    async fn protect(&self, session: &Session, resource: &Of<'_>) -> Result<()> {
        references::protect(resource, &session.observed()?.resolved.objects).await
    }

    async fn release(&self, resource: &Of<'_>) -> Result<()> {
        self.watching.forget(&resource.waker());
        references::release(resource).await
    }

    fn forget(&self, waker: &Waker) {
        self.watching.forget(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_written_is_not_compared() {
        let object = |policies: Value| json!({"spec": {"managementPolicies": policies}});
        for (policies, expected) in [
            (json!(["*"]), true),
            (json!(["Observe", "Create"]), true),
            (json!(["Observe", "Update"]), true),
            (json!(["Observe"]), false),
            (json!(["Observe", "Delete", "LateInitialize"]), false),
        ] {
            assert_eq!(is_written(&object(policies.clone())), expected, "{policies}");
        }
        assert!(is_written(&json!({"spec": {}})));
    }
}
