//! What an API server would object to in a converted object, shown at the object that it was converted from.

use crate::render::admission::Admission;
use crate::render::manifests::Manifest;
use serde_json::Value;
use transom_console::Failure;
use transom_object::error_chain::chain;
use transom_object::meta;
use transom_xapi::derive::{self, Extensions};
use transom_xapi::{Definition, constants, crds};

/// Why a converted definition or Composition would be refused.
pub(super) fn refusals(manifest: &Manifest, object: &Value) -> Vec<Failure> {
    let mut refused = by_schema(manifest, object);
    match meta::kind(object) {
        constants::kind::XRD => refused.extend(derived(manifest, object)),
        constants::kind::COMPOSITION => refused.extend(templates(manifest, object)),
        _ => {}
    }
    refused
}

/// By the schema and the rules of the kind. Kinds that a definition defines have no CRD yet.
fn by_schema(manifest: &Manifest, object: &Value) -> Vec<Failure> {
    let (group, version) = meta::api_version(object).split_once('/').unwrap_or_default();
    let is_of =
        |crd: &Value| crd["spec"]["group"] == group && crd["spec"]["names"]["kind"] == meta::kind(object);
    let Some(crd) = crds().find(is_of) else { return Vec::new() };
    match Admission::of(&crd, version) {
        Some(Ok(admission)) => {
            let objections = admission.objections(object).into_iter();
            objections.map(|objection| at(manifest, &objection.what, objection.remedy)).collect()
        }
        Some(Err(why)) => vec![at(manifest, &why, None)],
        None => Vec::new(),
    }
}

fn at(manifest: &Manifest, what: &str, remedy: Option<String>) -> Failure {
    let failure = manifest.wrong("", format!("{}: as it is written today: {what}", manifest.title()));
    remedy.into_iter().fold(failure, Failure::remedy)
}

/// By the CRDs that are derived from a definition.
fn derived(manifest: &Manifest, object: &Value) -> Vec<Failure> {
    let definition: Definition = match serde_json::from_value(object.clone()) {
        Ok(definition) => definition,
        Err(e) => return vec![at(manifest, &e.to_string(), None)],
    };
    let mut crds = vec![derive::composite_crd(&definition, Extensions::default())];
    if definition.spec.claim_names.is_some() {
        crds.push(derive::claim_crd(&definition));
    }
    let mut refused = Vec::new();
    for crd in crds {
        match crd {
            Ok(crd) => {
                let versions = definition.spec.versions.iter();
                let admissions = versions.filter_map(|version| Admission::of(&crd, &version.name));
                refused.extend(
                    admissions.filter_map(|admission| admission.err()).map(|why| at(manifest, &why, None)),
                );
            }
            Err(why) => refused.push(at(manifest, &chain(&why), None)),
        }
    }
    // The claims have the schema of the composite resources, and so the same mistakes.
    refused.truncate(1);
    refused
}

/// By the function that reads the templates. Its fields are those of `to`.
fn templates(manifest: &Manifest, object: &Value) -> Vec<Failure> {
    let Some(spec) = object.get("spec").and_then(Value::as_object) else { return Vec::new() };
    let mistakes = transom_builtins::review_templates(spec).mistakes.into_iter();
    let mistakes = mistakes.map(|mistake| {
        let pointer = format!("/spec{}", mistake.pointer.replacen("/resources/", "/to/", 1));
        let field = mistake.field().replacen("resources[", "to[", 1);
        let failure =
            manifest.wrong(&pointer, format!("{}: spec.{field}: {}", manifest.title(), mistake.what));
        mistake.remedy.into_iter().fold(failure, Failure::remedy)
    });
    mistakes.collect()
}
