//! `ResourceList`: the composite resource and its composed resources in one list, as the design of alpha functions has it after
//! KRM functions.
//!
//! Resources that exist and that no earlier step desires are in the list, too, with an annotation that says so. They are desired
//! only if the function removes that annotation: a function that returns its list unchanged keeps nothing alive.

use crate::document::{Wanted, composite, list, results, wanted_status};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use transom_function::{Ready, Resource, RunFunctionRequest, Severity, State};
use transom_object::{conditions, meta};

pub(crate) const KIND: &str = "ResourceList";
const API_VERSION: &str = "fn.apiextensions.crossplane.io/v1alpha1";
const TYPE: &str = "fn.apiextensions.crossplane.io/type";
const NAME: &str = "fn.apiextensions.crossplane.io/name";
/// `false` on resources that exist and are not desired.
const DESIRED: &str = "fn.apiextensions.crossplane.io/desired";
const COMPOSITE: &str = "CompositeResource";
const COMPOSED: &str = "ComposedResource";
/// What the server sets and a desired resource does not have.
const SERVER_FIELDS: [&str; 7] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// The document of a request.
pub(crate) fn document(request: &RunFunctionRequest) -> Value {
    let empty = State::default();
    let observed = request.observed.as_ref().unwrap_or(&empty);
    let desired = request.desired.as_ref().unwrap_or(&empty);
    let mut first = composite(request);
    mark(&mut first, &[(TYPE, COMPOSITE)]);
    let mut items = vec![first];
    for (name, resource) in &desired.resources {
        let mut item = resource.object().clone();
        let status = observed.resources.get(name).and_then(|found| found.object().get("status"));
        item.as_object_mut().into_iter().for_each(|item| {
            item.extend(status.map(|status| ("status".to_owned(), status.clone())));
        });
        mark(&mut item, &[(TYPE, COMPOSED), (NAME, name)]);
        items.push(item);
    }
    for (name, resource) in
        observed.resources.iter().filter(|(name, _)| !desired.resources.contains_key(*name))
    {
        let mut item = resource.object().clone();
        for field in SERVER_FIELDS {
            meta::set(&mut item, field, Value::Null);
        }
        mark(&mut item, &[(TYPE, COMPOSED), (NAME, name), (DESIRED, "false")]);
        items.push(item);
    }
    let mut document = json!({"apiVersion": API_VERSION, "kind": KIND, "items": items});
    if let Some(config) = &request.input {
        document["functionConfig"] = config.as_value().clone();
    }
    document
}

fn mark(item: &mut Value, annotations: &[(&str, &str)]) {
    for (key, value) in annotations {
        meta::set_annotation(item, key, value);
    }
}

/// What a document wants.
pub(crate) fn wanted(request: &RunFunctionRequest, fields: &Map<String, Value>) -> Result<Wanted, String> {
    if !fields.contains_key("items") {
        return Err("it has no field items; write items: [] if no resource is desired".to_owned());
    }
    let before = request.desired.clone().unwrap_or_default();
    let mut composite = before.composite.clone().unwrap_or_default();
    let mut resources = BTreeMap::new();
    for (index, item) in list(fields, "items")?.iter().enumerate() {
        let at = |problem: &str| format!("items[{index}]: {problem}");
        if meta::annotation(item, DESIRED) == Some("false") {
            continue;
        }
        match meta::annotation(item, TYPE) {
            Some(COMPOSITE) => {
                let status = Resource::new(wanted_status(item)).map_err(|e| at(&e.to_string()))?;
                composite.resource = status.resource;
            }
            Some(COMPOSED) => {
                let (name, resource) = composed(request, &before, item).map_err(|e| at(&e))?;
                if resources.insert(name.clone(), resource).is_some() {
                    return Err(at(&format!("{name:?} is the name of another resource")));
                }
            }
            _ => return Err(at(&format!("its annotation {TYPE} is neither {COMPOSITE} nor {COMPOSED}"))),
        }
    }
    let severity = |text: &str| match text.to_ascii_lowercase().as_str() {
        "error" | "fatal" => Some(Severity::Fatal),
        "warning" => Some(Severity::Warning),
        "info" | "normal" => Some(Severity::Normal),
        _ => None,
    };
    let results = results(fields, severity)?;
    Ok(Wanted { desired: State { composite: Some(composite), resources }, results })
}

fn composed(
    request: &RunFunctionRequest,
    before: &State,
    item: &Value,
) -> Result<(String, Resource), String> {
    let name = meta::annotation(item, NAME).unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(format!(
            "it has no annotation {NAME}, which is the name of the resource in the Composition"
        ));
    }
    let mut object = item.clone();
    remove_annotations(&mut object);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let mut resource = Resource::new(object).map_err(|e| e.to_string())?;
    let ready = before.resources.get(&name).map_or(Ready::Unspecified, Resource::ready);
    resource.set_ready(if ready == Ready::Unspecified { observed_ready(request, &name) } else { ready });
    Ok((name, resource))
}

/// Whether a resource exists with the condition `Ready`: a ResourceList says nothing about readiness. A later step may decide about
/// one that has none, such as a ConfigMap.
fn observed_ready(request: &RunFunctionRequest, name: &str) -> Ready {
    let observed = request.observed.as_ref().and_then(|state| state.resources.get(name));
    let conditions = observed.and_then(|found| found.get("status.conditions").ok()?.as_array());
    let is_ready = conditions.is_some_and(|found| conditions::has_status(found, "Ready", "True"));
    if is_ready { Ready::True } else { Ready::Unspecified }
}

fn remove_annotations(object: &mut Value) {
    let Some(metadata) = meta::metadata_mut(object) else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    for key in [TYPE, NAME, DESIRED] {
        annotations.remove(key);
    }
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

#[cfg(test)]
mod tests {
    use crate::document::{Io, decode, encode};
    use serde_json::{Value, json};
    use transom_function::testing::RequestBuilder;
    use transom_function::{Ready, RunFunctionRequest, Severity};
    use transom_object::yaml;

    fn request() -> RunFunctionRequest {
        let xr = json!({"apiVersion": "e.org/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"n": 1}});
        let bucket = json!({"apiVersion": "v1", "kind": "B", "metadata": {"name": "x-b", "uid": "u"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let old = json!({"apiVersion": "v1", "kind": "O", "metadata": {"name": "x-o", "uid": "u"}});
        RequestBuilder::new(xr)
            .input(json!({"a": 1}))
            .observed("bucket", bucket)
            .observed("old", old)
            .desired("bucket", json!({"apiVersion": "v1", "kind": "B"}))
            .build()
    }

    fn items() -> Value {
        yaml::read(&encode(Io::ResourceList, &request())).unwrap()
    }

    #[test]
    fn the_list_has_the_composite_and_all_composed_resources() {
        let document = items();
        let annotations = |index: usize| document["items"][index]["metadata"]["annotations"].clone();
        let prefixed = |pairs: &[(&str, &str)]| -> Value {
            pairs
                .iter()
                .map(|(k, v)| (format!("fn.apiextensions.crossplane.io/{k}"), json!(v)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        assert_eq!(annotations(0), prefixed(&[("type", "CompositeResource")]));
        assert_eq!(annotations(1), prefixed(&[("type", "ComposedResource"), ("name", "bucket")]));
        assert_eq!(document["items"][1]["status"]["conditions"][0]["status"], "True", "as it is observed");
        assert_eq!(
            annotations(2),
            prefixed(&[("type", "ComposedResource"), ("name", "old"), ("desired", "false")])
        );
        assert_eq!(document["items"][2]["metadata"].get("uid"), None);
        assert_eq!(document["functionConfig"], json!({"a": 1}));
    }

    fn decoded(document: &Value) -> Result<transom_function::RunFunctionResponse, String> {
        let decoded = decode(Io::ResourceList, &request(), document.to_string().as_bytes());
        decoded.map_err(|error| transom_object::error_chain::chain(&error))
    }

    #[test]
    fn an_unchanged_list_desires_what_was_desired() {
        let response = decoded(&items()).unwrap();
        let desired = response.desired.unwrap();
        assert_eq!(desired.resources.keys().collect::<Vec<_>>(), ["bucket"]);
        let bucket = &desired.resources["bucket"];
        assert_eq!(bucket.object(), &json!({"apiVersion": "v1", "kind": "B", "metadata": {}}));
        assert_eq!(bucket.ready(), Ready::True);
    }

    #[test]
    fn a_function_changes_adds_and_reports() {
        let mut document = items();
        document["items"][0]["status"] = json!({"n": 2, "conditions": []});
        document["items"][2]["metadata"]["annotations"]
            .as_object_mut()
            .unwrap()
            .remove("fn.apiextensions.crossplane.io/desired");
        document["results"] =
            json!([{"severity": "Info", "message": "done"}, {"severity": "error", "message": "no"}]);
        let response = decoded(&document).unwrap();
        let desired = response.desired.unwrap();
        assert_eq!(desired.composite.unwrap().object()["status"], json!({"n": 2}));
        assert_eq!(desired.resources.len(), 2);
        let added = desired.resources.iter().find(|(name, _)| *name != "bucket").unwrap().1;
        assert_eq!(added.ready(), Ready::Unspecified, "a later step decides");
        let severities: Vec<Severity> = response.results.iter().map(|result| result.severity()).collect();
        assert_eq!(severities, [Severity::Normal, Severity::Fatal]);
    }

    #[test]
    fn malformed_lists_are_refused() {
        let item = |annotations: Value| json!({"items": [{"metadata": {"annotations": annotations}}]});
        let composed = "fn.apiextensions.crossplane.io/type";
        for (document, words) in [
            (json!({"kind": "ResourceList"}), "it has no field items"),
            (json!({"items": {}}), "items: not a list"),
            (item(json!({})), "items[0]: its annotation fn.apiextensions.crossplane.io/type is neither"),
            (
                item(json!({composed: "ComposedResource"})),
                "items[0]: it has no annotation fn.apiextensions.crossplane.io/name",
            ),
            (
                json!({"items": [], "results": [{"severity": "x"}]}),
                "results[0].severity: \"x\" is not a severity",
            ),
        ] {
            let error = decoded(&document).unwrap_err();
            assert!(
                error.starts_with("its output is not a ResourceList: ") && error.contains(words),
                "{error}"
            );
        }
    }
}
