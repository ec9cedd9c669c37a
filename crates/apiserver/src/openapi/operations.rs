//! The paths of a resource, with the operations and parameters clients look for.

use super::custom::reference;
use crate::kinds::openapi::Dialect;
use crate::resource::{Access, Resource};
use serde_json::{Map, Value, json};

/// What an operation needs to know of its resource.
pub(super) struct Subject<'a> {
    pub(super) resource: &'a Resource,
    pub(super) schema: String,
    pub(super) list_schema: String,
    pub(super) dialect: Dialect,
}

const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
const WRITE: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const LIST: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const DELETE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

impl Subject<'_> {
    pub(super) fn paths(&self) -> Map<String, Value> {
        let r = self.resource;
        let root = if r.group.is_empty() {
            format!("/api/{}", r.version)
        } else {
            format!("/apis/{}/{}", r.group, r.version)
        };
        let scoped = if r.namespaced {
            format!("{root}/namespaces/{{namespace}}/{}", r.names.plural)
        } else {
            format!("{root}/{}", r.names.plural)
        };
        let mut paths = Map::new();
        if r.access == Access::CreateOnly {
            paths.insert(
                scoped,
                json!({"post": self.write("post", "create", &self.schema), "parameters": self.place(false)}),
            );
            return paths;
        }
        paths.insert(scoped.clone(), self.collection());
        if r.namespaced {
            let everywhere = json!({"get": self.list("ForAllNamespaces"), "parameters": []});
            paths.insert(format!("{root}/{}", r.names.plural), everywhere);
        }
        paths.insert(format!("{scoped}/{{name}}"), self.object("", &self.schema, true));
        if r.status {
            paths.insert(format!("{scoped}/{{name}}/status"), self.object("Status", &self.schema, false));
        }
        if r.scale.is_some() {
            paths.insert(format!("{scoped}/{{name}}/scale"), self.object("Scale", SCALE, false));
        }
        paths
    }

    fn collection(&self) -> Value {
        let mut delete =
            self.operation("delete", "deletecollection", "Collection", DELETE, Some(DELETE_OPTIONS), STATUS);
        self.add_parameters(&mut delete, LIST);
        json!({
            "get": self.list(""),
            "post": self.write("post", "create", &self.schema),
            "delete": delete,
            "parameters": self.place(false),
        })
    }

    fn list(&self, suffix: &str) -> Value {
        self.operation("get", "list", suffix, LIST, None, &self.list_schema)
    }

    fn write(&self, method: &str, action: &str, schema: &str) -> Value {
        self.operation(method, action, "", WRITE, Some(schema), schema)
    }

    fn object(&self, suffix: &str, schema: &str, deletable: bool) -> Value {
        let mut patch = self.operation("patch", "patch", suffix, WRITE, Some(PATCH), schema);
        self.add_parameters(&mut patch, &[("force", "boolean")]);
        let mut item = json!({
            "get": self.operation("get", "get", suffix, &[], None, schema),
            "put": self.operation("put", "put", suffix, WRITE, Some(schema), schema),
            "patch": patch,
            "parameters": self.place(true),
        });
        if deletable {
            item["delete"] = self.operation("delete", "delete", suffix, DELETE, Some(DELETE_OPTIONS), STATUS);
        }
        item
    }

    /// The path's own parameters.
    fn place(&self, named: bool) -> Vec<Value> {
        let r = self.resource;
        let mut all = Vec::new();
        let mut path = |name: &str, description: String| {
            let mut p = json!({"name": name, "in": "path", "required": true, "description": description, "uniqueItems": true});
            self.typed(&mut p, "string");
            all.push(p);
        };
        if named {
            path("name", format!("name of the {}", r.names.kind));
        }
        if r.namespaced {
            path("namespace", "object name and auth scope, such as for teams and projects".into());
        }
        all
    }

    fn operation(
        &self,
        method: &str,
        action: &str,
        suffix: &str,
        query: &[(&str, &str)],
        body: Option<&str>,
        answer: &str,
    ) -> Value {
        let r = self.resource;
        let scope = if r.namespaced && suffix != "ForAllNamespaces" { "Namespaced" } else { "" };
        let verb = match action {
            "get" => "read",
            "put" => "replace",
            other => other,
        };
        let mut op = json!({
            "operationId": format!("{verb}{}{}{scope}{}{suffix}", pascal(&r.group), pascal(&r.version), r.names.kind),
            "description": format!("{verb} {}", r.names.kind),
            "tags": [tag(r)],
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": r.group, "version": r.version, "kind": r.names.kind},
            "parameters": [],
        });
        let json_type = json!(["application/json", "application/yaml"]);
        match self.dialect {
            Dialect::V3 => {
                if let Some(body) = body {
                    op["requestBody"] = json!({"required": true, "content": self.content(method, body)});
                }
                op["responses"] = json!({
                    "200": {"description": "OK", "content": {"application/json": {"schema": reference(answer, self.dialect)}}},
                    "401": {"description": "Unauthorized"},
                });
            }
            Dialect::V2 => {
                if let Some(body) = body {
                    op["parameters"] = json!([{"name": "body", "in": "body", "required": true, "schema": reference(body, self.dialect)}]);
                    op["consumes"] =
                        if method == "patch" { json!(self.patch_types()) } else { json_type.clone() };
                }
                op["produces"] = json_type;
                op["schemes"] = json!(["https"]);
                op["responses"] = json!({
                    "200": {"description": "OK", "schema": reference(answer, self.dialect)},
                    "401": {"description": "Unauthorized"},
                });
            }
        }
        self.add_parameters(&mut op, query);
        op
    }

    fn content(&self, method: &str, schema: &str) -> Value {
        let media = json!({"schema": reference(schema, self.dialect)});
        let types = if method == "patch" { self.patch_types() } else { vec!["*/*"] };
        types.iter().map(|t| ((*t).to_owned(), media.clone())).collect::<Map<_, _>>().into()
    }

    /// kubectl patches strategically wherever the document says that it can.
    fn patch_types(&self) -> Vec<&'static str> {
        let strategic = self.resource.strategy.patch_schema().is_some();
        PATCH_TYPES.into_iter().filter(|t| strategic || !t.contains("strategic")).collect()
    }

    fn add_parameters(&self, op: &mut Value, parameters: &[(&str, &str)]) {
        let mut all = op["parameters"].as_array().cloned().unwrap_or_default();
        for (name, ty) in parameters {
            let mut p = json!({"name": name, "in": "query", "uniqueItems": true});
            self.typed(&mut p, ty);
            all.push(p);
        }
        op["parameters"] = all.into();
    }

    /// A parameter's type stands in a schema in v3 and beside its name in v2.
    fn typed(&self, parameter: &mut Value, ty: &str) {
        match self.dialect {
            Dialect::V2 => parameter["type"] = ty.into(),
            Dialect::V3 => {
                parameter["schema"] = json!({"type": ty, "uniqueItems": true});
                if let Some(map) = parameter.as_object_mut() {
                    map.remove("uniqueItems");
                }
            }
        }
    }
}

const PATCH_TYPES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

fn tag(r: &Resource) -> String {
    let group = if r.group.is_empty() { "core".to_owned() } else { camel(&r.group) };
    format!("{group}_{}", r.version)
}

fn pascal(text: &str) -> String {
    if text.is_empty() {
        return "Core".into();
    }
    text.split(['.', '-']).map(capital).collect()
}

fn camel(group: &str) -> String {
    let pascal = pascal(group);
    let mut chars = pascal.chars();
    chars.next().map(|c| c.to_ascii_lowercase()).into_iter().chain(chars).collect()
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect()
}
