//! Laws that hold for whatever users write.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use transom_object::{GroupVersionKind, time};
use transom_xapi::composite::{Composite, Layout};
use transom_xapi::constants::label;
use transom_xapi::derive::{self, Extensions};
use transom_xapi::metadata::controller_reference;
use transom_xapi::revision::{self, Step};
use transom_xapi::{Composition, CompositionRevision, Condition, Definition, claim, conditions};

/// Words that mean something to the code under test, so that chance finds the interesting places.
const WORDS: &[&str] = &[
    "properties",
    "spec",
    "status",
    "metadata",
    "name",
    "maxLength",
    "required",
    "oneOf",
    "description",
    "type",
    "items",
    "x-kubernetes-validations",
    "rule",
    "additionalProperties",
    "compositionRef",
    "resourceRefs",
    "claimRef",
    "compositionRevisionRef",
    "compositionUpdatePolicy",
    "resourceRef",
    "writeConnectionSecretToRef",
    "conditions",
    "connectionDetails",
    "lastPublishedTime",
    "claimConditionTypes",
    "compositionRevisionSelector",
    "crossplane",
    "matchLabels",
    "Manual",
    "Automatic",
    "object",
    "other",
];

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(WORDS).prop_map(str::to_owned)
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5_i64..200).prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(word(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<String, Value>>())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(word(), anything(), 0..8)
        .prop_map(|map| Value::Object(map.into_iter().collect::<Map<String, Value>>()))
}

fn definition(schema: &Value, scope: &str) -> Definition {
    serde_json::from_value(json!({
        "metadata": {"name": "xs.example.org", "uid": "u"},
        "spec": {
            "group": "example.org", "names": {"plural": "xs", "kind": "X"}, "scope": scope,
            "claimNames": {"plural": "cs", "kind": "C"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": schema}}],
        },
    }))
    .unwrap()
}

fn revisions(numbers: &[(i64, usize, bool)], hashes: &[String]) -> Vec<CompositionRevision> {
    let revision = |(i, (number, hash, owned)): (usize, &(i64, usize, bool))| {
        let owners: Vec<Value> =
            owned.then(|| controller_reference("a/v1", "Composition", "c", "uid")).into_iter().collect();
        let hash = hashes.get(*hash).map_or("other", |hash| revision::hash_label(hash));
        serde_json::from_value(json!({
            "metadata": {
                "name": format!("c-{i}"), "ownerReferences": owners,
                "labels": {label::COMPOSITION_NAME: "c", label::COMPOSITION_HASH: hash},
            },
            "spec": {"revision": number},
        }))
        .unwrap()
    };
    numbers.iter().enumerate().map(revision).collect()
}

fn apply(steps: &[Step], revisions: &mut Vec<CompositionRevision>) {
    for step in steps {
        match step {
            Step::Create { revision, .. } => {
                revisions.push(serde_json::from_value(revision.clone()).unwrap());
            }
            Step::Update { name, number, .. } => {
                let revision = revisions.iter_mut().find(|r| r.metadata.name == *name).unwrap();
                revision.spec.revision = *number;
                let owner = controller_reference("a/v1", "Composition", "c", "uid");
                revision.metadata.owner_references = vec![serde_json::from_value(owner).unwrap()];
            }
        }
    }
}

proptest! {
    #[test]
    fn any_schema_is_derived_or_refused(schema in anything(), scope in prop::sample::select(vec!["Namespaced", "Cluster", "LegacyCluster"])) {
        let xrd = definition(&schema, scope);
        for crd in [derive::composite_crd(&xrd, Extensions::ALL), derive::claim_crd(&xrd)].into_iter().flatten() {
            prop_assert!(!derive::needs_update(&crd, &crd));
            let conditions = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions/type";
            prop_assert_eq!(crd.pointer(conditions), Some(&json!("array")));
        }
    }

    #[test]
    fn binding_twice_is_binding_once(spec in object(), observed in object(), enforced: bool) {
        let claim = json!({"apiVersion": "g/v1", "kind": "C", "metadata": {"name": "c", "namespace": "n"}, "spec": spec});
        let has_odd_status = observed.get("status").is_some_and(|status| !status.is_object());
        let xr = Composite::new(observed, Layout::Legacy);
        let of = GroupVersionKind::new("g", "v1", "X");
        let once = claim::bind(&claim, &xr, &of, "x", enforced);
        if has_odd_status {
            prop_assert_eq!(once, Err(claim::Error::CompositeStatus));
            return Ok(());
        }
        let once = once.unwrap();
        let twice = claim::bind(&once.claim, &xr, &of, "x", enforced).unwrap();
        prop_assert_eq!(&once.claim, &twice.claim);
        for stolen in ["resourceRefs", "resourceRef", "writeConnectionSecretToRef", "compositeDeletePolicy"] {
            prop_assert!(once.composite["spec"].get(stolen).is_none(), "{}", stolen);
        }
        prop_assert_eq!(&once.composite["spec"]["claimRef"]["name"], "c");
    }

    #[test]
    fn status_is_copied_once(before in object(), theirs in object()) {
        let mut claim = json!({"status": before});
        let xr = json!({"status": theirs});
        claim::copy_status(&mut claim, &xr).unwrap();
        prop_assert!(!claim::copy_status(&mut claim, &xr).unwrap());
    }

    #[test]
    fn revisions_settle(numbers in prop::collection::vec((-1_i64..6, 0_usize..3, any::<bool>()), 0..5)) {
        let composition: Composition =
            serde_json::from_value(json!({"metadata": {"name": "c", "uid": "uid"}})).unwrap();
        let mut list = revisions(&numbers, &[revision::hash(&composition)]);
        let steps = revision::plan(&composition, &list).unwrap();
        apply(&steps, &mut list);
        let again = revision::plan(&composition, &list).unwrap();
        prop_assert!(again.is_empty(), "{:?}", again);
        let latest = revision::latest("uid", &list).unwrap();
        let hash = revision::hash(&composition);
        prop_assert_eq!(latest.metadata.label(label::COMPOSITION_HASH), Some(revision::hash_label(&hash)));
    }

    #[test]
    fn a_condition_is_set_once(kinds in prop::collection::vec((0_usize..3, 0_usize..3, 0_i64..3), 1..8)) {
        let now = time::parse("2024-01-01T00:00:00Z").unwrap();
        let mut list = Vec::new();
        for (kind, status, generation) in kinds {
            let condition = Condition::new(["A", "B", "C"][kind], ["True", "False", "Unknown"][status], "r");
            let condition = condition.with_generation(generation);
            conditions::set(&mut list, condition.clone(), now);
            prop_assert!(!conditions::set(&mut list, condition.clone(), now));
            prop_assert!(conditions::get(&list, &condition.kind).equals_ignoring_time(&condition));
            prop_assert_eq!(list.iter().filter(|c| c.kind == condition.kind).count(), 1);
        }
    }
}
