//! The blocks of docs/concepts.md can be applied in the order in which it shows them: every manifest is accepted, without a
//! warning that the page does not mention, and nothing of it is pruned.

use super::plane::Plane;
use serde_json::Value;
use transom_object::{meta, yaml};
use transom_xapi::Definition;
use transom_xapi::derive::{self, Extensions};

const CONCEPTS: &str = include_str!("../../../../../docs/concepts.md");

/// The manifests of each block.
fn blocks() -> Vec<Vec<Value>> {
    let blocks = CONCEPTS.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let documents = blocks.map(|block| yaml::read_documents(block).unwrap());
    documents.map(|documents| documents.into_iter().map(|document| document.value).collect()).collect()
}

fn manifests() -> Vec<Value> {
    blocks().concat()
}

/// The kinds that a definition defines.
fn defined(object: &Value) -> [Option<&str>; 2] {
    ["/spec/names/kind", "/spec/claimNames/kind"].map(|kind| object.pointer(kind).and_then(Value::as_str))
}

/// Where objects of the kind are created.
fn collection(object: &Value) -> String {
    let plural = format!("{}s", meta::kind(object).to_lowercase());
    match meta::namespace(object) {
        "" => format!("/apis/{}/{plural}", meta::api_version(object)),
        namespace => format!("/apis/{}/namespaces/{namespace}/{plural}", meta::api_version(object)),
    }
}

/// Whether everything that was written is there; more may be.
fn holds(there: &Value, written: &Value) -> bool {
    match (there, written) {
        (Value::Object(there), Value::Object(written)) => {
            written.iter().all(|(key, value)| there.get(key).is_some_and(|there| holds(there, value)))
        }
        (Value::Array(there), Value::Array(written)) => {
            there.len() == written.len()
                && there.iter().zip(written).all(|(there, written)| holds(there, written))
        }
        (there, written) => there == written,
    }
}

#[tokio::test]
async fn the_manifests_of_the_concepts_are_accepted() {
    let plane = Plane::with_crossplane().await;
    let manifests = manifests();
    assert!(manifests.len() >= 8, "{}", manifests.len());
    for object in &manifests {
        let reply = plane.post(&collection(object), object).await;
        assert_eq!(reply.status, 201, "{object}: {}", reply.body);
        assert!(holds(&reply.body, object), "pruned: {object} became {}", reply.body);
        let is_v1 = meta::api_version(object) == "apiextensions.crossplane.io/v1";
        let explained = is_v1 && meta::kind(object) == "CompositeResourceDefinition";
        assert_eq!(reply.warnings.len(), usize::from(explained), "{object}: {:?}", reply.warnings);
        if meta::kind(object) == "CompositeResourceDefinition" {
            let definition: Definition = serde_json::from_value(reply.body).unwrap();
            assert!(definition.problems().is_empty(), "{:?}", definition.problems());
            plane.define(&derive::composite_crd(&definition, Extensions::ALL).unwrap()).await;
            if definition.offers_claim() {
                plane.define(&derive::claim_crd(&definition).unwrap()).await;
            }
        }
    }
}

/// `kubectl apply` finds out the kinds of all manifests of a file before it creates the first.
#[test]
fn no_block_uses_a_kind_that_it_defines() {
    for block in blocks() {
        let kinds: Vec<&str> = block.iter().flat_map(defined).flatten().collect();
        let used = block.iter().find(|object| kinds.contains(&meta::kind(object)));
        assert!(used.is_none(), "{used:?} is in the block that defines its kind");
    }
}

/// When all of the page is applied, each selector selects exactly the Composition that the page means.
#[test]
fn selectors_select_one_composition() {
    let manifests = manifests();
    let compositions = || manifests.iter().filter(|object| meta::kind(object) == "Composition");
    for xr in &manifests {
        let Some(labels) = xr.pointer("/spec/crossplane/compositionSelector/matchLabels") else { continue };
        let selected = compositions().filter(|c| holds(&c["metadata"]["labels"], labels)).count();
        assert_eq!(selected, 1, "{xr}");
    }
    let installed: Vec<&str> =
        manifests.iter().filter(|o| meta::kind(o) == "Function").map(meta::name).collect();
    for step in compositions().flat_map(|c| c["spec"]["pipeline"].as_array().unwrap()) {
        let function = step["functionRef"]["name"].as_str().unwrap();
        assert!(installed.contains(&function), "{function} is not installed");
    }
}
