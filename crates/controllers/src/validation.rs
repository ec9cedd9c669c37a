//! The validation of definitions, Compositions and packages by a webhook, before they are stored. Pure.
//!
//! The controllers find the same mistakes later and report them as conditions; a webhook that cannot be reached therefore
//! lets nothing harmful pass.

use crate::catalog::kinds;
use crate::conversion::{change_problems, definition_problems, removed_versions};
use crate::definition;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use transom_engine::Cluster;
use transom_object::{GroupVersion, meta};
use transom_packages::{PackageKind, Reference};
use transom_xapi::Composition;
use transom_xapi::composition::{MODE_PIPELINE, MODE_RESOURCES};
use transom_xapi::constants::{group, kind};

/// What is validated: API group, versions and plurals.
pub(crate) const VALIDATED: &[(&str, &[&str])] = &[
    (group::APIEXTENSIONS, &["compositeresourcedefinitions", "compositions"]),
    (group::PKG, &["providers", "configurations", "functions"]),
];

/// The mistakes of an object that is to be stored, each beginning with the field.
pub(crate) fn problems(object: &Value, before: Option<&Value>) -> Vec<String> {
    let of_package = PackageKind::of_package(meta::api_version(object), meta::kind(object)).is_some();
    match meta::kind(object) {
        kind::XRD => {
            definition::problems(object).into_iter().chain(change_problems(object, before)).collect()
        }
        kind::COMPOSITION => of_composition(object, before),
        _ if of_package => of_reference(object["spec"]["package"].as_str().unwrap_or_default()),
        _ => Vec::new(),
    }
}

fn of_reference(package: &str) -> Vec<String> {
    let parsed = Reference::parse(package);
    parsed.err().map(|error| format!("spec.package: {}", error.problem)).into_iter().collect()
}

fn of_composition(object: &Value, before: Option<&Value>) -> Vec<String> {
    let composition = match Composition::deserialize(object) {
        Ok(composition) => composition,
        Err(error) => return vec![format!("spec: {error}")],
    };
    let mut problems = Vec::new();
    let spec = &object["spec"];
    let of = &spec["compositeTypeRef"];
    if GroupVersion::parse(of["apiVersion"].as_str().unwrap_or_default()).is_none_or(|of| of.group.is_empty())
    {
        problems.push(
            "spec.compositeTypeRef.apiVersion: must be group/version of the composite resource".to_owned(),
        );
    }
    if let Some(before) = before.filter(|before| before["spec"]["compositeTypeRef"] != *of) {
        let was = &before["spec"]["compositeTypeRef"];
        problems.push(format!("spec.compositeTypeRef: is immutable, and was {was}"));
    }
    match spec["mode"].as_str().unwrap_or(MODE_PIPELINE) {
        MODE_PIPELINE if composition.spec.pipeline.is_empty() => {
            problems.push("spec.pipeline: a pipeline needs at least one step".to_owned());
        }
        MODE_PIPELINE | MODE_RESOURCES => {}
        other => problems.push(format!("spec.mode: {other:?} is neither Pipeline nor Resources")),
    }
    let mut steps: Vec<&str> = composition.spec.pipeline.iter().map(|step| step.step.as_str()).collect();
    steps.sort_unstable();
    let twice = steps.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    problems.extend(twice.map(|step| format!("spec.pipeline: two steps are named {step:?}")));
    problems
}

/// The response to an `AdmissionReview`.
pub fn validate(review: &Value) -> Value {
    let (object, before) = reviewed(review);
    let problems = object.map_or_else(Vec::new, |object| problems(object, before));
    answer(review, &problems)
}

/// [`validate`], and whether Compositions use a version that a definition loses: only then they are read.
pub async fn validate_in(cluster: &Cluster, review: &Value) -> Value {
    if let (Some(object), Some(before)) = reviewed(review)
        && meta::kind(object) == kind::XRD
        && !removed_versions(object, before).is_empty()
    {
        // Without an answer the removal is allowed, as it is while no webhook is served.
        let compositions =
            cluster.list(&kinds::composition(), "", &BTreeMap::new()).await.unwrap_or_default();
        let found = definition_problems(object, Some(before), &compositions);
        if !found.is_empty() {
            return answer(review, &found);
        }
    }
    validate(review)
}

/// The object of a review that is to be stored, and the one before.
fn reviewed(review: &Value) -> (Option<&Value>, Option<&Value>) {
    let request = &review["request"];
    let is_stored = |object: &&Value| object.is_object() && !meta::is_deleting(object);
    (request.get("object").filter(is_stored), request.get("oldObject").filter(|before| before.is_object()))
}

fn answer(review: &Value, problems: &[String]) -> Value {
    let request = &review["request"];
    let object = &request["object"];
    let response = if problems.is_empty() {
        json!({"uid": request["uid"], "allowed": true})
    } else {
        let what =
            format!("{} {:?} is invalid: {}", meta::kind(object), meta::name(object), problems.join("; "));
        let status = json!({"metadata": {}, "reason": "Invalid", "message": what, "code": 422});
        json!({"uid": request["uid"], "allowed": false, "status": status})
    };
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(object: &Value, before: Option<&Value>) -> Value {
        let request = json!({"uid": "r", "operation": "CREATE", "object": object, "oldObject": before});
        validate(&json!({"request": request}))["response"].clone()
    }

    fn message(object: &Value, before: Option<&Value>) -> String {
        let answer = answer(object, before);
        assert_eq!(answer["allowed"], false, "{answer}");
        answer["status"]["message"].as_str().unwrap().to_owned()
    }

    #[test]
    fn mistakes_name_the_object_and_the_field() {
        let package = |image: &str| json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "p"}, "spec": {"package": image}});
        assert_eq!(answer(&package("xpkg.crossplane.io/a/b:v1.0.0"), None)["allowed"], true);
        let refused = message(&package("xpkg.crossplane.io/a/b"), None);
        assert!(refused.starts_with("Provider \"p\" is invalid: spec.package: "), "{refused}");
        let definition = json!({
            "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
            "metadata": {"name": "wrong"}, "spec": {"group": "g.org", "names": {"plural": "ks", "kind": "K"}, "versions": []},
        });
        let refused = message(&definition, None);
        assert!(refused.contains("metadata.name: must be \"ks.g.org\""), "{refused}");
    }

    #[test]
    fn a_composition_keeps_its_type_and_has_steps_of_different_names() {
        let composition = |of: &str, steps: &[&str]| {
            let pipeline: Vec<Value> =
                steps.iter().map(|step| json!({"step": step, "functionRef": {"name": "f"}})).collect();
            json!({
                "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "c"},
                "spec": {"compositeTypeRef": {"apiVersion": of, "kind": "K"}, "mode": "Pipeline", "pipeline": pipeline},
            })
        };
        let good = composition("g.org/v1", &["a", "b"]);
        assert_eq!(answer(&good, Some(&good))["allowed"], true);
        for (object, before, why) in [
            (composition("v1", &["a"]), None, "spec.compositeTypeRef.apiVersion"),
            (composition("g.org/v1", &[]), None, "at least one step"),
            (composition("g.org/v1", &["a", "b", "a"]), None, "two steps are named \"a\""),
            (composition("h.org/v1", &["a"]), Some(good), "is immutable"),
        ] {
            let refused = message(&object, before.as_ref());
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn what_is_being_deleted_and_what_is_not_known_is_allowed() {
        let mut broken = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
            "metadata": {"name": "f", "deletionTimestamp": "2024-01-01T00:00:00Z"}, "spec": {"package": "?"},
        });
        assert_eq!(answer(&broken, None)["allowed"], true);
        broken = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
        assert_eq!(answer(&broken, None)["allowed"], true);
        assert_eq!(validate(&json!({}))["response"]["allowed"], true);
    }
}
