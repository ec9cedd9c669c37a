//! Laws that hold whatever functions want.

use crate::script::{Case, Script, object};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use transom_function::{Resource, Struct};

/// Anything a function could answer, sensible or not.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9i64..9).prop_map(Value::from),
        "[a-zA-Z._-]{0,8}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("name".to_owned()),
        Just("namespace".to_owned()),
        Just("labels".to_owned()),
        Just("ownerReferences".to_owned()),
        Just("conditions".to_owned()),
        "[a-z]{0,4}",
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..4)
                .prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

fn desired() -> impl Strategy<Value = BTreeMap<String, Value>> {
    let object = (value(), value(), prop::bool::weighted(0.9)).prop_map(|(metadata, spec, typed)| {
        let mut object = json!({"metadata": metadata, "spec": spec});
        if typed {
            object["apiVersion"] = "example.org/v1".into();
            object["kind"] = "Thing".into();
        }
        object
    });
    prop::collection::btree_map("[a-e]", object, 0..4)
}

fn script(desired: &BTreeMap<String, Value>, status: &Value) -> Script {
    let (desired, status) = (desired.clone(), status.clone());
    Script::new().then(move |request| {
        let mut response = request.copy_response();
        for (name, object) in &desired {
            let fields = object.as_object().cloned().unwrap_or_default();
            let resource = Resource { resource: Some(Struct::from(fields)), ..Resource::default() };
            response.set_composed(name.clone(), resource);
        }
        response.composite().resource =
            Some(Struct::from(Map::from_iter([("status".to_owned(), status.clone())])));
        response
    })
}

proptest! {
    #[test]
    fn plans_are_sound_and_the_same_every_time(desired in desired(), status in value(), observed in "[a-e]{0,3}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut case = Case::steps(2);
        for name in observed.chars().map(|c| c.to_string()) {
            case = case.observe(&name, object("Thing", &format!("observed-{name}"), true));
        }
        #[expect(clippy::result_large_err, reason = "nothing here is called often")]
        let run = || runtime.block_on(case.run(&script(&desired, &status)));
        let (first, second) = (run(), run());
        prop_assert_eq!(format!("{first:?}"), format!("{second:?}"));
        let Ok(plan) = first else { return Ok(()) };
        let references = plan.references.object["spec"]["crossplane"]["resourceRefs"].as_array().unwrap();
        prop_assert_eq!(references.len(), plan.apply.len(), "everything that is applied is referred to");
        for application in &plan.apply {
            let metadata = &application.object["metadata"];
            prop_assert!(references.iter().any(|reference| reference["name"] == metadata["name"]));
            prop_assert_eq!(&metadata["namespace"], "team");
            prop_assert_eq!(
                &metadata["annotations"]["crossplane.io/composition-resource-name"],
                application.name.as_str()
            );
            let owners = metadata["ownerReferences"].as_array().unwrap();
            prop_assert_eq!(owners.iter().filter(|owner| owner["uid"] == "uid-123").count(), 1);
        }
        for deletion in &plan.delete {
            prop_assert!(case.observed.contains_key(&deletion.name) && !desired.contains_key(&deletion.name));
        }
    }
}
