//! Tables of Crossplane's own unit tests, when they are at hand.

use crate::script::{Script, now};
use serde_json::{Map, Value};
use transom_compose::offline::{Input, layout_for, problems, reconcile};
use transom_compose::{Layout, Objects, World, kind, selector};
use transom_xapi::Composition;

/// The cases of a table; none when the tables are not at hand.
fn cases(table: &str) -> Vec<Value> {
    transom_testkit::tables::cases(&format!("crossplane/core/{table}"))
}

/// Whether an error says all that a case wants it to say.
fn says(error: &str, wanted: &Value) -> bool {
    match wanted {
        Value::Array(words) => words.iter().all(|word| error.contains(word.as_str().unwrap_or_default())),
        _ => true,
    }
}

#[test]
fn schemas_are_chosen() {
    for case in cases("internal_render_composite/render/TestSelectSchema.json") {
        let gvk = &case["inputs"]["gvk"];
        let text = |field: &str| gvk[field].as_str().unwrap_or_default();
        let xr = serde_json::json!({"apiVersion": format!("{}/{}", text("Group"), text("Version")), "kind": text("Kind")});
        let chosen = layout_for(&xr, case["inputs"].get("def"));
        let legacy = case["expected"]["wantSchema"] == 1;
        match (&chosen, &case["wantErr"]) {
            (Ok(layout), Value::Null) => assert_eq!(*layout == Layout::Legacy, legacy, "{case}"),
            (Err(error), wanted) if !wanted.is_null() => {
                assert!(says(&error.to_string(), wanted), "{case}: {error}");
            }
            _ => panic!("{case}: {chosen:?}"),
        }
    }
}

#[test]
fn observed_resources_are_checked() {
    for case in cases("internal_render_composite/render/TestCheckObservedResources.json") {
        let inputs = &case["inputs"];
        let xr = inputs
            .get("xr")
            .cloned()
            .unwrap_or_else(|| serde_json::json!({"metadata": {"name": "my-xr", "uid": "xr-uid"}}));
        let observed = inputs["observed"].as_array().cloned().unwrap_or_default();
        // The table's fixture is namespaced exactly when a case speaks of namespaces.
        let mut xr = xr;
        if case["wantErr"].to_string().contains("namespace") {
            xr["metadata"]["namespace"] = "default".into();
        }
        let found = problems(&xr, &observed).join(", ");
        match &case["wantErr"] {
            Value::Null => assert_eq!(found, "", "{case}"),
            wanted => assert!(!found.is_empty() && says(&found, wanted), "{case}: {found}"),
        }
    }
}

#[tokio::test]
async fn reconciles_are_done_offline() {
    for case in cases("internal_render_composite/render/TestRender.json") {
        let input = &case["inputs"]["input"];
        let composition: Composition = serde_json::from_value(input["composition"].clone()).unwrap();
        let observed = input["observedResources"].as_array().cloned().unwrap_or_default();
        let xr = &input["compositeResource"];
        let layout = layout_for(xr, input.get("compositeResourceDefinition")).unwrap();
        let files = Input {
            xr,
            layout,
            composition: &composition,
            observed: &observed,
            context: Map::new(),
            now: now(),
        };
        let world: Objects = observed.iter().cloned().collect();
        let reconciled = reconcile(&files, &Script::new(), &world).await.unwrap();
        let expected = &case["expected"]["out"];
        let mut xr = reconciled.xr.clone();
        for condition in xr["status"]["conditions"].as_array_mut().unwrap() {
            condition.as_object_mut().unwrap().remove("lastTransitionTime");
        }
        assert_eq!(xr, expected["compositeResource"], "{case}");
        let deleted: Vec<Value> = reconciled.decision.delete.iter().map(|d| d.object.clone()).collect();
        assert_eq!(
            Value::from(deleted),
            *expected.get("deletedResources").unwrap_or(&Value::Array(vec![])),
            "{case}"
        );
        let events: Vec<Value> = reconciled.events.iter().map(|e| e.text().into()).collect();
        let said: Vec<Value> =
            expected["events"].as_array().unwrap().iter().map(|e| e["message"].clone()).collect();
        assert_eq!(events, said, "{case}");
    }
}

#[test]
fn selectors_are_converted() {
    for case in cases("internal_xfn/selector/TestToProtobufResourceSelector.json") {
        // JSON cannot tell the empty labels of an Operation from none.
        if case["name"] == "OperationSelectorWithEmptyLabels" {
            continue;
        }
        let required = serde_json::from_value(case["inputs"]["selector"].clone()).unwrap();
        let converted = serde_json::to_value(selector(&required)).unwrap();
        assert_eq!(converted, case["expected"]["result"], "{case}");
    }
}

#[tokio::test]
async fn schemas_are_looked_up() {
    for case in cases("internal_xfn/required_schemas/TestOpenAPISchemasFetcherFetch.json") {
        // A missing selector cannot be said in this language.
        let Some(wanted) = case["inputs"].get("ss") else { continue };
        let text = |field: &str| wanted[field].as_str().unwrap_or_default();
        let found = match kind(text("apiVersion"), text("kind")) {
            Ok(kind) => Objects::new().schema(&kind).await,
            Err(e) => Err(e),
        };
        assert_eq!(found.is_err(), !case["wantErr"].is_null(), "{case}");
    }
}
