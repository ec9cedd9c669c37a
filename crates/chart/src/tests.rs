//! The chart of this repository, rendered.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

fn release() -> Release {
    Release { name: "transom".to_owned(), namespace: "crossplane-system".to_owned() }
}

fn with(settings: &[&str]) -> Vec<Value> {
    let mut values = defaults();
    settings.iter().for_each(|setting| set(&mut values, setting).unwrap());
    render(&release(), &values).unwrap()
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = objects.iter().find(|object| meta::kind(object) == kind && meta::name(object) == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn rules(role: &Value) -> impl Iterator<Item = (&str, &str, &str)> {
    let list = |rule: &'_ Value, field: &str| rule[field].as_array().cloned().unwrap_or_default();
    let rules = role["rules"].as_array().into_iter().flatten();
    rules.flat_map(move |rule| {
        let mut all = Vec::new();
        for (at, _) in list(rule, "apiGroups").iter().enumerate() {
            for (of, _) in list(rule, "resources").iter().enumerate() {
                for (by, _) in list(rule, "verbs").iter().enumerate() {
                    let text = |field: &str, at: usize| rule[field][at].as_str().unwrap();
                    all.push((text("apiGroups", at), text("resources", of), text("verbs", by)));
                }
            }
        }
        all
    })
}

#[test]
fn the_default_values_make_a_complete_installation() {
    let objects = with(&[]);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    objects.iter().for_each(|object| *kinds.entry(meta::kind(object)).or_default() += 1);
    let expected = [
        ("ClusterRole", 10),
        ("ClusterRoleBinding", 2),
        ("Deployment", 1),
        ("Role", 1),
        ("RoleBinding", 1),
        ("Service", 1),
        ("ServiceAccount", 1),
    ];
    assert_eq!(kinds, expected.into());
    let names: BTreeSet<(&str, &str)> =
        objects.iter().map(|object| (meta::kind(object), meta::name(object))).collect();
    assert_eq!(names.len(), objects.len(), "no object twice");
    for object in &objects {
        assert_eq!(meta::label(object, "app.kubernetes.io/name"), Some("transom"), "{object}");
    }
    let deployment = find(&objects, "Deployment", "transom");
    let selector = &deployment["spec"]["selector"]["matchLabels"];
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert!(selector.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value));
    assert_eq!(find(&objects, "Service", "transom-webhooks")["spec"]["selector"], *selector);
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "transom:v0.1.0");
}

#[test]
fn the_controllers_have_the_least_rights_that_work() {
    let all = with(&[]);
    let system = find(&all, "ClusterRole", "transom:system");
    let everything = rules(system)
        .any(|(group, resource, _)| group == "*" || (resource == "*" && !group.ends_with("crossplane.io")));
    assert!(!everything, "nothing but Crossplane's own groups is open");
    assert!(rules(system).any(|(_, resource, verb)| (resource, verb) == ("clusterroles", "escalate")));
    let without = with(&["rbacManager.deploy=false", "webhooks.enabled=false"]);
    let system = find(&without, "ClusterRole", "transom:system");
    assert!(!rules(system).any(|(_, _, verb)| verb == "escalate" || verb == "bind"));
    assert!(!rules(system).any(|(group, _, _)| group == "admissionregistration.k8s.io"));
    assert!(
        !without
            .iter()
            .any(|object| meta::kind(object) == "Service" || meta::name(object).starts_with("crossplane-"))
    );
    let own = find(&all, "Role", "transom");
    assert!(rules(own).any(|rule| rule == ("coordination.k8s.io", "leases", "update")));
}

#[test]
fn values_that_people_know_have_their_effect() {
    let objects = with(&[
        "replicas=3",
        "shards=8",
        "image.repository=registry.example.org/transom",
        "image.tag=v9",
        "leaderElection=true",
        "args=[--poll-interval=5m]",
        "function.packages=[xpkg.example.org/f:v1]",
        "metrics.enabled=true",
        "extraEnvVarsCrossplane={A.B: '1'}",
        "nodeSelector={disk: ssd}",
        "imagePullSecrets=[pull]",
        "serviceAccount.customAnnotations={a: b}",
        "customLabels={team: x}",
        "webhooks.port=7443",
        "priorityClassName=high",
        "registryCaBundleConfig={name: ca, key: ca.pem}",
        "packageCache.pvc=claim",
        "composedResources=[{apiGroups: [''], resources: [configmaps], verbs: [get, create]}]",
        "extraObjects=[{apiVersion: v1, kind: ConfigMap, metadata: {name: more, labels: {app.kubernetes.io/name: transom}}}]",
    ]);
    let deployment = find(&objects, "Deployment", "transom");
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(
        (&deployment["spec"]["replicas"], &container["image"]),
        (&json!(3), &json!("registry.example.org/transom:v9"))
    );
    let args: Vec<&str> =
        container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    for arg in [
        "controller",
        "--shards=8",
        "--leader-election=true",
        "--poll-interval=5m",
        "--function=xpkg.example.org/f:v1",
        "--activation=*",
    ] {
        assert!(args.contains(&arg), "{arg} is not in {args:?}");
    }
    let env: BTreeMap<&str, &Value> = container["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["name"].as_str().unwrap(), &e["value"]))
        .collect();
    assert_eq!(
        (env["A_B"], env["WEBHOOK_PORT"], env["CA_BUNDLE_PATH"]),
        (&json!("1"), &json!("7443"), &json!("/certs/ca.pem"))
    );
    assert_eq!((&pod["nodeSelector"]["disk"], &pod["priorityClassName"]), (&json!("ssd"), &json!("high")));
    assert_eq!(deployment["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"], "8080");
    assert_eq!(find(&objects, "ServiceAccount", "transom")["imagePullSecrets"][0]["name"], "pull");
    assert_eq!(meta::label(deployment, "team"), Some("x"));
    assert!(
        rules(find(&objects, "ClusterRole", "transom:system"))
            .any(|rule| rule == ("", "configmaps", "create"))
    );
    find(&objects, "ConfigMap", "more");
    let cache = pod["volumes"].as_array().unwrap().iter().find(|v| v["name"] == "package-cache").unwrap();
    assert_eq!(cache["persistentVolumeClaim"]["claimName"], "claim");
}

#[test]
fn the_controllers_impersonate_only_where_that_is_wanted() {
    let impersonating = |values: &[&str]| {
        let objects = with(values);
        let role = find(&objects, "ClusterRole", "transom:system").clone();
        let rules = role["rules"].as_array().cloned().unwrap();
        rules.into_iter().filter(|rule| rule["verbs"].to_string().contains("impersonate")).collect::<Vec<_>>()
    };
    assert_eq!(impersonating(&[]), Vec::<Value>::new());
    let rule = json!({"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]});
    assert_eq!(impersonating(&["serviceAccountRefs.enabled=true"]), std::slice::from_ref(&rule));
    let mut limited = rule;
    limited["resourceNames"] = json!(["composer"]);
    assert_eq!(impersonating(&["serviceAccountRefs={enabled: true, names: [composer]}"]), [limited]);
}

#[test]
fn a_value_of_the_wrong_kind_names_the_template() {
    let mut values = defaults();
    set(&mut values, "image=x").unwrap();
    let error = render(&release(), &values).unwrap_err().to_string();
    assert!(error.contains("deployment.yaml"), "{error}");
}

#[test]
fn values_are_merged_and_set() {
    let mut values = json!({"a": {"b": 1, "c": 2}, "d": [1]});
    merge(&mut values, &json!({"a": {"b": 3, "c": null}, "d": [2, 3]}));
    assert_eq!(values, json!({"a": {"b": 3}, "d": [2, 3]}));
    set(&mut values, "a.e.f=true").unwrap();
    set(&mut values, "d=x=y").unwrap();
    assert_eq!(values, json!({"a": {"b": 3, "e": {"f": true}}, "d": "x=y"}));
    assert!(set(&mut values, "a").unwrap_err().to_string().contains("has no ="));
    assert!(set(&mut values, "a..b=1").is_err());
}
