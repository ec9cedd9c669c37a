//! The content of the documents.

use super::{Client, definition};
use serde_json::{Value, json};

/// Every reference in a value.
fn references<'a>(value: &'a Value, out: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(target)) = map.get("$ref") {
                out.push(target);
            }
            map.values().for_each(|v| references(v, out));
        }
        Value::Array(all) => all.iter().for_each(|v| references(v, out)),
        _ => {}
    }
}

fn assert_closed(document: &Value) {
    let mut all = Vec::new();
    references(document, &mut all);
    assert!(!all.is_empty());
    for target in all {
        let pointer = target.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
    }
}

fn spec() -> Value {
    let text = json!({"type": "string"});
    json!({"type": "object", "required": ["color", "maybe"], "properties": {
        "color": {"type": "string", "enum": ["red"], "default": "red", "x-kubernetes-validations": [{"rule": "self != 'blue'"}]},
        "n": {"type": "integer"},
        "maybe": {"type": "object", "nullable": true, "properties": {"a": text}},
        "port": {"x-kubernetes-int-or-string": true, "description": "p"},
        "strict": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^1"},
        "narrow": {"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"maxLength": 3}]},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"b": text}},
        "opens": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
        "any": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        "nulls": {"type": "array", "items": {"type": "string", "nullable": true}},
        "labels": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}},
        "one": {"type": "object", "properties": {"a": text}, "oneOf": [{"required": ["a"]}], "not": {"required": ["b"]}},
    }})
}

#[tokio::test]
async fn all_documents_are_closed_and_hold_what_clients_look_for() {
    let client = Client::start().await;
    client.define(&definition("widgets", "Widget", &spec())).await;
    for (path, address) in client.index().await {
        let document = client.document(&address).await;
        assert_closed(&document);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let watched = (!path.contains("example.org")).then_some("WatchEvent");
        for name in ["ObjectMeta", "ListMeta", "Status", "DeleteOptions", "Patch"].into_iter().chain(watched)
        {
            let full = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}");
            assert_eq!(schemas[&full]["type"], "object", "{name} in {path}");
        }
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap().iter().filter(|(m, _)| *m != "parameters") {
                assert!(operation["x-kubernetes-action"].is_string(), "{method} {path}");
                assert!(operation["x-kubernetes-group-version-kind"]["kind"].is_string(), "{method} {path}");
                assert!(operation["operationId"].is_string(), "{method} {path}");
            }
        }
    }
    let second = client.document("/openapi/v2").await;
    assert_closed(&second);
    let mut texts = Vec::new();
    references(&second, &mut texts);
    assert!(texts.iter().all(|t| t.starts_with("#/definitions/")));
}

#[tokio::test]
async fn lists_of_built_in_kinds_are_described() {
    let client = Client::start().await;
    let document = client.document("/openapi/v3/api/v1").await;
    let list = &document["components"]["schemas"]["io.k8s.api.core.v1.ConfigMapList"];
    assert_eq!(list["required"], json!(["items"]));
    let item =
        json!({"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.ConfigMap"}], "default": {}});
    assert_eq!(list["properties"]["items"]["items"], item);
    let gvk = json!([{"group": "", "version": "v1", "kind": "ConfigMapList"}]);
    assert_eq!(list["x-kubernetes-group-version-kind"], gvk);
    assert!(document["components"]["schemas"]["io.k8s.api.authentication.v1.TokenRequest"].is_object());
    let port = &document["components"]["schemas"]["io.k8s.api.core.v1.ServicePort"]["properties"];
    assert_eq!(port["port"]["default"], 0);
    assert_eq!(port["protocol"]["default"], "TCP");
    assert_eq!(port["targetPort"]["default"], Value::Null);
}

fn names(parameters: &Value) -> Vec<&str> {
    parameters.as_array().into_iter().flatten().filter_map(|p| p["name"].as_str()).collect()
}

#[tokio::test]
async fn operations_are_as_upstream_writes_them() {
    let client = Client::start().await;
    client.define(&definition("widgets", "Widget", &spec())).await;
    let document = client.document("/openapi/v3/apis/example.org/v1").await;
    let all = &document["paths"];
    let widgets = "/apis/example.org/v1/namespaces/{namespace}/widgets";
    let item = &all[format!("{widgets}/{{name}}")];
    assert_eq!(names(&item["patch"]["parameters"]), ["dryRun", "fieldManager", "fieldValidation", "force"]);
    assert_eq!(names(&item["put"]["parameters"]), ["dryRun", "fieldManager", "fieldValidation"]);
    assert_eq!(names(&item["parameters"]), ["name", "namespace", "pretty"]);
    assert_eq!(item["patch"]["operationId"], "patchExampleOrgV1NamespacedWidget");
    assert!(item["patch"]["requestBody"]["content"].get("application/strategic-merge-patch+json").is_none());
    let collection = &all[widgets];
    assert_eq!(collection["post"]["x-kubernetes-action"], "post");
    assert_eq!(collection["post"]["tags"], json!(["exampleOrg_v1"]));
    assert_eq!(collection["delete"]["operationId"], "deleteExampleOrgV1CollectionNamespacedWidget");
    let everywhere = &all["/apis/example.org/v1/widgets"];
    assert_eq!(everywhere["get"]["operationId"], "listExampleOrgV1WidgetForAllNamespaces");
    assert!(
        names(&everywhere["parameters"]).contains(&"watch"),
        "what all operations take stands beside them"
    );
    assert!(all[format!("{widgets}/{{name}}/scale")]["put"].is_object());
    assert!(all[format!("{widgets}/{{name}}/status")].get("delete").is_none());

    let core = client.document("/openapi/v3/api/v1").await;
    let token = &core["paths"]["/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"];
    let kind = json!({"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"});
    assert_eq!(token["post"]["x-kubernetes-group-version-kind"], kind);
    assert_eq!(core["paths"]["/api/v1/namespaces/{name}/finalize"]["put"]["x-kubernetes-action"], "put");
    assert!(core["paths"]["/api/v1/namespaces"].get("delete").is_none());
    let apps = client.document("/openapi/v3/apis/apps/v1").await;
    let scale = &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["patch"];
    let kind = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
    assert_eq!(scale["x-kubernetes-group-version-kind"], kind);
    let rbac = client.document("/openapi/v3/apis/rbac.authorization.k8s.io/v1").await;
    let roles = &rbac["paths"]["/apis/rbac.authorization.k8s.io/v1/clusterroles"]["get"];
    assert_eq!(roles["operationId"], "listRbacAuthorizationV1ClusterRole");
    assert_eq!(roles["tags"], json!(["rbacAuthorization_v1"]));
}

#[tokio::test]
async fn a_custom_kind_is_published_in_full_in_v3() {
    let client = Client::start().await;
    client.define(&definition("widgets", "Widget", &spec())).await;
    let document = client.document("/openapi/v3/apis/example.org/v1").await;
    let widget = &document["components"]["schemas"]["org.example.v1.Widget"];
    assert_eq!(widget["description"], "Described.");
    assert_eq!(widget["x-kubernetes-selectable-fields"], json!([{"fieldPath": "spec.color"}]));
    assert!(widget["properties"]["metadata"]["allOf"][0]["$ref"].is_string());
    let published = &widget["properties"]["spec"]["properties"];
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    assert_eq!(
        published["port"],
        json!({"description": "p", "anyOf": either, "x-kubernetes-int-or-string": true})
    );
    for unchanged in ["color", "maybe", "strict", "narrow", "open", "opens", "nulls", "labels", "one"] {
        assert_eq!(published[unchanged], spec()["properties"][unchanged], "{unchanged}");
    }
    for embedded in ["template", "any"] {
        assert_eq!(published[embedded]["required"], json!(["kind", "apiVersion"]));
        assert!(published[embedded]["properties"]["metadata"]["allOf"].is_array());
    }
    let list = &document["components"]["schemas"]["org.example.v1.WidgetList"];
    assert_eq!(list["properties"]["items"]["items"]["$ref"], "#/components/schemas/org.example.v1.Widget");
}

#[tokio::test]
async fn a_custom_kind_is_degraded_in_v2() {
    let client = Client::start().await;
    client.define(&definition("widgets", "Widget", &spec())).await;
    let mut open =
        definition("gears", "Gear", &json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    open["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"] =
        true.into();
    open["spec"]["versions"][0].as_object_mut().unwrap().remove("selectableFields");
    client.define(&open).await;
    let document = client.document("/openapi/v2").await;
    let spec = &document["definitions"]["org.example.v1.Widget"]["properties"]["spec"];
    assert_eq!(spec["required"], json!(["color"]), "null cannot be required");
    let rules = json!([{"rule": "self != 'blue'"}]);
    let want = json!({
        "color": {"type": "string", "enum": ["red"], "x-kubernetes-validations": rules},
        "n": {"type": "integer"},
        "maybe": {},
        "port": {"description": "p", "x-kubernetes-int-or-string": true},
        "strict": {"pattern": "^1", "x-kubernetes-int-or-string": true},
        "narrow": {"x-kubernetes-int-or-string": true},
        "open": {"x-kubernetes-preserve-unknown-fields": true},
        "opens": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}},
        "any": {"x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        "nulls": {"type": "array", "items": {}},
        "labels": {"type": "object", "additionalProperties": {}},
        "one": {"type": "object", "properties": {"a": {"type": "string"}}},
    });
    for (name, want) in want.as_object().unwrap() {
        assert_eq!(&spec["properties"][name], want, "{name}");
    }
    let gvk = json!([{"group": "example.org", "version": "v1", "kind": "Gear"}]);
    let gear = json!({"type": "object", "x-kubernetes-group-version-kind": gvk});
    assert_eq!(document["definitions"]["org.example.v1.Gear"], gear, "an open object shows no fields");
}
