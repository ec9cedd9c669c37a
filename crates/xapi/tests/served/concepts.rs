//! The manifests in docs/concepts.md are accepted, in the order in which it shows them, and nothing of them is pruned.

use crate::plane::Plane;
use serde_json::Value;
use transom_object::{meta, yaml};
use transom_xapi::Definition;
use transom_xapi::derive::{self, Extensions};

const CONCEPTS: &str = include_str!("../../../../docs/concepts.md");

fn manifests() -> Vec<Value> {
    let blocks = CONCEPTS.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(|block| yaml::read_documents(block).unwrap()).map(|document| document.value).collect()
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
