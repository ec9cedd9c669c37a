//! From manifests to a response.
//!
//! A manifest is one of three things: the composite resource itself, of which only the status and the readiness
//! count; a document of the function's own kinds; or a composed resource, which needs a name. Nothing that is desired
//! changes unless every manifest is accepted.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use transom_function::{Ready, Requirements, Resource, RunFunctionRequest, RunFunctionResponse, Struct};
use transom_go::encoding::base64_prefix;
use transom_object::json::kind_of;

use super::conditions;
use super::manifests::Manifest;
use super::requirements::{self, Document};
use crate::ttl;

/// The annotation that names a composed resource.
pub(super) const RESOURCE_NAME: &str = "gotemplating.fn.crossplane.io/composition-resource-name";
/// The annotation with the readiness of a resource.
const READY: &str = "gotemplating.fn.crossplane.io/ready";
/// The annotation on the composite resource with the TTL of a response.
const TTL: &str = "gotemplating.fn.crossplane.io/ttl";
/// The version of the function's own kinds.
const META: &str = "meta.gotemplating.fn.crossplane.io/v1alpha1";
/// The context key under which required resources travel to later steps.
pub(super) const EXTRA_RESOURCES: &str = "apiextensions.crossplane.io/extra-resources";

/// Moves what earlier steps want, and their context, into the answer.
pub(super) fn pass_on(request: &mut RunFunctionRequest, response: &mut RunFunctionResponse) {
    if let Some(desired) = request.desired.take() {
        response.desired = Some(desired);
    }
    if let Some(context) = request.context.take() {
        response.context = Some(context);
    }
}

/// Makes the answer that the manifests describe.
pub(super) fn apply(
    manifests: Vec<Manifest>,
    request: &mut RunFunctionRequest,
    response: &mut RunFunctionResponse,
) -> Result<(), String> {
    let observed = request.observed_composite().object();
    let text = |field: &str| observed[field].as_str().unwrap_or_default().to_owned();
    let identity = (text("apiVersion"), text("kind"));
    if let Some(text) = ttl(observed) {
        // The original treats an invalid duration as absent.
        let text = if text.is_empty() { "0" } else { text };
        let _ = ttl::set(response, text).or_else(|_| ttl::set(response, "0"));
    }
    pass_on(request, response);
    // The original's answer and request share a context that is not empty; an empty one it makes anew.
    let shares_context = response.context.as_ref().is_some_and(|context| !context.fields().is_empty());
    let composite =
        response.desired.as_ref().and_then(|desired| desired.composite.clone()).unwrap_or_default();
    let mut draft = Draft {
        identity,
        composite: Resource { ready: Ready::Unspecified as i32, ..composite },
        composed: BTreeMap::new(),
        requirements: Requirements::default(),
        shares_context,
        response,
    };
    for manifest in manifests {
        draft.add(manifest)?;
    }
    draft.finish(request);
    Ok(())
}

/// The TTL in the annotation of the composite resource.
fn ttl(observed: &Value) -> Option<&str> {
    let annotations = observed["metadata"]["annotations"].as_object()?;
    if !annotations.values().all(Value::is_string) {
        return None;
    }
    annotations.get(TTL)?.as_str()
}

/// An answer under construction.
struct Draft<'r> {
    /// `apiVersion` and `kind` of the composite resource.
    identity: (String, String),
    composite: Resource,
    composed: BTreeMap<String, Resource>,
    requirements: Requirements,
    shares_context: bool,
    response: &'r mut RunFunctionResponse,
}

impl Draft<'_> {
    fn add(&mut self, mut manifest: Manifest) -> Result<(), String> {
        if manifest.api_version() == META {
            return self.meta(&manifest);
        }
        let ready = manifest.take_annotation(READY).map(|ready| readiness(&ready)).transpose()?;
        let name = manifest.take_annotation(RESOURCE_NAME);
        match name {
            Some(name) => {
                let mut resource = manifest.into_resource();
                resource.set_ready(ready.unwrap_or_default());
                self.composed.insert(name, resource);
                Ok(())
            }
            None if (manifest.api_version(), manifest.kind()) == (&self.identity.0, &self.identity.1) => {
                if let Some(ready) = ready {
                    self.composite.set_ready(ready);
                }
                self.status(manifest.object)
            }
            None => Err(format!(
                "{:?} template is missing required {RESOURCE_NAME:?} annotation",
                manifest.kind()
            )),
        }
    }

    /// Merges the status of a composite manifest over the desired one.
    fn status(&mut self, mut object: Map<String, Value>) -> Result<(), String> {
        let existing = self.composite.object().get("status").map(kind_of);
        if let Some(kind) = existing.filter(|kind| !matches!(*kind, "object" | "null")) {
            return Err(format!("cannot get desired composite status: {}", not_an_object(kind)));
        }
        let status = match object.remove("status") {
            // Neither has a status: none is added.
            None if existing.is_none() => return Ok(()),
            None => Value::Object(Map::new()),
            Some(status @ Value::Object(_)) => status,
            Some(Value::Null) => Value::Object(Map::new()),
            Some(other) => {
                let problem = not_an_object(kind_of(&other));
                return Err(format!("cannot get templated composite status: {problem}"));
            }
        };
        let fields = self.composite.resource.get_or_insert_with(Struct::default).fields_mut();
        overlay(fields.entry("status").or_insert(Value::Null), status);
        Ok(())
    }

    /// A document of the function's own kinds.
    fn meta(&mut self, manifest: &Manifest) -> Result<(), String> {
        let field = |name: &str| {
            let found = manifest.object.get(name);
            found.ok_or_else(|| format!("{name}: no such field"))
        };
        match manifest.kind() {
            "CompositeConnectionDetails" => {
                self.connection_details(manifest.object.get("data").unwrap_or(&Value::Null));
                Ok(())
            }
            "ClaimConditions" => {
                let list = field("conditions")
                    .map_err(|problem| format!("cannot get Conditions from input: {problem}"))?;
                conditions::set(self.response, list)
            }
            "Context" => {
                let data =
                    field("data").map_err(|problem| format!("cannot get Contexts from input: {problem}"))?;
                self.context(data.clone())
            }
            kind @ ("ExtraResources" | "RequiredResources") => {
                let document = match kind {
                    "ExtraResources" => Document::ExtraResources,
                    _ => Document::RequiredResources,
                };
                let required = field("requirements")
                    .map_err(|problem| format!("cannot get extra resources requirements: {problem}"))?;
                requirements::add(&mut self.requirements, document, required)
            }
            other => Err(format!(
                "invalid kind {other:?} for apiVersion {META:?} - must be one of CompositeConnectionDetails, Context \
                 or ExtraResources"
            )),
        }
    }

    /// Adds connection details of the composite resource; a block with values that are not strings is ignored.
    fn connection_details(&mut self, data: &Value) {
        let Some(data) = data.as_object().filter(|data| data.values().all(Value::is_string)) else { return };
        for (key, value) in data {
            // As far as it can be decoded: the original ignores what is wrong with the rest.
            let (bytes, _problem) = base64_prefix(value.as_str().unwrap_or_default().as_bytes());
            self.composite.connection_details.insert(key.clone(), bytes);
        }
    }

    /// Merges data into the context. Where the request's was empty, the original forgets from one document to the
    /// next: it then replaces whole keys.
    fn context(&mut self, data: Value) -> Result<(), String> {
        let data = match data {
            // Without data there is no context.
            Value::Object(data) if data.is_empty() => return Ok(()),
            Value::Object(data) => data,
            Value::Null => return Ok(()),
            other => {
                return Err(format!("cannot get Contexts from input: {}", not_an_object(kind_of(&other))));
            }
        };
        let context = self.response.context.get_or_insert_with(Struct::default).fields_mut();
        for (key, value) in data {
            let slot = context.entry(key).or_insert(Value::Null);
            if self.shares_context {
                overlay(slot, value);
            } else {
                *slot = value;
            }
        }
        Ok(())
    }

    fn finish(self, request: &RunFunctionRequest) {
        let Draft { mut composite, composed, requirements, shares_context, response, .. } = self;
        let state = crate::desired::write_back(response);
        state.resources.extend(composed);
        composite.resource.get_or_insert_with(Struct::default);
        state.composite = Some(composite);
        if requirements != Requirements::default() {
            response.requirements = Some(requirements);
        }
        for resources in [&request.extra_resources, &request.required_resources] {
            if resources.is_empty() {
                continue;
            }
            let context = response.context.as_ref().filter(|_| shares_context);
            let known = context.and_then(|context| context.fields().get(EXTRA_RESOURCES)?.as_object());
            let mut all = known.cloned().unwrap_or_default();
            all.extend(requirements::found(resources));
            response.set_context(EXTRA_RESOURCES, all);
        }
    }
}

/// Lays a value over another: objects are merged, anything else replaces what was there.
fn overlay(old: &mut Value, new: Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                overlay(old.entry(key).or_insert(Value::Null), value);
            }
        }
        (old, new) => *old = new,
    }
}

fn readiness(text: &str) -> Result<Ready, String> {
    match text {
        "True" => Ok(Ready::True),
        "False" => Ok(Ready::False),
        "Unspecified" => Ok(Ready::Unspecified),
        other => Err(format!(
            "invalid function input: invalid {READY:?} annotation value {other:?}: must be True, False, or Unspecified"
        )),
    }
}

fn not_an_object(kind: &str) -> String {
    format!(
        "cannot unmarshal value from JSON: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_as_far_as_it_goes() {
        for (text, bytes) in [
            ("", ""),
            ("dmFsdWU=", "value"),
            ("dmFs\r\ndWU=", "value"),
            ("dg==", "v"),
            ("dmE=", "va"),
            ("dmFs", "val"),
            ("dmFsdWU", "val"),
            ("dmFs!WU=", "val"),
            ("dmFsd===", "val"),
            ("dg==dmFs", "v"),
            ("=", ""),
        ] {
            assert_eq!(base64_prefix(text.as_bytes()).0, bytes.as_bytes(), "{text}");
        }
    }
}
