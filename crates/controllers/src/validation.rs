//! The validation of definitions, Compositions and packages before they are stored.
//!
//! The controllers find the same mistakes later and report them as conditions; a check for which the server does not say what it
//! needs therefore lets nothing harmful pass, and is logged. A check that fails by itself refuses the object.

use crate::catalog::kinds;
use crate::conversion::{definition_problems, removed_versions};
use crate::definition;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use transom_engine::Cluster;
use transom_object::{GroupVersion, meta};
use transom_packages::{PackageKind, Reference};
use transom_xapi::Composition;
use transom_xapi::composition::{MODE_PIPELINE, MODE_RESOURCES};
use transom_xapi::constants::{group, kind, owner};
use transom_xapi::metadata::must_be_controllable_by;

/// What is validated: API groups, with the plurals of their kinds.
pub const VALIDATED: &[(&str, &[&str])] = &[
    (group::APIEXTENSIONS, &["compositeresourcedefinitions", "compositions"]),
    (group::PKG, &["providers", "configurations", "functions"]),
];

/// The mistakes of an object that is to be stored, each beginning with the field: those that the object itself shows, whether a
/// version that a definition loses is used by a Composition, and what the API server says of the CRDs of a definition.
pub async fn installation_problems(cluster: &Cluster, object: &Value, before: Option<&Value>) -> Vec<String> {
    if !is_checked(object, before) {
        return Vec::new();
    }
    let is_definition = meta::kind(object) == kind::XRD;
    let removes = is_definition && before.is_some_and(|before| !removed_versions(object, before).is_empty());
    let compositions = if removes { compositions(cluster, meta::name(object)).await } else { Vec::new() };
    let (after, former) = (object.clone(), before.cloned());
    let found = found_by(object, move || problems(&after, former.as_ref(), &compositions)).await;
    if found.is_empty() && is_definition { crd_problems(cluster, object).await } else { found }
}

/// The Compositions, of which some may use a version that a definition loses. Without an answer the removal is allowed, as it is
/// while no check is made.
async fn compositions(cluster: &Cluster, definition: &str) -> Vec<Value> {
    let listed = cluster.list(&kinds::composition(), "", &BTreeMap::new()).await;
    listed.unwrap_or_else(|error| {
        let error = error.chain().to_string();
        tracing::warn!(
            definition,
            error,
            "a version is removed unchecked: cannot list the Compositions that may use it"
        );
        Vec::new()
    })
}

/// What a check of an object finds. Checking the rules of conversions takes a while: other requests go on meanwhile.
async fn found_by(object: &Value, check: impl FnOnce() -> Vec<String> + Send + 'static) -> Vec<String> {
    let checked = tokio::task::spawn_blocking(check).await;
    checked.unwrap_or_else(|error| {
        let (kind, name) = (meta::kind(object), meta::name(object));
        tracing::warn!(kind, name, %error, "an object is refused: the check of it failed");
        vec!["internal error: the check of it failed; the log of the control plane says why".to_owned()]
    })
}

/// Whether an object is checked: nothing of it is made once it is being deleted, and what is stored already can be changed otherwise.
fn is_checked(object: &Value, before: Option<&Value>) -> bool {
    !meta::is_deleting(object) && before.is_none_or(|before| before["spec"] != object["spec"])
}

/// The mistakes of an object that is to be stored which need no server.
fn problems(object: &Value, before: Option<&Value>, compositions: &[Value]) -> Vec<String> {
    let of_package = PackageKind::of_package(meta::api_version(object), meta::kind(object)).is_some();
    match meta::kind(object) {
        kind::XRD => {
            let changes = definition_problems(object, before, compositions);
            definition::problems(object).into_iter().chain(changes).collect()
        }
        kind::COMPOSITION => of_composition(object, before),
        _ if of_package => of_reference(object["spec"]["package"].as_str().unwrap_or_default()),
        _ => Vec::new(),
    }
}

/// What the API server says of the CRDs of a definition, which are written for a trial.
async fn crd_problems(cluster: &Cluster, definition: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for mut crd in definition::crds(definition) {
        let Ok(live) = cluster.get(&kinds::crd(), "", meta::name(&crd.object)).await else { continue };
        let is_free = |live: &Value| must_be_controllable_by(live, meta::uid(definition)).is_ok();
        if !live.as_ref().is_none_or(is_free) {
            // A condition names its controller, and the definition can work once it is gone.
            continue;
        }
        crd.object["metadata"]["ownerReferences"] =
            live.as_ref().map(|live| live["metadata"]["ownerReferences"].clone()).unwrap_or_default();
        let tried = match live {
            None => cluster.try_create(&crd.object, owner::DEFAULT).await,
            Some(live) => {
                meta::set_resource_version(&mut crd.object, meta::resource_version(&live));
                cluster.try_update(&crd.object, owner::DEFAULT).await
            }
        };
        problems.extend(tried.err().and_then(|error| crd.problem(&error)));
    }
    problems
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

/// The object of an `AdmissionReview` that is to be stored, and the one before.
pub fn reviewed(review: &Value) -> (Option<&Value>, Option<&Value>) {
    let request = &review["request"];
    let present = |field: &str| request.get(field).filter(|object| object.is_object());
    (present("object"), present("oldObject"))
}

/// Why an object is refused.
pub fn refusal(object: &Value, problems: &[String]) -> String {
    format!("{} {:?} is invalid: {}", meta::kind(object), meta::name(object), problems.join("; "))
}

/// The response to an `AdmissionReview`, with warnings for the client.
pub fn admission_response(review: &Value, problems: &[String], warnings: &[String]) -> Value {
    let request = &review["request"];
    let mut response = json!({"uid": request["uid"], "allowed": problems.is_empty()});
    if !problems.is_empty() {
        let message = refusal(&request["object"], problems);
        response["status"] = json!({"metadata": {}, "reason": "Invalid", "message": message, "code": 422});
    }
    if !warnings.is_empty() {
        response["warnings"] = warnings.into();
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(object: &Value, before: Option<&Value>) -> Value {
        let request = json!({"uid": "r", "operation": "CREATE", "object": object, "oldObject": before});
        let review = json!({"request": request});
        let found = if is_checked(object, before) { problems(object, before, &[]) } else { Vec::new() };
        admission_response(&review, &found, &[])["response"].clone()
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

    #[tokio::test]
    async fn an_object_whose_check_fails_is_refused() {
        let object = json!({"kind": "Composition", "metadata": {"name": "c"}});
        let found = found_by(&object, || panic!("a test of a check that panics")).await;
        let refused = refusal(&object, &found);
        assert!(refused.starts_with("Composition \"c\" is invalid: internal error: "), "{refused}");
        assert_eq!(found_by(&object, Vec::new).await, [""; 0]);
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
        assert_eq!(admission_response(&json!({}), &[], &[])["response"]["allowed"], true);
    }
}
