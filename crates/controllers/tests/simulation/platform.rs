//! The platform that is simulated: three kinds of composite resources, one of them with claims, and the function that
//! says what they are composed of.

use crate::simulation::wire::{Mood, Wire};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_function::{
    Error, Function, Ready, Resource, ResourceSelector, RunFunctionRequest, RunFunctionResponse, async_trait,
};
use transom_object::{GroupVersionKind, meta};

pub(super) const GROUP: &str = "sim.example.org";
/// Where cluster-scoped composite resources put what they compose.
pub(super) const HOME: &str = "default";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Sort {
    /// Legacy: `XThing`, which may be claimed by `Thing`.
    Thing,
    /// In a namespace.
    App,
    /// Cluster-scoped; may contain an App.
    Zone,
}

impl Sort {
    pub(super) const ALL: [Self; 3] = [Self::Thing, Self::App, Self::Zone];

    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Thing => "XThing",
            Self::App => "App",
            Self::Zone => "Zone",
        }
    }

    /// What its objects are stored under.
    pub(super) fn resource(self) -> &'static str {
        match self {
            Self::Thing => "xthings.sim.example.org",
            Self::App => "apps.sim.example.org",
            Self::Zone => "zones.sim.example.org",
        }
    }

    pub(super) fn gvk(self) -> GroupVersionKind {
        GroupVersionKind::new(GROUP, "v1", self.kind())
    }

    /// The fields of the control plane in a spec.
    pub(super) fn machinery(self, xr: &Value) -> &Value {
        match self {
            Self::Thing => &xr["spec"],
            _ => &xr["spec"]["crossplane"],
        }
    }

    fn scope(self) -> &'static str {
        match self {
            Self::Thing => "LegacyCluster",
            Self::App => "Namespaced",
            Self::Zone => "Cluster",
        }
    }
}

pub(super) const CLAIMS: &str = "things.sim.example.org";

pub(super) fn claim_kind() -> GroupVersionKind {
    GroupVersionKind::new(GROUP, "v1", "Thing")
}

pub(super) fn definition(sort: Sort) -> Value {
    let plural = sort.resource().split('.').next().unwrap_or_default();
    let fields = json!({
        "count": {"type": "integer"}, "value": {"type": "string"}, "config": {"type": "string"},
        "fixed": {"type": "boolean"}, "nested": {"type": "boolean"},
    });
    let mut xrd = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": sort.resource()},
        "spec": {
            "group": GROUP, "scope": sort.scope(), "names": {"kind": sort.kind(), "plural": plural},
            "versions": [{
                "name": "v1", "served": true, "referenceable": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": fields},
                    "status": {"type": "object", "properties": {"parts": {"type": "integer"}}},
                }}},
            }],
        },
    });
    if sort == Sort::Thing {
        xrd["spec"]["claimNames"] = json!({"kind": "Thing", "plural": "things"});
        xrd["spec"]["connectionSecretKeys"] = json!(["password"]);
    }
    xrd
}

pub(super) fn composition(sort: Sort, version: u64) -> Value {
    let input = json!({"apiVersion": "sim.example.org/v1", "kind": "Input", "version": version});
    let mut composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": sort.resource()},
        "spec": {
            "compositeTypeRef": {"apiVersion": sort.gvk().api_version(), "kind": sort.kind()},
            "mode": "Pipeline",
            "pipeline": [{"step": "parts", "functionRef": {"name": "parts"}, "input": input}],
        },
    });
    if sort == Sort::Thing {
        composition["spec"]["writeConnectionSecretsToNamespace"] = HOME.into();
    }
    composition
}

pub(super) fn function() -> Value {
    json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": "parts"},
        "spec": {"package": "example.org/parts:v1"},
    })
}

/// What a user asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub count: u64,
    pub value: u64,
    /// The ConfigMap whose value is copied, if there is one.
    pub config: Option<&'static str>,
    /// One part has a name that others may have taken.
    pub fixed: bool,
    pub nested: bool,
    pub secret: bool,
}

pub(super) const CONFIGS: [&str; 2] = ["config-a", "config-b"];

impl Spec {
    pub(super) fn fields(&self) -> Value {
        let mut spec = json!({
            "count": self.count, "value": self.value.to_string(), "fixed": self.fixed, "nested": self.nested,
        });
        if let Some(config) = self.config {
            spec["config"] = config.into();
        }
        spec
    }

    fn read(xr: &Value) -> Self {
        let spec = &xr["spec"];
        let text = |field: &str| spec[field].as_str().unwrap_or_default();
        Self {
            count: spec["count"].as_u64().unwrap_or_default(),
            value: text("value").parse().unwrap_or_default(),
            config: CONFIGS.into_iter().find(|c| *c == text("config")),
            fixed: spec["fixed"] == true,
            nested: spec["nested"] == true,
            secret: false,
        }
    }
}

/// One thing that is composed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub sort: Option<Sort>,
    pub namespace: String,
    pub name: Option<String>,
    pub content: Value,
}

/// What a composite resource is composed of, by name in the composition: the platform's author decides that.
pub(super) fn parts(
    namespace: &str,
    name: &str,
    spec: &Spec,
    version: u64,
    config: Option<&str>,
) -> BTreeMap<String, Part> {
    let namespace = if namespace.is_empty() { HOME } else { namespace };
    let map = |data: Value| Part { sort: None, namespace: namespace.to_owned(), name: None, content: data };
    let mut parts = BTreeMap::new();
    for index in 0..spec.count {
        let data = json!({"value": spec.value.to_string(), "version": version.to_string()});
        parts.insert(format!("part-{index}"), map(data));
    }
    if version % 2 == 1 {
        parts.insert("odd".to_owned(), map(json!({"version": version.to_string()})));
    }
    if let (Some(name), Some(config)) = (spec.config, config) {
        parts.insert("copy".to_owned(), map(json!({"of": name, "value": config})));
    }
    if spec.fixed {
        let name = Some(format!("fixed-{name}"));
        parts.insert("fixed".to_owned(), Part { name, ..map(json!({"value": spec.value.to_string()})) });
    }
    if spec.nested {
        let inner = inner(spec);
        let content = inner.fields();
        parts.insert("inner".to_owned(), Part { sort: Some(Sort::App), ..map(content) });
    }
    parts
}

/// What a nested App is asked for.
pub(super) fn inner(spec: &Spec) -> Spec {
    Spec { count: 1, value: spec.value, config: None, fixed: false, nested: false, secret: false }
}

/// The function that composes all kinds.
pub(super) struct Parts(pub Arc<Wire>);

#[async_trait]
impl Function for Parts {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let (takes, mood) = self.0.call();
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        let mut response = request.start_response();
        response.meta.as_mut().unwrap().ttl = None;
        match mood {
            Mood::Well => {}
            Mood::Broken => return Err(Error::fatal("broken, says chance")),
            Mood::Fatal => {
                response.fatal("fatal, says chance");
                return Ok(response);
            }
        }
        let xr = request.observed_composite().object().clone();
        let spec = Spec::read(&xr);
        let mut config = None;
        if let Some(name) = spec.config {
            response.require("config", ResourceSelector::named("v1", "ConfigMap", name).in_namespace(HOME));
            let found = request.required("config").unwrap_or_default();
            config = found.first().and_then(|c| c.object()["data"]["value"].as_str().map(str::to_owned));
        }
        let input = request.input.as_ref().map(|i| i.as_value()["version"].clone());
        let version = input.and_then(|v| v.as_f64()).unwrap_or_default() as u64;
        let parts = parts(meta::namespace(&xr), meta::name(&xr), &spec, version, config.as_deref());
        response.composite().set("status.parts", parts.len() as u64)?;
        response.set_connection_detail("password", spec.value.to_string());
        for (name, part) in parts {
            let mut object = match part.sort {
                None => json!({"apiVersion": "v1", "kind": "ConfigMap", "data": part.content}),
                Some(sort) => json!({
                    "apiVersion": sort.gvk().api_version(), "kind": sort.kind(), "spec": part.content,
                }),
            };
            meta::set_namespace(&mut object, &part.namespace);
            if let Some(name) = &part.name {
                meta::set_name(&mut object, name);
            }
            let ready = match part.sort {
                None => true,
                Some(_) => request.observed_composed(&name).is_some_and(|o| o.has_condition("Ready")),
            };
            let resource = Resource::new(object)?;
            response.set_composed(name, resource.with_ready(if ready { Ready::True } else { Ready::False }));
        }
        Ok(response)
    }
}
