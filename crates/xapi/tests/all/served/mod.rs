//! Crossplane's kinds on the embedded API server: it serves every CRD, fixed or derived from an XRD, and refuses objects that
//! break their rules.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod concepts;
mod packages;
mod plane;
mod rules;

use plane::Plane;
use serde_json::{Value, json};
use transom_xapi::Definition;
use transom_xapi::derive::{self, Extensions};

fn composition(name: &str, spec: &Value) -> Value {
    let mut all = json!({"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"}});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": name}, "spec": all})
}

fn step(more: &Value) -> Value {
    let mut step = json!({"step": "one", "functionRef": {"name": "f"}});
    step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"mode": "Pipeline", "pipeline": [step]})
}

fn xrd(version: &str, more: &Value) -> Value {
    let mut spec = json!({
        "group": "example.org",
        "names": {"plural": "xthings", "kind": "XThing"},
        "versions": [{
            "name": "v1", "served": true, "referenceable": true,
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object", "required": ["size"],
                        "properties": {"size": {"type": "integer", "minimum": 1}, "colour": {"type": "string", "default": "red"}},
                        "x-kubernetes-validations": [{"rule": "self.size < 100", "message": "too large"}],
                    },
                    "status": {"type": "object", "properties": {"url": {"type": "string"}}},
                },
            }},
        }],
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({
        "apiVersion": format!("apiextensions.crossplane.io/{version}"), "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xthings.example.org", "uid": "not-yet-known"}, "spec": spec,
    })
}

fn usage(kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": "protection.crossplane.io/v1beta1", "kind": kind, "metadata": {"name": "u"}, "spec": spec})
}

const APIEXTENSIONS: &str = "/apis/apiextensions.crossplane.io";

#[tokio::test]
async fn every_crd_is_established() {
    let plane = Plane::with_crossplane().await;
    let list = plane.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").await;
    let names: Vec<&Value> =
        list["items"].as_array().unwrap().iter().map(|crd| &crd["metadata"]["name"]).collect();
    for crd in transom_xapi::crds() {
        assert!(names.contains(&&crd["metadata"]["name"]), "{}", crd["metadata"]["name"]);
    }
}

/// A pipeline whose function may require ConfigMaps that match this.
fn allowing(matching: &Value) -> Value {
    let mut entry = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    entry.as_object_mut().unwrap().extend(matching.as_object().unwrap().clone());
    step(&json!({"allowedExtraResources": [entry]}))
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of what is accepted and refused")]
async fn compositions_are_held_to_their_rules() {
    let plane = Plane::with_crossplane().await;
    let path = format!("{APIEXTENSIONS}/v1/compositions");
    let secret = json!({"name": "s", "namespace": "n"});
    let accepted = [
        step(&json!({})),
        step(&json!({"input": {"apiVersion": "a/v1", "kind": "I", "anything": {"at": ["all"]}}})),
        step(&json!({"credentials": [{"name": "c", "source": "Secret", "secretRef": secret}]})),
        step(&json!({
            "functionRevisionRef": {"name": "f-1"}, "functionRevisionSelector": {"matchLabels": {"a": "b"}},
            "inputRef": {"apiVersion": "a/v1", "kind": "I", "name": "i"}, "maxIterations": 7,
            "allowedExtraResources": [
                {"apiVersion": "v1", "kind": "Secret"}, {"apiVersion": "v1", "kind": "ConfigMap", "name": "a-.*"},
                {"apiVersion": "v1", "kind": "ConfigMap", "matchLabels": {"a": "(b|c)", "d": "*", "e": ""}},
                {"apiVersion": "v1", "kind": "Service", "matchName": "*"},
            ],
        })),
        json!({"pipeline": [{"step": "a", "function": format!("r.io:5000/a/f@sha256:{}", "0".repeat(64))}]}),
        json!({"resources": [{"name": "r", "base": {"kind": "X"}, "patches": []}], "patchSets": [{"name": "p"}]}),
        json!({"mode": "Resources", "resources": [{"base": {}}]}),
        json!({
            "mode": "Resources", "resources": [{"base": {}}],
            "publishConnectionDetailsWithStoreConfigRef": {"name": "default"},
            "environment": {
                "defaultData": {"a": {"b": [1]}},
                "environmentConfigs": [
                    {"ref": {"name": "one"}},
                    {"type": "Selector", "selector": {"mode": "Multiple", "minMatch": 1, "maxMatch": 2,
                        "sortByFieldPath": "data.order", "matchLabels": [
                            {"key": "a", "type": "Value", "value": "b"},
                            {"key": "c", "valueFromFieldPath": "spec.c", "fromFieldPathPolicy": "Optional"},
                        ]}},
                ],
                "patches": [{"type": "ToCompositeFieldPath", "fromFieldPath": "a", "toFieldPath": "status.a"}],
                "policy": {"resolve": "IfNotPresent", "resolution": "Optional"},
            },
        }),
        json!({"mode": "Resources", "functions": [{
            "name": "f", "type": "Webhook", "io": "ResourceList", "config": {"apiVersion": "a/v1", "kind": "C", "x": 1},
            "webhook": {"url": "https://h/x", "timeout": "1m30s", "caBundle": "YQ==", "tlsSecretRef": {"name": "s"}},
        }]}),
        json!({"pipeline": [{"step": "a", "inline": {"type": "Chroot", "io": "FunctionIO", "container": {
            "image": "r.io/f:v1", "imagePullPolicy": "Always", "imagePullSecrets": [{"name": "s"}], "timeout": "5s",
            "network": {"policy": "Runner"}, "resources": {"limits": {"cpu": 1, "memory": "64Mi"}},
            "runner": {"endpoint": "unix:/run/x.sock"},
        }}}]}),
    ];
    for (i, spec) in accepted.iter().enumerate() {
        let created = plane.post(&path, &composition(&format!("ok-{i}"), spec)).await;
        assert_eq!(created.status, 201, "{spec}: {}", created.body);
        for (field, value) in spec.as_object().unwrap() {
            assert_eq!(&created.body["spec"][field], value, "nothing is pruned");
        }
        assert!(created.body["spec"]["mode"].is_string(), "the mode has a default");
    }
    let pinned = format!("r.io/f@sha256:{}", "0".repeat(64));
    let refused = [
        (json!({"pipeline": [{"step": "a"}]}), "exactly one of functionRef, function and inline is required"),
        (step(&json!({"function": pinned})), "exactly one of functionRef, function and inline is required"),
        (
            json!({"pipeline": [{"step": "a", "function": pinned, "functionRevisionRef": {"name": "f-1"}}]}),
            "functionRevisionRef and functionRevisionSelector need functionRef",
        ),
        (json!({"pipeline": [{"step": "a", "function": "r.io/f:v1"}]}), "should match"),
        (
            json!({"pipeline": [{"step": "a", "inline": {"type": "Container"}}]}),
            "types Container and Chroot need the field container",
        ),
        (json!({"functions": [{"name": "f", "type": "Webhook"}]}), "type Webhook needs the field webhook"),
        (
            json!({"functions": [{"name": "f", "container": {"image": "i", "timeout": "soon"}}]}),
            "should match",
        ),
        (
            json!({"functions": [{"name": "f", "container": {"image": "i"}}, {"name": "f", "container": {"image": "j"}}]}),
            "Duplicate value",
        ),
        (json!({"pipeline": [{"step": "a", "function": "r.io/f@sha256:12"}]}), "should match"),
        (json!({}), "an array of pipeline steps is required in Pipeline mode"),
        (json!({"mode": "Pipeline", "pipeline": []}), "should have at least 1 items"),
        (json!({"mode": "Resources"}), "an array of resources is required in Resources mode"),
        (json!({"mode": "Other"}), "Unsupported value"),
        (
            json!({"pipeline": [{"step": "a", "functionRef": {"name": "f"}}, {"step": "a", "functionRef": {"name": "g"}}]}),
            "Duplicate value",
        ),
        (
            step(&json!({"credentials": [{"name": "c", "source": "Secret"}]})),
            "the Secret source requires a secretRef",
        ),
        (
            step(&json!({"credentials": [{"name": "c", "source": "None"}]})),
            "the Secret source requires a secretRef",
        ),
        (step(&json!({"input": {"kind": "I"}})), "apiVersion"),
        (
            step(&json!({"requirements": {"requiredResources": [
                {"requirementName": "r", "apiVersion": "v1", "kind": "Secret", "name": "n", "matchLabels": {"a": "b"}},
            ]}})),
            "name and matchLabels are mutually exclusive",
        ),
        (
            step(&json!({
                "input": {"apiVersion": "a/v1", "kind": "I"},
                "inputRef": {"apiVersion": "a/v1", "kind": "I", "name": "i"},
            })),
            "input and inputRef are mutually exclusive",
        ),
        (
            step(&json!({"allowedExtraResources": [
                {"apiVersion": "v1", "kind": "Secret", "matchName": "n", "matchLabels": {"a": "b"}},
            ]})),
            "name, matchName and matchLabels are mutually exclusive",
        ),
        (step(&json!({"maxIterations": 0})), "must be at least 1, or -1 for no limit"),
        (step(&json!({"maxIterations": -2})), "should be greater than or equal to -1"),
        (
            allowing(&json!({"name": "("})),
            "spec.pipeline[0].allowedExtraResources[0].name: Invalid value: \"string\": error parsing regexp: missing \
             closing ): `(` evaluating rule: must be a regular expression, or * for any",
        ),
        (allowing(&json!({"matchName": "app)|(?:.*"})), "unexpected )"),
        (allowing(&json!({"matchName": "*a"})), "must be a regular expression, or * for any"),
        (
            allowing(&json!({"matchLabels": {"fine": "a|b", "team": "["}})),
            "allowedExtraResources[0].matchLabels[team]: Invalid value",
        ),
        (
            json!({"pipeline": [{"step": "a", "functionRef": {"name": "f"}}], "resources": [{}]}),
            "pipeline and resources are mutually exclusive",
        ),
        (allowing(&json!({"matchNamespace": "("})), "must be a regular expression, or * for any"),
        (
            json!({"resources": [{}], "publishConnectionDetailsWithStoreConfigRef": {"name": "vault"}}),
            "external secret stores are not supported",
        ),
        (
            json!({"resources": [{}], "environment": {"environmentConfigs": [{"type": "Selector", "ref": {"name": "a"}}]}}),
            "type Reference needs ref, type Selector needs selector",
        ),
    ];
    for (spec, message) in refused {
        plane.refused(&path, &composition("bad", &spec), message).await;
    }
    let mut changed = plane.get(&format!("{path}/ok-0")).await;
    changed["spec"]["compositeTypeRef"]["kind"] = "XOther".into();
    let reply = plane.put(&format!("{path}/ok-0"), &changed).await;
    assert_eq!(reply.status, 422);
    assert!(reply.body["message"].as_str().unwrap().contains("Value is immutable"), "{}", reply.body);
}

#[tokio::test]
async fn definitions_are_held_to_the_rules_of_their_version() {
    let plane = Plane::with_crossplane().await;
    let (v1, v2) = ("/v1/compositeresourcedefinitions", "/v2/compositeresourcedefinitions");
    let claims = json!({"plural": "things", "kind": "Thing"});
    for (version, more, message) in [
        (
            "v1",
            json!({"scope": "Namespaced", "claimNames": claims}),
            "Only LegacyCluster composite resources can offer claims",
        ),
        (
            "v1",
            json!({"scope": "Cluster", "connectionSecretKeys": ["a"]}),
            "Only LegacyCluster composite resources support connection secrets",
        ),
        ("v2", json!({"claimNames": claims}), "Claims aren't supported in apiextensions.crossplane.io/v2"),
        ("v2", json!({"connectionSecretKeys": ["a"]}), "XR connection secrets aren't supported"),
        ("v2", json!({"scope": "LegacyCluster"}), "Unsupported value"),
        ("v1", json!({"names": {"plural": "Xthings", "kind": "XThing"}}), "Plural name must be lowercase"),
        ("v1", json!({"conversion": {"strategy": "None"}}), "Webhook configuration is required"),
        ("v1", json!({"group": null}), "Required value"),
    ] {
        let path = format!("{APIEXTENSIONS}/{version}/compositeresourcedefinitions");
        plane.refused(&path, &xrd(version, &more), message).await;
    }
    let created = plane.post(&format!("{APIEXTENSIONS}{v2}"), &xrd("v2", &json!({}))).await;
    assert_eq!(
        (created.status, &created.body["spec"]["scope"]),
        (201, &json!("Namespaced")),
        "{}",
        created.body
    );
    assert_eq!(created.body["spec"]["defaultCompositionUpdatePolicy"], "Automatic");
    let seen = plane.get(&format!("{APIEXTENSIONS}{v1}/xthings.example.org")).await;
    assert_eq!(seen["spec"]["scope"], "Namespaced");
    assert_eq!(plane.delete(&format!("{APIEXTENSIONS}{v2}/xthings.example.org")).await, 200);
    let legacy = plane.post(&format!("{APIEXTENSIONS}{v1}"), &xrd("v1", &json!({}))).await;
    assert_eq!((legacy.status, &legacy.body["spec"]["scope"]), (201, &json!("LegacyCluster")));
    for (field, value) in [("group", json!("other.org")), ("scope", json!("Cluster"))] {
        let mut changed = legacy.body.clone();
        changed["spec"][field] = value;
        let reply = plane.put(&format!("{APIEXTENSIONS}{v1}/xthings.example.org"), &changed).await;
        assert!(reply.body["message"].as_str().unwrap().contains("Value is immutable"), "{}", reply.body);
    }
}

#[tokio::test]
async fn usages_and_functions_are_held_to_their_rules() {
    let plane = Plane::with_crossplane().await;
    let namespaced = "/apis/protection.crossplane.io/v1beta1/namespaces/default/usages";
    let cluster = "/apis/protection.crossplane.io/v1beta1/clusterusages";
    let of = json!({"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": {"name": "c"}});
    let far =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": {"name": "c", "namespace": "far"}});
    let nothing = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    for (path, kind, spec, message) in [
        (namespaced, "Usage", json!({"of": of}), "either \"spec.by\" or \"spec.reason\" must be specified."),
        (
            cluster,
            "ClusterUsage",
            json!({"of": of}),
            "either \"spec.by\" or \"spec.reason\" must be specified.",
        ),
        (
            namespaced,
            "Usage",
            json!({"of": nothing, "reason": "r"}),
            "either a resource reference or a resource selector",
        ),
        (
            namespaced,
            "Usage",
            json!({"of": far, "reason": "r"}),
            "cross-namespace \"spec.of\" is not allowed",
        ),
    ] {
        plane.refused(path, &usage(kind, &spec), message).await;
    }
    for (path, kind, spec) in [
        (namespaced, "Usage", json!({"of": far, "by": of})),
        (cluster, "ClusterUsage", json!({"of": of, "reason": "r"})),
    ] {
        let reply = plane.post(path, &usage(kind, &spec)).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
    }
    let functions = "/apis/pkg.crossplane.io/v1/functions";
    let function = |name: &str, spec: &Value| json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": name}, "spec": spec});
    let package = "xpkg.example.org/a/function-x:v1";
    let reply = plane.post(functions, &function("ok", &json!({"package": package}))).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!(reply.body["spec"]["runtimeConfigRef"]["kind"], "DeploymentRuntimeConfig");
    for (spec, message) in [
        (json!({"package": "function-x:v1"}), "must be a fully qualified image name"),
        (json!({"package": package, "activeRevisionLimit": 2}), "activeRevisionLimit must not exceed"),
    ] {
        plane.refused(functions, &function("bad", &spec), message).await;
    }
    let limits = json!({"package": package, "activeRevisionLimit": 2, "revisionHistoryLimit": 4});
    assert_eq!(plane.post(functions, &function("two", &limits)).await.status, 201);
    let all = json!({"package": package, "activeRevisionLimit": 9, "revisionHistoryLimit": 0});
    assert_eq!(plane.post(functions, &function("nine", &all)).await.status, 201, "all revisions are kept");
    plane
        .refused(functions, &function("none", &json!({"package": package, "activeRevisionLimit": 0})), "")
        .await;
    for (kind, path) in [("Provider", "providers"), ("Configuration", "configurations")] {
        let path = format!("/apis/pkg.crossplane.io/v1/{path}");
        let other = |name: &str, limit: i64| {
            json!({"apiVersion": "pkg.crossplane.io/v1", "kind": kind, "metadata": {"name": name},
                "spec": {"package": package, "activeRevisionLimit": limit, "revisionHistoryLimit": 4}})
        };
        assert_eq!(plane.post(&path, &other("one", 1)).await.status, 201, "{kind}");
        plane.refused(&path, &other("two", 2), "activeRevisionLimit").await;
    }
}

#[tokio::test]
async fn derived_crds_serve_composite_resources_and_claims() {
    let plane = Plane::with_crossplane().await;
    let claims = json!({"claimNames": {"plural": "things", "kind": "Thing"}, "defaultCompositeDeletePolicy": "Background"});
    let legacy: Definition = serde_json::from_value(xrd("v1", &claims)).unwrap();
    for crd in [derive::composite_crd(&legacy, Extensions::ALL).unwrap(), derive::claim_crd(&legacy).unwrap()]
    {
        plane.define(&crd).await;
        let name = crd["metadata"]["name"].as_str().unwrap();
        let live =
            plane.get(&format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")).await;
        assert!(transom_xapi::definition::is_established(&live));
        assert!(!derive::needs_update(&live, &crd), "{name} is stored as it was derived");
    }
    let claim = |spec: Value| json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec});
    let path = "/apis/example.org/v1/namespaces/default/things";
    plane.refused(path, &claim(json!({})), "spec.size").await;
    plane.refused(path, &claim(json!({"size": 100})), "too large").await;
    plane
        .refused(path, &claim(json!({"size": 1, "compositionUpdatePolicy": "Never"})), "Unsupported value")
        .await;
    let made = plane.post(path, &claim(json!({"size": 1, "resourceRefs": []}))).await;
    assert_eq!(made.body["spec"], json!({"size": 1, "colour": "red", "compositeDeletePolicy": "Background"}));
    let named = json!({
        "apiVersion": "example.org/v1", "kind": "XThing", "metadata": {"name": "x".repeat(64)}, "spec": {"size": 1},
    });
    plane.refused("/apis/example.org/v1/xthings", &named, "63").await;
}

#[tokio::test]
async fn modern_crds_are_stored_as_they_are_derived() {
    for scope in ["Namespaced", "Cluster"] {
        let plane = Plane::with_crossplane().await;
        let columns = json!([{"name": "SIZE", "type": "integer", "jsonPath": ".spec.size", "priority": 0}]);
        let mut modern = xrd("v2", &json!({"scope": scope, "defaultCompositionUpdatePolicy": "Manual"}));
        modern["spec"]["versions"][0]["additionalPrinterColumns"] = columns;
        let definition: Definition = serde_json::from_value(modern).unwrap();
        let crd = derive::composite_crd(&definition, Extensions::default()).unwrap();
        plane.define(&crd).await;
        let live =
            plane.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/xthings.example.org").await;
        assert!(!derive::needs_update(&live, &crd), "{scope}");
        let path = match scope {
            "Namespaced" => "/apis/example.org/v1/namespaces/default/xthings",
            _ => "/apis/example.org/v1/xthings",
        };
        let xr = json!({
            "apiVersion": "example.org/v1", "kind": "XThing", "metadata": {"name": "x"},
            "spec": {"size": 1, "crossplane": {"compositionRef": {"name": "c"}}, "claimRef": {"name": "pruned"}},
        });
        let made = plane.post(path, &xr).await;
        assert_eq!(
            made.body["spec"],
            json!({
                "size": 1, "colour": "red",
                "crossplane": {"compositionRef": {"name": "c"}, "compositionUpdatePolicy": "Manual"},
            }),
            "{}",
            made.body
        );
    }
}
