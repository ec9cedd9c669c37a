//! The paths of a resource, with the operations and parameters clients look for.
//!
//! Clients decide from these whether a server validates fields and runs dry, and code generators name methods
//! after the operation ids; both are as upstream writes them.

use crate::custom::reference;
use crate::resource::Resource;
use serde_json::{Map, Value, json};
use transom_kinds::openapi::Dialect;

/// What the operations of a resource are derived from.
pub(super) struct Subject<'a> {
    pub(super) resource: &'a Resource,
    pub(super) schema: String,
    pub(super) list_schema: String,
    pub(super) dialect: Dialect,
}

/// One operation on a path.
struct Operation<'a> {
    method: &'static str,
    action: &'static str,
    /// The beginning of the operation's id.
    verb: &'static str,
    description: String,
    query: &'a [&'a [(&'static str, &'static str)]],
    body: Option<&'a str>,
    /// Only deletes do without a body.
    body_required: bool,
    answer: &'a str,
    codes: &'static [(&'static str, &'static str)],
}

/// An object, or a part of it with a path of its own.
struct Part<'a> {
    /// Of the subresource; empty for the object itself.
    name: &'static str,
    verbs: &'a [&'static str],
    schema: &'a str,
    gvk: Value,
}

pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

const WRITE: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const FORCE: &[(&str, &str)] = &[("force", "boolean")];
const PRETTY: &[(&str, &str)] = &[("pretty", "string")];
const SELECT: &[(&str, &str)] = &[
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
];
const VERSION: &[(&str, &str)] = &[("resourceVersion", "string")];
const WATCH: &[(&str, &str)] = &[("allowWatchBookmarks", "boolean"), ("watch", "boolean")];
const DELETE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

const OK: &[(&str, &str)] = &[("200", "OK")];
const OK_CREATED: &[(&str, &str)] = &[("200", "OK"), ("201", "Created")];
const OK_ACCEPTED: &[(&str, &str)] = &[("200", "OK"), ("202", "Accepted")];
const OK_CREATED_ACCEPTED: &[(&str, &str)] = &[("200", "OK"), ("201", "Created"), ("202", "Accepted")];

impl Subject<'_> {
    pub(super) fn paths(&self) -> Map<String, Value> {
        let r = self.resource;
        let root = if r.group.is_empty() {
            format!("/api/{}", r.version)
        } else {
            format!("/apis/{}/{}", r.group, r.version)
        };
        let everywhere = format!("{root}/{}", r.plural);
        let scoped = if r.namespaced {
            format!("{root}/namespaces/{{namespace}}/{}", r.plural)
        } else {
            everywhere.clone()
        };
        let whole = Part { name: "", verbs: &r.verbs, schema: &self.schema, gvk: self.gvk() };
        let mut paths = Map::new();
        if !r.is_stored() {
            paths.insert(scoped, self.item(&[self.create(&whole)], &whole, ""));
            return paths;
        }
        if r.namespaced {
            paths.insert(everywhere, self.item(&[self.list()], &whole, "ForAllNamespaces"));
        }
        let mut collection = vec![self.list(), self.create(&whole)];
        if r.verbs.contains(&"deletecollection") {
            collection.push(self.delete_collection());
        }
        paths.insert(scoped.clone(), self.item(&collection, &whole, ""));
        let object = [self.read(&whole), self.replace(&whole), self.delete(), self.patch(&whole)];
        paths.insert(format!("{scoped}/{{name}}"), self.item(&object, &whole, ""));
        for part in self.parts() {
            let path = format!("{scoped}/{{name}}/{}", part.name);
            paths.insert(path, self.item(&self.operations(&part), &part, &capital(part.name)));
        }
        paths
    }

    fn is_custom(&self) -> bool {
        self.resource.is_custom()
    }

    /// The operations on a subresource.
    fn operations<'a>(&'a self, part: &Part<'a>) -> Vec<Operation<'a>> {
        let operation = |verb: &&'static str| match *verb {
            "create" => Some(self.create(part)),
            "get" => Some(self.read(part)),
            "update" => Some(self.replace(part)),
            "patch" => Some(self.patch(part)),
            _ => None,
        };
        part.verbs.iter().filter_map(operation).collect()
    }

    fn gvk(&self) -> Value {
        let r = self.resource;
        json!({"group": r.group, "version": r.version, "kind": r.kind})
    }

    fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.resource.subresources.iter().map(|subresource| {
            let schema = subresource.schema().unwrap_or(&self.schema);
            // Upstream names the custom kind itself for its scale, but Scale for that of built-in kinds.
            let gvk = match subresource.own_kind.as_ref().filter(|_| !self.is_custom()) {
                Some(own) => json!({"group": own.group, "version": own.version, "kind": own.kind}),
                None => self.gvk(),
            };
            Part { name: subresource.name, verbs: subresource.verbs, schema, gvk }
        })
    }

    fn list(&self) -> Operation<'_> {
        Operation {
            method: "get",
            action: "list",
            verb: "list",
            description: if self.is_custom() {
                format!("list objects of kind {}", self.resource.kind)
            } else {
                format!("list or watch objects of kind {}", self.resource.kind)
            },
            query: &[SELECT, WATCH],
            body: None,
            body_required: false,
            answer: &self.list_schema,
            codes: OK,
        }
    }

    fn create<'a>(&'a self, part: &Part<'a>) -> Operation<'a> {
        Operation {
            method: "post",
            action: "post",
            verb: "create",
            description: format!("create{} {}", part_of(part), article(&self.resource.kind)),
            query: &[WRITE],
            body: Some(part.schema),
            body_required: true,
            answer: part.schema,
            codes: OK_CREATED_ACCEPTED,
        }
    }

    fn delete_collection(&self) -> Operation<'_> {
        Operation {
            method: "delete",
            action: "deletecollection",
            verb: "delete",
            description: format!("delete collection of {}", self.resource.kind),
            // Custom kinds take options here too, which upstream does not document.
            query: if self.is_custom() { &[SELECT, WATCH] } else { &[DELETE, SELECT] },
            body: (!self.is_custom()).then_some(DELETE_OPTIONS),
            body_required: false,
            answer: STATUS,
            codes: OK,
        }
    }

    fn read<'a>(&'a self, part: &Part<'a>) -> Operation<'a> {
        Operation {
            method: "get",
            action: "get",
            verb: "read",
            description: format!("read{} the specified {}", part_of(part), self.resource.kind),
            query: if self.is_custom() { &[VERSION] } else { &[] },
            body: None,
            body_required: false,
            answer: part.schema,
            codes: OK,
        }
    }

    fn replace<'a>(&'a self, part: &Part<'a>) -> Operation<'a> {
        Operation {
            method: "put",
            action: "put",
            verb: "replace",
            description: format!("replace{} the specified {}", part_of(part), self.resource.kind),
            query: &[WRITE],
            body: Some(part.schema),
            body_required: true,
            answer: part.schema,
            codes: OK_CREATED,
        }
    }

    fn delete(&self) -> Operation<'_> {
        Operation {
            method: "delete",
            action: "delete",
            verb: "delete",
            description: format!("delete {}", article(&self.resource.kind)),
            query: &[DELETE],
            body: Some(DELETE_OPTIONS),
            body_required: false,
            answer: if self.resource.returns_deleted_object { &self.schema } else { STATUS },
            codes: OK_ACCEPTED,
        }
    }

    fn patch<'a>(&'a self, part: &Part<'a>) -> Operation<'a> {
        Operation {
            method: "patch",
            action: "patch",
            verb: "patch",
            description: format!("partially update{} the specified {}", part_of(part), self.resource.kind),
            query: &[WRITE, FORCE],
            body: Some(PATCH),
            body_required: true,
            answer: part.schema,
            // An apply may create, also where upstream does not document it.
            codes: if self.is_custom() { OK } else { OK_CREATED },
        }
    }

    /// A path with its operations. What all of them take stands beside them.
    fn item(&self, operations: &[Operation<'_>], part: &Part<'_>, suffix: &str) -> Value {
        let named =
            operations.iter().any(|o| matches!(o.action, "get" | "put" | "patch")) || !part.name.is_empty();
        let mut shared = self.path_parameters(named, suffix != "ForAllNamespaces");
        let common =
            |name: &str| operations.iter().all(|o| o.query.iter().any(|q| q.iter().any(|p| p.0 == name)));
        let mut item = Map::new();
        let mut hoisted: Vec<(&str, &str)> = PRETTY.to_vec();
        for op in operations {
            let all = op.query.iter().flat_map(|q| q.iter().copied());
            let (outside, inside): (Vec<_>, Vec<_>) = all.partition(|p| common(p.0));
            hoisted.extend(outside);
            item.insert(op.method.to_owned(), self.operation(op, inside, part, suffix));
        }
        hoisted.sort_unstable();
        hoisted.dedup();
        shared.extend(hoisted.into_iter().map(|(name, ty)| self.query_parameter(name, ty)));
        item.insert("parameters".into(), shared.into());
        item.into()
    }

    /// The parameters that are part of the path.
    fn path_parameters(&self, named: bool, in_namespace: bool) -> Vec<Value> {
        let r = self.resource;
        let mut all = Vec::new();
        let mut path = |name: &str, description: String| {
            let p = json!({"name": name, "in": "path", "required": true, "description": description});
            all.push(self.typed(p, "string"));
        };
        if named {
            path("name", format!("name of the {}", r.kind));
        }
        if r.namespaced && in_namespace {
            path("namespace", "object name and auth scope, such as for teams and projects".into());
        }
        all
    }

    fn operation(
        &self,
        op: &Operation<'_>,
        mut query: Vec<(&str, &str)>,
        part: &Part<'_>,
        suffix: &str,
    ) -> Value {
        let r = self.resource;
        let group = short_group(r);
        let collection = if op.action == "deletecollection" { "Collection" } else { "" };
        let scope = if r.namespaced && suffix != "ForAllNamespaces" { "Namespaced" } else { "" };
        query.sort_unstable();
        let mut parameters: Vec<Value> =
            query.into_iter().map(|(name, ty)| self.query_parameter(name, ty)).collect();
        let mut out = json!({
            "operationId": format!(
                "{}{}{}{collection}{scope}{}{suffix}",
                op.verb, pascal(&group), capital(&r.version), r.kind,
            ),
            "description": op.description,
            "tags": [format!("{}_{}", camel(&group), r.version)],
            "x-kubernetes-action": op.action,
            "x-kubernetes-group-version-kind": part.gvk,
            "responses": self.responses(op),
        });
        match (self.dialect, op.body) {
            (Dialect::V3, Some(body)) => out["requestBody"] = self.request_body(op, body),
            (Dialect::V3, None) => {}
            (Dialect::V2, body) => {
                if let Some(body) = body {
                    let mut parameter =
                        json!({"name": "body", "in": "body", "schema": reference(body, self.dialect)});
                    if op.body_required {
                        parameter["required"] = true.into();
                    }
                    parameters.insert(0, parameter);
                }
                out["consumes"] = self.consumed(op).into();
                out["produces"] = PRODUCED.to_vec().into();
                out["schemes"] = json!(["https"]);
            }
        }
        if !parameters.is_empty() {
            out["parameters"] = parameters.into();
        }
        out
    }

    fn responses(&self, op: &Operation<'_>) -> Value {
        let schema = reference(op.answer, self.dialect);
        let mut responses = Map::new();
        for (code, description) in op.codes {
            let mut response = json!({"description": description});
            match self.dialect {
                Dialect::V2 => response["schema"] = schema.clone(),
                Dialect::V3 => {
                    for media in PRODUCED {
                        response["content"][media] = json!({"schema": schema});
                    }
                }
            }
            responses.insert((*code).to_owned(), response);
        }
        responses.insert("401".into(), json!({"description": "Unauthorized"}));
        responses.into()
    }

    fn request_body(&self, op: &Operation<'_>, schema: &str) -> Value {
        let mut body = json!({});
        for media in self.consumed(op) {
            body["content"][media] = json!({"schema": reference(schema, self.dialect)});
        }
        if op.body_required {
            body["required"] = true.into();
        }
        body
    }

    /// The media types a body may have.
    fn consumed(&self, op: &Operation<'_>) -> Vec<&'static str> {
        if op.action != "patch" {
            return if self.is_custom() { PRODUCED.to_vec() } else { vec!["*/*"] };
        }
        let mut types = vec!["application/json-patch+json", "application/merge-patch+json"];
        // kubectl uses strategic merge patches wherever the document lists them.
        if self.resource.strategic_merge {
            types.push("application/strategic-merge-patch+json");
        }
        types.push("application/apply-patch+yaml");
        types
    }

    fn query_parameter(&self, name: &str, ty: &str) -> Value {
        self.typed(json!({"name": name, "in": "query"}), ty)
    }

    /// A parameter's type stands in a schema in v3 and beside its name in v2.
    fn typed(&self, mut parameter: Value, ty: &str) -> Value {
        match self.dialect {
            Dialect::V2 => {
                parameter["type"] = ty.into();
                parameter["uniqueItems"] = true.into();
            }
            Dialect::V3 => parameter["schema"] = json!({"type": ty, "uniqueItems": true}),
        }
        parameter
    }
}

const PRODUCED: [&str; 2] = ["application/json", "application/yaml"];

fn part_of(part: &Part<'_>) -> String {
    match part.name {
        "" => String::new(),
        name => format!(" {name} of"),
    }
}

fn article(kind: &str) -> String {
    let vowel = kind.starts_with(['A', 'E', 'I', 'O', 'U']);
    format!("{} {kind}", if vowel { "an" } else { "a" })
}

/// The group as tags and operation ids name it.
fn short_group(r: &Resource) -> String {
    match r.group.trim_end_matches(".k8s.io") {
        "" => "core".into(),
        group => group.into(),
    }
}

fn pascal(group: &str) -> String {
    group.split(['.', '-']).map(capital).collect()
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
