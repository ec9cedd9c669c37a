//! Laws that hold for whatever a function is given: it answers instead of failing, it answers the same when asked
//! again, and it does not touch what is not its business.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use transom_builtins::find;
use transom_function::{Ready, RunFunctionRequest, RunFunctionResponse, answer};

/// The members that the functions' inputs have, and the words that mean something in them.
const WORDS: [&str; 60] = [
    "spec",
    "policy",
    "resolution",
    "Optional",
    "type",
    "Selector",
    "selector",
    "matchLabels",
    "key",
    "value",
    "Value",
    "valueFromFieldPath",
    "FromCompositeFieldPath",
    "ref",
    "name",
    "into",
    "mode",
    "Multiple",
    "minMatch",
    "maxMatch",
    "sortByFieldPath",
    "metadata.name",
    "environmentConfigs",
    "extraResources",
    "toFieldPath",
    "a[0].b",
    "defaultData",
    "rules",
    "sequence",
    "condition",
    "conditions",
    "observed.composite.resource.spec.on == true",
    "enableDeletionSequencing",
    "filters",
    "expression",
    "addTags",
    "tags",
    "ignoreTags",
    "removeTags",
    "keys",
    "fromFieldPath",
    "Retain",
    "statusConditionHooks",
    "matchers",
    "resources",
    "setConditions",
    "createEvents",
    "message",
    "(?P<X>.*)",
    "{{ .X }}",
    "ttl",
    "1m",
    "celHealthCheckCustomization",
    "cidrFunc",
    "cidrsubnets",
    "prefix",
    "10.0.0.0/16",
    "newBits",
    "response",
    "desired",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned),
        1 => "[a-c.\\[\\]*^$(|é]{0,6}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5_i64..100).prop_map(Value::from),
        (-1e9..1e9).prop_map(|float: f64| json!(float)),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object_of(inner).prop_map(Value::Object),
        ]
    })
}

fn object_of(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::btree_map(word(), inner, 0..5).prop_map(|fields| fields.into_iter().collect())
}

fn object() -> impl Strategy<Value = Value> {
    object_of(value()).prop_map(Value::Object)
}

/// A resource that more often than not is of a kind some function knows.
fn resource() -> impl Strategy<Value = Value> {
    let kinds = [
        ("v1", "Pod"),
        ("apps/v1", "Deployment"),
        ("s3.aws.upbound.io/v1", "Bucket"),
        ("batch/v1", "CronJob"),
    ];
    (proptest::sample::select(kinds.to_vec()), object(), object(), 0..3_i32).prop_map(|((version, kind), spec, status, ready)| {
        let resource = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec, "status": status});
        json!({"resource": resource, "ready": ready})
    })
}

fn state() -> impl Strategy<Value = Value> {
    let resources = proptest::collection::btree_map("[a-c]", resource(), 0..4);
    (resource(), resources)
        .prop_map(|(composite, resources)| json!({"composite": composite, "resources": resources}))
}

prop_compose! {
    fn request()(input in object(), observed in state(), desired in state(), context in object(), found in object())
        -> RunFunctionRequest
    {
        let items = json!({"items": [{"resource": found}]});
        serde_json::from_value(json!({
            "meta": {"tag": "t"}, "input": input, "observed": observed, "desired": desired, "context": context,
            "requiredResources": {"environment-config-0": items, "into": items},
        })).unwrap()
    }
}

fn ask(function: &str, request: &RunFunctionRequest) -> RunFunctionResponse {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let answer = runtime.block_on(answer(&*find(function).unwrap(), request.clone()));
    answer.unwrap_or_else(|status| {
        panic!("{function} failed: {status}\n{}", serde_json::to_string(request).unwrap())
    })
}

const FUNCTIONS: [&str; 9] = [
    "function-auto-ready",
    "function-cel-filter",
    "function-cidr",
    "function-dummy",
    "function-environment-configs",
    "function-extra-resources",
    "function-sequencer",
    "function-status-transformer",
    "function-tag-manager",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_question_has_one_answer(request in request()) {
        for function in FUNCTIONS {
            let first = ask(function, &request);
            prop_assert_eq!(&first, &ask(function, &request), "{}", function);
            prop_assert_eq!(&first.meta.unwrap().tag, "t");
        }
    }

    #[test]
    fn readiness_is_only_added(mut request in request()) {
        request.input = None;
        let before = request.desired.clone().unwrap();
        let after = ask("function-auto-ready", &request).desired.unwrap();
        prop_assert_eq!(before.composite, after.composite);
        for ((name, before), (_, after)) in before.resources.iter().zip(&after.resources) {
            prop_assert_eq!(before.object(), after.object());
            let unchanged = before.ready == after.ready;
            let added = before.ready() == Ready::Unspecified && after.ready() == Ready::True;
            prop_assert!(unchanged || added, "{}", name);
        }
        prop_assert_eq!(before.resources.len(), after.resources.len());
    }

    #[test]
    fn what_exists_is_never_withheld(mut request in request(), order in proptest::collection::vec("[a-c]", 0..5)) {
        request.input = Some(json!({"rules": [{"sequence": order}]}).try_into().unwrap());
        let after = ask("function-sequencer", &request).desired.unwrap().resources;
        let observed = &request.observed.as_ref().unwrap().resources;
        for name in request.desired.as_ref().unwrap().resources.keys() {
            prop_assert!(after.contains_key(name) || !observed.contains_key(name));
        }
    }
}
