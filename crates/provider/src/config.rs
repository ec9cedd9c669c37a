//! ProviderConfigs: which one a managed resource uses, and the usages that protect it from being deleted.

use crate::kind::Layout;
use crate::schema::{Crd, Version, column, conditions, integer, object, text, wide};
use crate::targets::CONTROLLER;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use transom_engine::{
    Change, Controller, Engine, Error, ErrorContext, Key, Mirror, Next, Pace, Reconciler, Result, RunLog,
};
use transom_object::{GroupVersionKind, meta};
use transom_xapi::crds::age_column;
use transom_xapi::{Condition, conditions as marks, metadata};

const FINALIZER: &str = "in-use.crossplane.io";
const NAME_LABEL: &str = "crossplane.io/provider-config";
const KIND_LABEL: &str = "crossplane.io/provider-config-kind";
const CONFIG: &str = "ProviderConfig";
const CLUSTER_CONFIG: &str = "ClusterProviderConfig";
const USAGE: &str = "ProviderConfigUsage";
/// How long until a ProviderConfig is looked at again after an error.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// How long a watch may take until it has reported what this process wrote.
const WATCH_LAG_TIMEOUT: Duration = Duration::from_secs(5);

/// The kinds of a provider's configuration: `ProviderConfig`, `ProviderConfigUsage` and, beside namespaced managed
/// resources, `ClusterProviderConfig`.
#[derive(Clone, Copy)]
pub struct ConfigKinds {
    /// Their API group.
    pub group: &'static str,
    /// Their version.
    pub version: &'static str,
    /// Whether they belong to managed resources of Crossplane v1 or v2.
    pub layout: Layout,
    /// The categories of configurations.
    pub categories: &'static [&'static str],
    /// The schema of their spec; the argument says whether it is that of a namespaced kind.
    pub spec: fn(bool) -> Value,
    /// The path of the name of the Secret with the credentials, for tables.
    pub secret_name: &'static str,
}

/// What is called when a ProviderConfig is gone.
pub(crate) type Forget = Arc<dyn Fn(&ConfigReference) + Send + Sync>;

/// A ProviderConfig that an object refers to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConfigReference {
    /// Its kind.
    pub gvk: GroupVersionKind,
    /// Its namespace; empty if it is cluster scoped.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ConfigReference {
    /// To this ProviderConfig.
    pub fn to(config: &Value) -> Self {
        let gvk = meta::gvk(config).unwrap_or_default();
        Self { gvk, namespace: meta::namespace(config).to_owned(), name: meta::name(config).to_owned() }
    }
}

impl ConfigKinds {
    fn gvk(&self, kind: &str) -> GroupVersionKind {
        GroupVersionKind::new(self.group, self.version, kind)
    }

    /// The kinds of configurations, with whether each is namespaced.
    fn configs(&self) -> Vec<(&'static str, bool)> {
        match self.layout {
            Layout::Legacy => vec![(CONFIG, false)],
            Layout::Modern => vec![(CONFIG, true), (CLUSTER_CONFIG, false)],
        }
    }

    /// The ProviderConfig that an object refers to.
    pub fn reference(&self, object: &Value) -> Result<ConfigReference> {
        let reference = object.pointer("/spec/providerConfigRef");
        let text =
            |field: &str| reference.and_then(|r| r.get(field)).and_then(Value::as_str).unwrap_or_default();
        let name = text("name");
        if name.is_empty() {
            return Err(Error::permanent("managed resource does not reference a ProviderConfig"));
        }
        let (kind, namespace) = match (self.layout, text("kind")) {
            (Layout::Legacy, _) => (CONFIG, ""),
            (Layout::Modern, "") => {
                return Err(Error::permanent("managed resource ProviderConfig reference has no Kind"));
            }
            (Layout::Modern, CONFIG) => (CONFIG, meta::namespace(object)),
            (Layout::Modern, CLUSTER_CONFIG) => (CLUSTER_CONFIG, ""),
            (Layout::Modern, other) => {
                return Err(Error::permanent(format!("invalid ProviderConfig kind: {other}")));
            }
        };
        Ok(ConfigReference { gvk: self.gvk(kind), namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// The CustomResourceDefinitions.
    pub fn crds(&self) -> Vec<Value> {
        let mut crds: Vec<Value> =
            self.configs().into_iter().map(|(kind, ns)| self.config_crd(kind, ns)).collect();
        crds.push(self.usage_crd());
        crds
    }

    fn config_crd(&self, kind: &'static str, namespaced: bool) -> Value {
        let status = json!({"conditions": conditions(), "users": integer("How many objects use it.")});
        let version = Version {
            name: self.version,
            columns: vec![age_column(), wide(column("SECRET-NAME", "string", self.secret_name))],
            description: "How a provider connects to what it manages.",
            properties: json!({
                "spec": (self.spec)(namespaced), "status": object("What was observed.", &[], status),
            }),
            required: &["spec"],
            status: true,
            deprecated: None,
        };
        let plural = if kind == CONFIG { "providerconfigs" } else { "clusterproviderconfigs" };
        let (group, categories) = (self.group, self.categories);
        Crd { group, kind, plural, short_names: &[], categories, namespaced, versions: vec![version] }.build()
    }

    fn usage_crd(&self) -> Value {
        let mut config = json!({"name": text("Its name.")});
        if self.layout == Layout::Modern {
            config["kind"] = text("Its kind.");
        }
        let resource = json!({
            "apiVersion": text("Its version."), "kind": text("Its kind."), "name": text("Its name."),
            "uid": text("Its uid."),
        });
        let version = Version {
            name: self.version,
            columns: vec![
                age_column(),
                column("CONFIG-NAME", "string", ".providerConfigRef.name"),
                column("RESOURCE-KIND", "string", ".resourceRef.kind"),
                column("RESOURCE-NAME", "string", ".resourceRef.name"),
            ],
            description: "Says that a managed resource uses a ProviderConfig.",
            properties: json!({
                "providerConfigRef": object("The configuration.", &["name"], config),
                "resourceRef": object("What uses it.", &["apiVersion", "kind", "name"], resource),
            }),
            required: &["providerConfigRef", "resourceRef"],
            status: false,
            deprecated: None,
        };
        Crd {
            group: self.group,
            kind: USAGE,
            plural: "providerconfigusages",
            short_names: &[],
            categories: self.categories,
            namespaced: self.layout == Layout::Modern,
            versions: vec![version],
        }
        .build()
    }

    fn labels(&self, kind: &str, name: &str) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([(NAME_LABEL.to_owned(), name.to_owned())]);
        if self.layout == Layout::Modern {
            labels.insert(KIND_LABEL.to_owned(), kind.to_owned());
        }
        labels
    }

    /// Records that a managed resource uses a configuration. A record that is right is not written again.
    pub(crate) async fn track(
        &self,
        engine: &Engine,
        log: &RunLog,
        object: &Value,
        config: &ConfigReference,
        manager: &str,
    ) -> Result<()> {
        let (namespace, name) = (meta::namespace(object), meta::uid(object));
        let mut reference = json!({"name": config.name});
        if self.layout == Layout::Modern {
            reference["kind"] = config.gvk.kind.as_str().into();
        }
        let attempted = "cannot apply ProviderConfigUsage";
        let live = engine.cluster.get(&self.gvk(USAGE), namespace, name).await.context(attempted)?;
        if let Some(live) = &live {
            metadata::must_be_controllable_by(live, meta::uid(object))
                .map_err(Error::permanent)
                .context(attempted)?;
            if live.get("providerConfigRef") == Some(&reference) {
                return Ok(());
            }
        }
        let mut usage = json!({
            "apiVersion": self.gvk(USAGE).api_version(),
            "kind": USAGE,
            "metadata": {
                "name": name,
                "labels": self.labels(&config.gvk.kind, &config.name),
                "ownerReferences": [metadata::controller_reference_to(object)],
            },
            "providerConfigRef": reference,
            "resourceRef": {
                "apiVersion": meta::api_version(object), "kind": meta::kind(object), "name": meta::name(object),
            },
        });
        if !namespace.is_empty() {
            meta::set_namespace(&mut usage, namespace);
        }
        let written = match live {
            None => engine.cluster.create(&usage, manager).await,
            Some(live) => {
                meta::set_resource_version(&mut usage, meta::resource_version(&live));
                engine.cluster.update(&usage, manager).await
            }
        };
        log.wrote(&written.context(attempted)?);
        Ok(())
    }

    /// Starts the controllers that count usages and hold back the deletion of configurations that are used.
    pub(crate) fn start(self, engine: &Arc<Engine>, pace: Pace, forget: &Forget) -> Vec<Controller> {
        let start = |(kind, namespaced): (&'static str, bool)| {
            let gvk = self.gvk(kind);
            let name = format!("providerconfig/{}.{}", kind.to_lowercase(), self.group);
            let mut controller = engine.controller(name.clone(), pace);
            controller.watch_own(&gvk, transom_engine::Depth::Header);
            let queue = controller.queue().clone();
            let waking = move |change: &Change<'_>| {
                for seen in [change.before, change.after].into_iter().flatten() {
                    let of_kind = seen.labels.get(KIND_LABEL).is_none_or(|of| of == kind);
                    if let Some(config) = seen.labels.get(NAME_LABEL).filter(|_| of_kind) {
                        let namespace = if namespaced { seen.key.namespace.clone() } else { "".into() };
                        change.wake(&queue, &Key::new(namespace, config.as_str()));
                    }
                }
            };
            let usages = controller.watch(&self.gvk(USAGE), CONTROLLER, Arc::new(waking));
            let (engine, forget) = (engine.clone(), forget.clone());
            controller.start(Configs { engine, kinds: self, gvk, name, namespaced, usages, forget })
        };
        self.configs().into_iter().map(start).collect()
    }
}

/// The reconciler of one kind of configurations.
struct Configs {
    engine: Arc<Engine>,
    kinds: ConfigKinds,
    gvk: GroupVersionKind,
    name: String,
    namespaced: bool,
    usages: Arc<Mirror>,
    forget: Forget,
}

impl Reconciler for Configs {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.engine.read(log, &self.gvk, &key.namespace, &key.name).await;
        let Some(mut object) = read.context("cannot get ProviderConfig")? else {
            let (gvk, namespace, name) = (self.gvk.clone(), key.namespace.to_string(), key.name.to_string());
            (self.forget)(&ConfigReference { gvk, namespace, name });
            return Ok(Next::Gone);
        };
        match self.account(key, log, &mut object).await {
            Err(e) if !e.is_conflict() => {
                self.engine.events.warning(&self.name, &object, "UsageAccounting", e.chain().to_string());
                Ok(Next::After(RETRY_INTERVAL))
            }
            outcome => outcome,
        }
    }
}

impl Configs {
    async fn account(&self, key: &Key, log: &RunLog, object: &mut Value) -> Result<Next> {
        let users = self.users(key).await?;
        if meta::is_deleting(object) {
            if users == 0 {
                if metadata::remove_finalizer(object, FINALIZER) {
                    self.engine
                        .update(log, object)
                        .await
                        .context("cannot remove ProviderConfig finalizer")?;
                }
                return Ok(Next::Wait);
            }
            let words = "Blocking deletion while usages still exist";
            self.engine.events.warning(&self.name, object, "UsageAccounting", words);
            let in_use = Condition::new("Terminating", "True", "InUse").with_message(words);
            return self.write(log, object, users, Some(in_use)).await;
        }
        if metadata::add_finalizer(object, FINALIZER) {
            self.engine.update(log, object).await.context("cannot add ProviderConfig finalizer")?;
        }
        self.write(log, object, users, None).await
    }

    async fn write(
        &self,
        log: &RunLog,
        object: &mut Value,
        users: usize,
        condition: Option<Condition>,
    ) -> Result<Next> {
        let before = object.get("status").cloned().unwrap_or_default();
        marks::mark(object, condition, self.engine.clock.now());
        object["status"]["users"] = users.into();
        let written = self.engine.write_status(log, object, &before).await;
        written.context("cannot update ProviderConfig status").map(|_| Next::Wait)
    }

    /// How many usages there are. Those that no managed resource controls are left over from a restored backup.
    async fn users(&self, key: &Key) -> Result<usize> {
        let gvk = self.kinds.gvk(USAGE);
        let written = self.engine.cluster.newest_written(&gvk);
        if !self.usages.reaches(written, WATCH_LAG_TIMEOUT).await {
            self.usages.ready().await.context("cannot list ProviderConfigUsages")?;
        }
        let labels = self.kinds.labels(&self.gvk.kind, &key.name);
        let namespace = self.namespaced.then_some(&*key.namespace);
        let mut users = 0;
        for usage in self.usages.select(namespace, &labels).keys {
            let Some(seen) = self.usages.get(&usage) else { continue };
            if seen.object.is_null() {
                let deleted =
                    self.engine.cluster.delete(&gvk, &usage.namespace, &usage.name, Default::default());
                deleted.await.context("cannot delete ProviderConfigUsage")?;
            } else {
                users += 1;
            }
        }
        Ok(users)
    }
}
