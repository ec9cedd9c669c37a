//! The OpenAPI schemas of built-in types, with descriptions. The descriptions are larger than the table,
//! so they are parsed only when a document is requested.

use super::table::{Field, Shape, Ty, Type, types};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

/// The two versions of OpenAPI differ in where references point and in which keywords may be beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Swagger, served at `/openapi/v2`.
    V2,
    /// Served by group version at `/openapi/v3`.
    V3,
}

impl Dialect {
    /// Where references point.
    pub fn root(self) -> &'static str {
        match self {
            Self::V2 => "#/definitions/",
            Self::V3 => "#/components/schemas/",
        }
    }
}

/// The description of the field `apiVersion`, as Kubernetes publishes it.
pub const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
/// The description of the field `kind`.
pub const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
/// The description of the field `metadata` of an object.
pub const METADATA: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
/// The description of the field `metadata` of a list.
pub const LIST_METADATA: &str = "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The description of a type (`field` empty) or of one of its fields.
fn description(type_name: &str, field: &str) -> Option<&'static str> {
    static DOCS: LazyLock<HashMap<String, HashMap<String, String>>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("docs.json")).expect("the checked-in descriptions are sound")
    });
    DOCS.get(type_name)?.get(field).map(String::as_str)
}

/// The named types and all they refer to, by OpenAPI name.
pub fn schemas<'a>(names: impl IntoIterator<Item = &'a str>, dialect: Dialect) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    let mut open: Vec<String> = names.into_iter().map(str::to_owned).collect();
    while let Some(name) = open.pop() {
        if out.contains_key(&name) {
            continue;
        }
        let mut refs = BTreeSet::new();
        let node = match types().get(&name) {
            Some(ty) => object(ty, dialect, &mut refs),
            None => special(&name, dialect),
        };
        out.insert(name, node);
        open.extend(refs);
    }
    out
}

fn object(ty: &'static Type, dialect: Dialect, refs: &mut BTreeSet<String>) -> Value {
    let mut properties = Map::new();
    for f in &ty.flat {
        properties.insert(f.name.to_owned(), property(ty, f, dialect, refs));
    }
    let mut out = json!({"type": "object"});
    if !properties.is_empty() {
        out["properties"] = properties.into();
    }
    if let Some(d) = description(ty.name, "") {
        out["description"] = d.into();
    }
    let required: Vec<&str> = ty.flat.iter().filter(|f| f.required).map(|f| f.name).collect();
    if !required.is_empty() {
        out["required"] = required.into();
    }
    if ty.atomic {
        out["x-kubernetes-map-type"] = "atomic".into();
    }
    let kinds = group_version_kinds(ty);
    if !kinds.is_empty() {
        out["x-kubernetes-group-version-kind"] = kinds.into();
    }
    out
}

/// `DeleteOptions` and `WatchEvent` exist under every group version, the other meta kinds under `v1`.
fn group_version_kinds(ty: &Type) -> Vec<Value> {
    let all = types().kinds();
    let gvk =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let mut out = BTreeMap::new();
    for k in all.iter().filter(|k| k.type_name == ty.name) {
        if k.group != "meta.k8s.io" {
            out.insert((k.group, k.version), gvk(k.group, k.version, k.kind));
        } else if matches!(k.kind, "DeleteOptions" | "WatchEvent") {
            let served = all.iter().filter(|k| k.group != "meta.k8s.io");
            out.extend(served.map(|s| ((s.group, s.version), gvk(s.group, s.version, k.kind))));
        } else {
            out.insert(("", "v1"), gvk("", "v1", k.kind));
        }
    }
    out.into_values().collect()
}

fn property(ty: &Type, f: &Field, dialect: Dialect, refs: &mut BTreeSet<String>) -> Value {
    let mut out = node(&f.ty, dialect, refs);
    let described = description(ty.name, f.name)
        .or_else(|| inlined_description(ty, f.name))
        .or_else(|| standard_description(f));
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            out[key] = value;
        }
    };
    set("description", described.map(Value::from));
    if dialect == Dialect::V3 {
        set("default", f.default.clone().or_else(|| zero(&f.ty, f.omit_empty || f.omit_zero)));
    }
    set("x-kubernetes-list-type", f.list_type.map(Value::from));
    set("x-kubernetes-list-map-keys", (!f.list_keys.is_empty()).then(|| f.list_keys.clone().into()));
    set("x-kubernetes-map-type", f.atomic.then(|| "atomic".into()));
    set("x-kubernetes-patch-strategy", f.patch_strategy.map(Value::from));
    set("x-kubernetes-patch-merge-key", f.merge_key.map(Value::from));
    if !f.enumeration.is_empty() {
        let holder = if out["type"] == "array" { &mut out["items"] } else { &mut out };
        if holder["type"] == "string" {
            holder["enum"] = f.enumeration.clone().into();
        }
    }
    wrap(out, dialect)
}

/// OpenAPI v3 ignores what stands beside a reference, so the reference moves inside.
fn wrap(mut schema: Value, dialect: Dialect) -> Value {
    let alone = schema.as_object().is_none_or(|map| map.len() < 2);
    if dialect == Dialect::V3
        && !alone
        && let Some(reference) = schema.as_object_mut().and_then(|map| map.remove("$ref"))
    {
        schema["allOf"] = json!([{"$ref": reference}]);
    }
    schema
}

/// What Go has where JSON has nothing. Pointers, lists and maps have nothing too.
fn zero(ty: &Ty, may_be_absent: bool) -> Option<Value> {
    match ty.shape {
        Shape::Struct(_) => Some(json!({})),
        _ if may_be_absent => None,
        Shape::String => Some("".into()),
        Shape::Bool => Some(false.into()),
        Shape::Int32 | Shape::Int64 | Shape::Float64 => Some(0.into()),
        _ => None,
    }
}

/// The description of metadata is the same for all kinds.
fn standard_description(f: &Field) -> Option<&'static str> {
    match &f.ty.shape {
        Shape::Struct(index) if f.name == "metadata" => match types().at(*index).short_name() {
            "ObjectMeta" => Some(METADATA),
            "ListMeta" => Some(LIST_METADATA),
            _ => None,
        },
        _ => None,
    }
}

/// A field of an inlined struct is described there.
fn inlined_description(ty: &Type, name: &str) -> Option<&'static str> {
    ty.fields.iter().filter(|f| f.inline).find_map(|f| match f.ty.shape {
        Shape::Struct(index) => {
            let inner = types().at(index);
            description(inner.name, name).or_else(|| inlined_description(inner, name))
        }
        _ => None,
    })
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const API: &str = "io.k8s.apimachinery.pkg.";
const EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";

fn node(ty: &Ty, dialect: Dialect, refs: &mut BTreeSet<String>) -> Value {
    let mut refer = |name: String| {
        let target = json!({"$ref": format!("{}{name}", dialect.root())});
        refs.insert(name);
        target
    };
    match &ty.shape {
        Shape::Pointer(inner) => node(inner, dialect, refs),
        Shape::List(inner) | Shape::Wrapped(inner) => {
            json!({"type": "array", "items": element(inner, dialect, refs)})
        }
        Shape::Map(inner) => json!({"type": "object", "additionalProperties": element(inner, dialect, refs)}),
        Shape::Struct(index) => refer(types().at(*index).name.to_owned()),
        Shape::String => json!({"type": "string"}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Int32 => json!({"type": "integer", "format": "int32"}),
        Shape::Int64 => json!({"type": "integer", "format": "int64"}),
        Shape::Float64 => json!({"type": "number", "format": "double"}),
        Shape::Bytes => json!({"type": "string", "format": "byte"}),
        Shape::Any => json!({"type": "object"}),
        Shape::Time => refer(format!("{META}Time")),
        Shape::MicroTime => refer(format!("{META}MicroTime")),
        Shape::FieldsV1 => refer(format!("{META}FieldsV1")),
        Shape::Quantity => refer(format!("{API}api.resource.Quantity")),
        Shape::IntOrString => refer(format!("{API}util.intstr.IntOrString")),
        Shape::Raw => refer(format!("{API}runtime.RawExtension")),
        Shape::Json => refer(format!("{EXTENSIONS}JSON")),
        Shape::PropsOrArray => refer(format!("{EXTENSIONS}JSONSchemaPropsOrArray")),
        Shape::PropsOrBool => refer(format!("{EXTENSIONS}JSONSchemaPropsOrBool")),
        Shape::PropsOrStrings => refer(format!("{EXTENSIONS}JSONSchemaPropsOrStringArray")),
    }
}

/// What a list or map holds.
fn element(ty: &Ty, dialect: Dialect, refs: &mut BTreeSet<String>) -> Value {
    let mut out = node(ty, dialect, refs);
    if let Some(zero) = zero(ty, false).filter(|_| dialect == Dialect::V3) {
        out["default"] = zero;
    }
    wrap(out, dialect)
}

/// The types whose schema is not their fields.
fn special(name: &str, dialect: Dialect) -> Value {
    let short = name.rsplit('.').next().unwrap_or(name);
    let v3 = dialect == Dialect::V3;
    match short {
        "Time" | "MicroTime" => json!({"type": "string", "format": "date-time",
            "description": "A moment in RFC 3339, in UTC."}),
        "Quantity" if v3 => json!({"oneOf": [{"type": "string"}, {"type": "number"}],
            "description": "A fixed-point number with an optional SI or binary suffix, such as 100m or 1Gi."}),
        "Quantity" => json!({"type": "string",
            "description": "A fixed-point number with an optional SI or binary suffix, such as 100m or 1Gi."}),
        "IntOrString" if v3 => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}],
            "description": "An int32 or a string."})
        }
        "IntOrString" => {
            json!({"type": "string", "format": "int-or-string", "description": "An int32 or a string."})
        }
        "FieldsV1" => json!({"type": "object", "description": "A set of fields in a trie format."}),
        "RawExtension" => json!({"type": "object", "description": "Any object, kept as it is."}),
        "JSON" => json!({"description": "Any JSON value."}),
        "JSONSchemaPropsOrArray" => json!({"description": "A JSON schema or a list of JSON schemas."}),
        "JSONSchemaPropsOrBool" => json!({"description": "A JSON schema or a boolean."}),
        "JSONSchemaPropsOrStringArray" => json!({"description": "A JSON schema or a list of strings."}),
        "Patch" => {
            json!({"type": "object", "description": "The body of a PATCH request; its form depends on the Content-Type."})
        }
        _ => json!({"type": "object"}),
    }
}
