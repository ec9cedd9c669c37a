//! Choosing Compositions and revisions, configuring composite resources, resolving usages.

use super::{Case, Check, Outcome, equal};
use serde::Deserialize;
use serde_json::{Value, json};
use transom_xapi::composite::{Composite, Layout};
use transom_xapi::constants::label;
use transom_xapi::selection::{self, CompositionChoice};
use transom_xapi::{CompositionRevision, CompositionSpec, Definition, Usage, revision};

pub(super) const TABLES: &[(&str, Check)] = &[
    ("core/apis_apiextensions_v1/composition_revision/TestLatestRevision", latest),
    (
        "core/internal_controller_apiextensions_composite/api/TestAPIDefaultCompositionSelector",
        not_the_default,
    ),
    ("core/internal_controller_apiextensions_composite/api/TestAPINamingConfigurator", named),
    ("core/internal_controller_apiextensions_composite/api/TestConfigure", configure),
    ("core/internal_controller_apiextensions_composite/api/TestSelectorResolver", resolved),
    ("core/internal_controller_protection_usage/selector/TestResolveSelectors", usage_resolved),
];

/// The recordings hold a composite resource's reference and selector alone.
fn composite(case: &Case<'_>) -> Composite {
    let given = case.input("cp");
    let mut spec = json!({});
    if given["Ref"].is_object() {
        spec["compositionRef"] = given["Ref"].clone();
    }
    if given["Sel"].is_object() {
        spec["compositionSelector"] = given["Sel"].clone();
    }
    Composite::new(json!({"spec": spec}), Layout::Legacy)
}

fn default() -> Definition {
    serde_json::from_value(json!({"spec": {"defaultCompositionRef": {"name": "default"}}})).unwrap()
}

fn not_the_default(case: &Case<'_>) -> Outcome {
    let choice = selection::composition(&composite(case), &default());
    equal(&matches!(choice, CompositionChoice::Default(_)), &(case.input("cp") != &case.expected()["cp"]))
}

fn resolved(case: &Case<'_>) -> Outcome {
    let choice = selection::composition(&composite(case), &Definition::default());
    equal(&(choice == CompositionChoice::Referenced), &(case.input("cp") == &case.expected()["cp"]))
}

fn named(case: &Case<'_>) -> Outcome {
    let metadata = json!({"name": case.input("cp")["name"], "labels": case.input("cp")["labels"]});
    let mut xr = Composite::new(json!({"metadata": metadata}), Layout::Legacy);
    selection::configure(&xr, &CompositionSpec::default()).unwrap().apply(&mut xr);
    equal(
        &xr.object["metadata"]["labels"][label::COMPOSITE],
        &case.expected()["cp"]["labels"][label::COMPOSITE],
    )
}

fn configure(case: &Case<'_>) -> Outcome {
    let given = case.input("cp");
    let mut object =
        json!({"metadata": {"uid": given["uid"], "labels": {label::COMPOSITE: "x"}}, "spec": {}});
    if given["Ref"].is_object() {
        object["spec"]["writeConnectionSecretToRef"] = given["Ref"].clone();
    }
    let mut xr = Composite::new(object, Layout::Legacy);
    let revision = CompositionRevision::deserialize(case.input("rev")).unwrap();
    let got = selection::configure(&xr, &revision.spec.composition);
    equal(&got.as_ref().err().map(ToString::to_string).as_deref(), &case.error())?;
    if let Ok(configuration) = got {
        configuration.apply(&mut xr);
    }
    let secret = xr.connection_secret_ref().map_or(Value::Null, |secret| json!(secret));
    equal(&secret, &case.expected()["cp"]["Ref"])
}

/// The recording lacks the Composition, which all cases share.
fn latest(case: &Case<'_>) -> Outcome {
    let list: Vec<CompositionRevision> = Vec::deserialize(case.input("args")).unwrap_or_default();
    let got = revision::latest("no-you-uid", &list);
    let want = Some(case.want()).filter(|w| w.is_object()).unwrap_or(case.expected());
    let want = Some(want).filter(|w| w.is_object()).map(|w| CompositionRevision::deserialize(w).unwrap());
    equal(&got, &want.as_ref())
}

fn usage_resolved(case: &Case<'_>) -> Outcome {
    let usage = Usage::deserialize(case.input("u")).unwrap();
    let known = usage.spec.of.name().is_some() && usage.spec.by.as_ref().is_none_or(|by| by.name().is_some());
    equal(&known, &(case.input("u") == &case.expected()["u"]))
}
