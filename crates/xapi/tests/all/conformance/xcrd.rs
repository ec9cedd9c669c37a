//! XRD → CRD.

use super::{Case, Check, Outcome, equal, flag};
use serde::Deserialize;
use serde_json::{Value, json};
use transom_object::error_chain::chain;
use transom_xapi::derive::{self, Extensions};
use transom_xapi::{Definition, definition};

pub(super) const TABLES: &[(&str, Check)] = &[
    ("runtime/xcrd/crd/TestForCompositeResource", composite),
    ("runtime/xcrd/crd/TestForCompositeResourceClaim", claim),
    ("runtime/xcrd/crd/TestForCompositeResourceClaimEmptyXrd", claim),
    ("runtime/xcrd/crd/TestIsEstablished", is_established),
    ("runtime/xcrd/crd/TestSetCrdMetadata", metadata),
    ("runtime/xcrd/crd/TestValidateClaimNames", claim_names),
];

/// The definition that the table's cases share unless they bring their own.
fn shared() -> Value {
    json!({
        "metadata": {
            "name": "coolcomposites.example.org", "uid": "you-you-eye-dee",
            "labels": {"cool": "very"}, "annotations": {"example.org/cool": "very"},
        },
        "spec": {
            "group": "example.org",
            "names": {
                "plural": "coolcomposites", "singular": "coolcomposite", "kind": "CoolComposite",
                "listKind": "CoolCompositeList",
            },
            "scope": "LegacyCluster",
            "versions": [{"name": "v1", "referenceable": true, "served": true}],
        },
    })
}

/// A CRD as both sides write it: without what Go's types add, and empty fields left out.
fn comparable(crd: &Value) -> Value {
    let mut crd = json!({"metadata": crd["metadata"], "spec": crd["spec"]});
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        if version["additionalPrinterColumns"].as_array().is_some_and(Vec::is_empty) {
            version.as_object_mut().unwrap().remove("additionalPrinterColumns");
        }
    }
    crd
}

/// Removes the descriptions of injected fields, of which Crossplane has hardly any.
fn drop_added_descriptions(got: &mut Value, want: &Value) {
    match got {
        Value::Object(fields) => {
            if want.get("description").is_none() {
                fields.remove("description");
            }
            for (name, inner) in fields {
                drop_added_descriptions(inner, &want[name]);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                drop_added_descriptions(item, &want[index]);
            }
        }
        _ => {}
    }
}

fn answer(got: Result<Value, derive::Error>, want: &Value, error: Option<&str>) -> Outcome {
    match got {
        Err(problem) => equal(&Some(chain(&problem).as_str()), &error),
        Ok(mut crd) if error.is_none() => {
            drop_added_descriptions(&mut crd, want);
            equal(&comparable(&crd), &comparable(want))
        }
        Ok(_) => Err(format!("no error {error:?}")),
    }
}

fn composite(case: &Case<'_>) -> Outcome {
    let mut xrd = case.input("xrd").clone();
    if xrd.is_null() {
        xrd = shared();
    }
    let version = xrd["spec"]["versions"][0].as_object_mut().unwrap();
    version.remove("schema");
    if !case.input("v").is_null() {
        version.insert("schema".to_owned(), case.input("v").clone());
    }
    let definition = Definition::deserialize(xrd).unwrap();
    answer(derive::composite_crd(&definition, Extensions::default()), &case.expected()["c"], case.error())
}

fn claim(case: &Case<'_>) -> Outcome {
    let definition = Definition::deserialize(case.input("crd")).unwrap();
    answer(derive::claim_crd(&definition), case.expected(), case.error())
}

fn is_established(case: &Case<'_>) -> Outcome {
    flag(definition::is_established(&json!({"status": case.input("s")})), case.want())
}

fn metadata(case: &Case<'_>) -> Outcome {
    let definition = Definition::deserialize(case.input("xrd")).unwrap();
    let crd = derive::composite_crd(&definition, Extensions::default()).unwrap();
    for field in ["labels", "annotations"] {
        equal(&crd["metadata"][field], &case.expected()["metadata"][field])?;
    }
    Ok(())
}

fn claim_names(case: &Case<'_>) -> Outcome {
    let definition = Definition::deserialize(case.input("d")).unwrap();
    let got = derive::claim_names(&definition).err().map(|e| e.to_string());
    equal(&got.as_deref(), &case.want()["$error"].as_str())
}
