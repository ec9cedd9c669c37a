//! Our defaults, refusals and cells against those of kube-apiserver's own code.

use crate::{default, normalize, printer, types, validate};
use serde_json::{Value, json};
use transom_object::{GroupVersion, GroupVersionKind};

fn cases() -> Vec<Value> {
    include_str!("../testdata/served.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn kind_of(object: &Value) -> GroupVersionKind {
    let gv = GroupVersion::parse(object["apiVersion"].as_str().unwrap()).unwrap();
    gv.with_kind(object["kind"].as_str().unwrap())
}

/// An object as the server has it after decoding and defaulting.
fn read(object: &Value) -> Value {
    let gvk = kind_of(object);
    let mut value = object.clone();
    let kind = types().kind(&gvk.group, &gvk.version, &gvk.kind).unwrap();
    assert_eq!(normalize(&mut value, kind.type_name).unwrap(), Vec::<String>::new());
    default(&mut value, &gvk);
    value
}

fn check(failures: &[String], total: usize) {
    assert!(failures.is_empty(), "{} of {total} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn defaults_equal_upstream() {
    let mut failures = Vec::new();
    let cases = cases();
    for case in &cases {
        let mut got = read(&case["object"]);
        // Address families are filled in by the registry upstream, not by the scheme.
        if let Some(spec) = got.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("ipFamilies");
            spec.remove("ipFamilyPolicy");
        }
        if got != case["default"] {
            failures.push(format!("{}\n  want {}\n  got  {got}", case["object"], case["default"]));
        }
    }
    check(&failures, cases.len());
}

#[test]
fn defaulting_twice_changes_nothing() {
    for case in cases() {
        let once = read(&case["object"]);
        assert_eq!(read(&once), once);
    }
}

#[test]
fn tables_equal_upstream() {
    let mut failures = Vec::new();
    let cases = cases();
    for case in &cases {
        let gvk = kind_of(&case["object"]);
        if case["errors"] != json!([]) {
            continue; // never stored, never printed
        }
        if case.get("cells").is_none() {
            let cells = printer::cells(&gvk, &case["object"], 0);
            assert_eq!(cells, [case["object"]["metadata"]["name"].clone(), json!("2000-01-01T00:00:00Z")]);
            continue;
        }
        let columns: Vec<Value> = printer::columns(&gvk)
            .iter()
            .map(|c| json!({"name": c.name, "type": c.ty, "format": c.format, "priority": c.priority}))
            .collect();
        let cells = printer::cells(&gvk, &read(&case["object"]), case["now"].as_i64().unwrap());
        if json!(columns) != case["columns"] || json!(cells) != case["cells"] {
            failures.push(format!(
                "{gvk}\n  want {} {}\n  got  {} {}",
                case["columns"],
                case["cells"],
                json!(columns),
                json!(cells)
            ));
        }
    }
    check(&failures, cases.len());
}

#[test]
fn definitions_get_names_conversion_and_stored_versions() {
    let object = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {"group": "example.org", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true}, {"name": "v2", "served": true, "storage": false}]}});
    let got = read(&object);
    let names =
        json!({"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"});
    assert_eq!(got["spec"]["names"], names);
    assert_eq!(got["spec"]["conversion"], json!({"strategy": "None"}));
    let accepted = json!({"plural": "", "kind": ""});
    assert_eq!(
        got["status"],
        json!({"conditions": null, "acceptedNames": accepted, "storedVersions": ["v1"]})
    );
}

#[test]
fn services_are_single_stack() {
    let service = |spec: Value| {
        read(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}))
    };
    let plain = service(json!({"ports": [{"port": 80}]}));
    assert_eq!(
        (&plain["spec"]["ipFamilies"], &plain["spec"]["ipFamilyPolicy"]),
        (&json!(["IPv4"]), &json!("SingleStack"))
    );
    let headless = service(json!({"clusterIP": "None"}));
    assert_eq!(headless["spec"]["ipFamilyPolicy"], "RequireDualStack");
    assert!(service(json!({"type": "ExternalName"}))["spec"].get("ipFamilies").is_none());
}

/// Errors that upstream prints with an internal Go struct as the value. Ours sorts the keys of values.
const KNOWN_DIFFERENCES: [(&str, &str); 5] = [
    ("spec.strategy: Unsupported value", "prints the internal strategy"),
    ("spec.ports[1]: Duplicate value", "prints the internal port"),
    (".dockercfg]: Invalid value", "words of another JSON parser"),
    ("minAvailable and maxUnavailable cannot be both set", "prints the internal spec"),
    ("spec is immutable after creation", "shows the difference of internal specs"),
];

#[test]
fn refusals_equal_upstream() {
    let mut failures = Vec::new();
    let mut used = std::collections::BTreeSet::new();
    let cases = cases();
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list
    };
    for case in &cases {
        let old = case.get("old").map(read);
        let errors = validate(&read(&case["object"]), old.as_ref(), &kind_of(&case["object"]));
        let got = sorted(errors.iter().map(ToString::to_string).collect());
        let want = sorted(serde_json::from_value(case["errors"].clone()).unwrap());
        let known = |(at, _): &&(&str, &str)| want.iter().any(|e| e.contains(at));
        match KNOWN_DIFFERENCES.iter().find(known) {
            Some((at, _)) => {
                used.insert(at);
                let same = got.len() == want.len() && got.iter().any(|e| e.contains(at));
                assert!(same && got != want, "{want:?} {got:?}");
            }
            None if got != want => {
                failures.push(format!("{}\n  want {want:?}\n  got  {got:?}", case["object"]));
            }
            None => {}
        }
    }
    check(&failures, cases.len());
    assert_eq!(used.len(), KNOWN_DIFFERENCES.len(), "a known difference is gone");
}

#[test]
fn secrets_and_config_maps_are_bounded() {
    let big = "A".repeat(1_500_000);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": big}});
    let errors = validate(&read(&secret), None, &kind_of(&secret));
    assert_eq!(errors[0].to_string(), "data: Too long: may not be more than 1048576 bytes");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": big}});
    assert_eq!(validate(&read(&map), None, &kind_of(&map)).len(), 1);
}
