//! The CRDs of composite resources and claims, derived from an XRD.
//!
//! Only some of what a user writes reaches the CRD: description and rules of the whole, and of `spec` and `status`
//! their properties, required fields, rules, `oneOf` and description. Crossplane's own properties are laid over the
//! user's, and win.

mod machinery;
mod typed;

pub use machinery::{
    KEPT_FIELDS, claim_only_fields, claim_status_fields, composite_spec_fields, is_own_field,
};

use crate::constants::kind;
use crate::definition::{Definition, Names, Scope, Version};
use crate::metadata::controller_reference;
use serde_json::{Map, Value, json};
use transom_object::quote::quote;

/// The category of composite resources, by which `kubectl get composite` lists them.
pub const CATEGORY_COMPOSITE: &str = "composite";
/// The category of claims.
pub const CATEGORY_CLAIM: &str = "claim";

/// Names are used as values of labels.
const MAX_NAME_LENGTH: i64 = 63;

/// Fields beyond Crossplane's own that the derived schemas shall have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// `status.watchedResourceRefs`, the resources outside the composite resource whose changes wake it, and
    /// `status.watchedResourceRefsOmitted`, how many of them are not listed.
    pub watched_resources: bool,
    /// `status.lastHandledReconcileAt`. Crossplane writes the field, but its schemas prune it.
    pub handled_requests: bool,
}

impl Extensions {
    /// All of them.
    pub const ALL: Self = Self { watched_resources: true, handled_requests: true };
}

/// Why no CRD can be derived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what it is")]
pub enum Error {
    #[error("cannot generate CRD for {} {}", quote(what), quote(name))]
    Version { what: &'static str, name: String, source: SchemaError },
    #[error("invalid resource claim names")]
    ClaimNames(#[source] ClaimNamesError),
}

/// What is wrong with the schema of a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what it is")]
pub enum SchemaError {
    #[error("custom resource validation cannot be nil")]
    Missing,
    #[error("cannot parse validation schema: cannot parse validation schema: {0}")]
    Malformed(String),
}

/// What is wrong with the names of the claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what it is")]
pub enum ClaimNamesError {
    #[error("missing names")]
    Missing,
    #[error("{} conflicts with composite resource name", quote(.0))]
    Conflict(String),
}

/// The CRD of the composite resources, ready to be written.
pub fn composite_crd(xrd: &Definition, extensions: Extensions) -> Result<Value, Error> {
    let scope = xrd.scope();
    let kind_of_crd = Kind {
        what: "Composite Resource",
        columns: machinery::composite_columns(scope.layout()),
        spec: machinery::composite_spec(scope, xrd.spec.default_composition_update_policy.as_deref()),
        status: machinery::composite_status(scope.layout(), extensions),
    }
    .converted_by_rules_of(xrd);
    let names = with_category(&xrd.spec.names, CATEGORY_COMPOSITE);
    let crd_scope = if scope == Scope::Namespaced { "Namespaced" } else { "Cluster" };
    crd(xrd, &xrd.metadata.name, &names, crd_scope, &kind_of_crd)
}

/// The CRD of the claims, ready to be written.
pub fn claim_crd(xrd: &Definition) -> Result<Value, Error> {
    let names = claim_names(xrd).map_err(Error::ClaimNames)?;
    let kind_of_crd = Kind {
        what: "Composite Resource Claim",
        columns: machinery::claim_columns(),
        spec: machinery::claim_spec(xrd.spec.default_composite_delete_policy.as_deref()),
        // Claims have the field that lists the condition types for claims, too: so they do in Crossplane.
        status: machinery::composite_status(Scope::LegacyCluster.layout(), Extensions::default()),
    }
    .converted_by_rules_of(xrd);
    let name = format!("{}.{}", names.plural, xrd.spec.group);
    crd(xrd, &name, &with_category(names, CATEGORY_CLAIM), "Namespaced", &kind_of_crd)
}

/// The names of the claims, which must not be those of the composite resources.
pub fn claim_names(xrd: &Definition) -> Result<&Names, ClaimNamesError> {
    let claim = xrd.spec.claim_names.as_ref().ok_or(ClaimNamesError::Missing)?;
    let composite = &xrd.spec.names;
    let always = [(&claim.kind, &composite.kind), (&claim.plural, &composite.plural)];
    let if_given = [(&claim.singular, &composite.singular), (&claim.list_kind, &composite.list_kind)];
    let conflict = always
        .into_iter()
        .find(|(a, b)| a == b)
        .or_else(|| if_given.into_iter().find(|(a, b)| a == b && !a.is_empty()));
    conflict.map_or(Ok(claim), |(name, _)| Err(ClaimNamesError::Conflict(name.clone())))
}

fn with_category(names: &Names, category: &str) -> Names {
    let mut names = names.clone();
    names.categories.push(category.to_owned());
    names
}

/// What distinguishes the CRD of composite resources from that of claims.
struct Kind {
    what: &'static str,
    columns: Vec<Value>,
    spec: Map<String, Value>,
    status: Map<String, Value>,
}

impl Kind {
    /// What kinds with conversion rules have more.
    fn converted_by_rules_of(mut self, xrd: &Definition) -> Self {
        self.status.extend(xrd.conversion_rules().map(|_| machinery::kept_fields()));
        self
    }
}

fn crd(xrd: &Definition, name: &str, names: &Names, scope: &str, kind: &Kind) -> Result<Value, Error> {
    let versions: Result<Vec<Value>, SchemaError> =
        xrd.spec.versions.iter().map(|v| version(v, kind)).collect();
    let versions = versions.map_err(|source| {
        let name = xrd.metadata.name.clone();
        Error::Version { what: kind.what, name, source }
    })?;
    let mut spec = json!({"group": xrd.spec.group, "names": names, "scope": scope, "versions": versions});
    // The rules of the definition are not for the API server: what applies the CRD knows which webhook follows them.
    if let Some(conversion) = xrd.spec.conversion.as_ref().filter(|_| xrd.conversion_rules().is_none()) {
        spec["conversion"] = conversion.clone();
    }
    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata(xrd, name),
        "spec": spec,
    }))
}

/// Labels are the definition's own and those it wants on its CRDs; annotations are only the latter.
fn metadata(xrd: &Definition, name: &str) -> Value {
    let owner =
        controller_reference(kind::APIEXTENSIONS_V1, kind::XRD, &xrd.metadata.name, &xrd.metadata.uid);
    let mut metadata = json!({"name": name, "ownerReferences": [owner]});
    let wanted = xrd.spec.metadata.as_ref();
    let mut labels = xrd.metadata.label_map();
    labels.extend(wanted.and_then(|m| m.labels.clone()).unwrap_or_default());
    if !labels.is_empty() {
        metadata["labels"] = json!(labels);
    }
    if let Some(annotations) = wanted.and_then(|m| m.annotations.as_ref()).filter(|a| !a.is_empty()) {
        metadata["annotations"] = json!(annotations);
    }
    metadata
}

fn version(version: &Version, kind: &Kind) -> Result<Value, SchemaError> {
    let user = version.schema.as_ref().ok_or(SchemaError::Missing)?;
    let user = user
        .open_api_v3_schema
        .as_ref()
        .ok_or_else(|| SchemaError::Malformed("unexpected end of JSON input".to_owned()))?;
    let user = typed::schema(user).map_err(SchemaError::Malformed)?;
    let mut columns = version.additional_printer_columns.clone();
    columns.extend(kind.columns.iter().cloned());
    let mut subresources = json!({"status": {}});
    if let Some(scale) = version.subresources.as_ref().and_then(|s| s.scale.as_ref()) {
        subresources["scale"] = scale.clone();
    }
    let mut out = json!({
        "name": version.name,
        "served": version.served,
        "storage": version.referenceable,
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": merged(&user, kind)},
        "subresources": subresources,
    });
    if version.deprecated == Some(true) {
        out["deprecated"] = true.into();
    }
    if let Some(warning) = &version.deprecation_warning {
        out["deprecationWarning"] = warning.as_str().into();
    }
    Ok(out)
}

/// What is kept of the user's schema, with Crossplane's properties laid over it.
fn merged(user: &Map<String, Value>, kind: &Kind) -> Value {
    const SPEC: &[&str] = &[
        "required",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
        "oneOf",
        "description",
    ];
    const STATUS: &[&str] = &["required", "x-kubernetes-validations", "oneOf", "description"];
    let property = |path: &[&str]| {
        path.iter().try_fold(user, |schema, name| schema.get("properties")?.get(name)?.as_object())
    };
    let part = |name: &str, kept: &[&str], ours: &Map<String, Value>| {
        let user = property(&[name]);
        let mut part = user.map(|user| only(user, kept)).unwrap_or_default();
        let theirs = user.and_then(|s| s.get("properties")).and_then(Value::as_object);
        let mut properties = theirs.cloned().unwrap_or_default();
        properties.extend(ours.clone());
        part.insert("type".to_owned(), "object".into());
        part.insert("properties".to_owned(), properties.into());
        part
    };
    let asked =
        property(&["metadata", "name"]).and_then(|name| name.get("maxLength")).and_then(Value::as_i64);
    let max_length = asked.map_or(MAX_NAME_LENGTH, |asked| asked.min(MAX_NAME_LENGTH));
    let mut whole = only(user, &["description", "x-kubernetes-validations"]);
    whole.insert("type".to_owned(), "object".into());
    whole.insert("required".to_owned(), json!(["spec"]));
    whole.insert(
        "properties".to_owned(),
        json!({
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": max_length}}},
            "spec": part("spec", SPEC, &kind.spec),
            "status": part("status", STATUS, &kind.status),
        }),
    );
    whole.into()
}

fn only(schema: &Map<String, Value>, fields: &[&str]) -> Map<String, Value> {
    fields.iter().filter_map(|f| Some(((*f).to_owned(), schema.get(*f)?.clone()))).collect()
}

/// Whether writing the derived CRD over the live one would change anything. What others added to labels, annotations
/// or owners counts as a change: the definition is the only authority. The words that describe Crossplane's own fields do
/// not: Crossplane has others, and a CRD that it derived is as good.
pub fn needs_update(live: &Value, derived: &Value) -> bool {
    let metadata = |crd: &Value, field: &str| {
        crd.get("metadata").and_then(|m| m.get(field)).filter(|v| !transom_object::json::is_empty(v)).cloned()
    };
    let differ = |field| metadata(live, field) != metadata(derived, field);
    ["labels", "annotations", "ownerReferences"].into_iter().any(differ)
        || defaulted(live) != defaulted(derived)
}

/// The spec of a CRD with what the API server would fill in.
fn defaulted(crd: &Value) -> Value {
    let mut spec = crd.get("spec").cloned().unwrap_or_default();
    let kind = spec.pointer("/names/kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
        names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
    }
    if let Some(spec) = spec.as_object_mut() {
        spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
        spec.remove("preserveUnknownFields");
        let service = spec.get_mut("conversion").and_then(|c| c.pointer_mut("/webhook/clientConfig/service"));
        if let Some(service) = service.and_then(Value::as_object_mut) {
            service.entry("port").or_insert_with(|| 443.into());
        }
        for version in spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
            default_version(version);
            version.pointer_mut("/schema/openAPIV3Schema").into_iter().for_each(machinery::without_words);
        }
    }
    spec
}

fn default_version(version: &mut Value) {
    if let Some(scale) = version.pointer_mut("/subresources/scale").and_then(Value::as_object_mut) {
        scale.retain(|_, path| path != "");
    }
    for column in
        version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut).into_iter().flatten()
    {
        if let Some(column) = column.as_object_mut() {
            column.retain(|_, value| value != "" && *value != json!(0));
        }
    }
}

#[cfg(test)]
mod tests;
