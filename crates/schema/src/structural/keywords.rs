//! What a CustomResourceDefinition may say in a schema: keywords that are not supported at all, keywords that
//! need or exclude each other, and the form of list types, map types and rules.

use super::Requirements;
use super::field_path::{Brackets, walk};
use super::props::{OrBool, Props};
use super::shown;
use crate::normalize::META_FIELDS;
use serde_json::Value;
use transom_object::field::{self, Path};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

pub(super) fn check(props: Props<'_>, path: &Path, required: &Requirements) -> Vec<field::Error> {
    let mut rules = Rules { required, errors: Vec::new() };
    let no_defaults = required.no_defaults.clone();
    rules.node(props, path, &NodeContext { root: true, inside_meta: false, no_defaults });
    rules.errors
}

pub(super) fn has_known_type(props: Props<'_>) -> bool {
    props.ty().is_empty() || TYPES.contains(&props.ty())
}

/// Whether items of a set are not atomic.
pub(super) fn breaks_atomic_set(props: Props<'_>) -> bool {
    props.name("x-kubernetes-list-type") == Some("set")
        && breaks(|rules| rules.set_items(props, &Path::root()))
}

/// Whether items of a set or map may be null, or keys of a map missing.
pub(super) fn breaks_keyed_items(props: Props<'_>) -> bool {
    breaks(|rules| rules.keyed_items(props, &Path::root()))
}

fn breaks(check: impl FnOnce(&mut Rules<'_>)) -> bool {
    let mut rules = Rules { required: &Requirements::default(), errors: Vec::new() };
    check(&mut rules);
    !rules.errors.is_empty()
}

/// Keywords that may stand at the root when the status is a subresource.
pub(super) fn check_status_root(props: Props<'_>, path: &Path) -> Vec<field::Error> {
    const ALLOWED: [(&str, &str); 22] = [
        ("description", "Description"),
        ("type", "Type"),
        ("format", "Format"),
        ("title", "Title"),
        ("maximum", "Maximum"),
        ("exclusiveMaximum", "ExclusiveMaximum"),
        ("minimum", "Minimum"),
        ("exclusiveMinimum", "ExclusiveMinimum"),
        ("maxLength", "MaxLength"),
        ("minLength", "MinLength"),
        ("pattern", "Pattern"),
        ("maxItems", "MaxItems"),
        ("minItems", "MinItems"),
        ("uniqueItems", "UniqueItems"),
        ("multipleOf", "MultipleOf"),
        ("required", "Required"),
        ("items", "Items"),
        ("properties", "Properties"),
        ("externalDocs", "ExternalDocs"),
        ("example", "Example"),
        ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
        ("x-kubernetes-validations", "XValidations"),
    ];
    const BEFORE_TYPE: [&str; 3] = ["id", "$schema", "$ref"];
    let ty = props.ty();
    if !ty.is_empty() && ty != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        // Keywords are judged in the order in which kube-apiserver declares them; few stand before the type.
        if !BEFORE_TYPE.iter().any(|keyword| props.get(keyword).is_some_and(|v| v != "")) {
            return vec![field::Error::invalid(&path.child("type"), ty, detail)];
        }
    }
    let says = |value: &Value| {
        !matches!(value, Value::Null | Value::Bool(false))
            && value != ""
            && value != &Value::Array(Vec::new())
    };
    let refused = |keyword: &str| !ALLOWED.iter().any(|(allowed, _)| *allowed == keyword);
    if !props.raw().iter().any(|(keyword, value)| refused(keyword) && says(value)) {
        return Vec::new();
    }
    let names: Vec<&str> = ALLOWED.iter().map(|(_, name)| *name).collect();
    let detail = format!(
        "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
        names.join(" ")
    );
    vec![shown::invalid(path, &shown::schema(&Value::Object(props.raw().clone())), &detail)]
}

/// What the schemas around a node allow it to have.
#[derive(Clone)]
struct NodeContext {
    root: bool,
    inside_meta: bool,
    /// Why the node may have no default.
    no_defaults: Option<String>,
}

impl NodeContext {
    fn below(&self) -> Self {
        Self { root: false, ..self.clone() }
    }
}

struct Rules<'r> {
    required: &'r Requirements,
    errors: Vec<field::Error>,
}

impl Rules<'_> {
    fn require(&mut self, path: &Path, detail: &str) {
        self.errors.push(field::Error::required(path, detail));
    }

    fn forbid(&mut self, path: &Path, detail: impl Into<String>) {
        self.errors.push(field::Error::forbidden(path, detail));
    }

    fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: &str) {
        self.errors.push(field::Error::invalid(path, value, detail));
    }

    fn node(&mut self, props: Props<'_>, path: &Path, context: &NodeContext) {
        self.supported(props, path, context);
        if props.flag("uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(&path.child("uniqueItems"), detail);
        }
        self.children(props, path, context);
        if props.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            self.invalid(
                &path.child("x-kubernetes-preserve-unknown-fields"),
                false,
                "must be true or undefined",
            );
        }
        self.map_type(props, path);
        self.list_type(props, path);
        if props.name("x-kubernetes-list-type") == Some("map") {
            self.list_map(props, path);
        }
        if self.required.keyed_items {
            self.keyed_items(props, path);
        }
        for (i, rule) in props.children("x-kubernetes-validations").enumerate() {
            self.rule(props, rule, &path.child("x-kubernetes-validations").index(i));
        }
    }

    fn supported(&mut self, props: Props<'_>, path: &Path, context: &NodeContext) {
        let ty = props.ty();
        if self.required.known_types && !ty.is_empty() && !TYPES.contains(&ty) {
            self.errors.push(field::Error::not_supported(&path.child("type"), ty, &TYPES));
        }
        if props.get("default").is_some()
            && let Some(reason) = &context.no_defaults
        {
            self.forbid(&path.child("default"), format!("must not be set {reason}").trim_end());
        }
        let some =
            |keyword: &str| props.get(keyword).and_then(Value::as_object).is_some_and(|o| !o.is_empty());
        for (keyword, said) in [
            ("id", !props.text("id").is_empty()),
            ("additionalItems", props.get("additionalItems").is_some()),
            ("patternProperties", some("patternProperties")),
            ("definitions", some("definitions")),
            ("dependencies", props.get("dependencies").is_some()),
            ("$ref", props.get("$ref").is_some()),
        ] {
            if said {
                self.forbid(&path.child(keyword), format!("{keyword} is not supported"));
            }
        }
        if ty == "null" {
            self.forbid(&path.child("type"), "type cannot be set to null, use nullable as an alternative");
        }
        if !props.list("items").is_empty() {
            self.forbid(&path.child("items"), "items must be a schema object and not an array");
        }
        if context.inside_meta && props.flag("x-kubernetes-embedded-resource") {
            let detail = "must not be used inside of resource meta";
            self.forbid(&path.child("x-kubernetes-embedded-resource"), detail);
        }
    }

    fn children(&mut self, props: Props<'_>, path: &Path, context: &NodeContext) {
        if let Some(additional) = props.additional() {
            let at = path.child("additionalProperties");
            if props.has_properties() && !matches!(additional, OrBool::Bool(true)) {
                self.forbid(&at, "additionalProperties and properties are mutual exclusive");
            }
            if let OrBool::Schema(values) = additional {
                let mut below = context.below();
                if context.inside_meta {
                    below.no_defaults =
                        Some("inside additionalProperties applying to object metadata".to_owned());
                }
                self.node(values, &at, &below);
            }
        }
        let is_resource = context.root || props.flag("x-kubernetes-embedded-resource");
        for (name, property) in props.named("properties") {
            let mut below = context.below();
            if is_resource && META_FIELDS.contains(&name) {
                below.inside_meta = true;
                if context.root {
                    below.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.node(property, &path.child("properties").key(name), &below);
        }
        let below = context.below();
        if let Some(branch) = props.child("not") {
            self.node(branch, &path.child("not"), &below);
        }
        for keyword in ["allOf", "oneOf", "anyOf"] {
            for (i, branch) in props.children(keyword).enumerate() {
                self.node(branch, &path.child(keyword).index(i), &below);
            }
        }
        if let Some(items) = props.child("items") {
            self.node(items, &path.child("items"), &below);
        }
        for (i, items) in props.children("items").enumerate() {
            self.node(items, &path.child("items").index(i), &below);
        }
        for keyword in ["definitions", "dependencies"] {
            for (name, child) in props.named(keyword) {
                self.node(child, &path.child(keyword).key(name), &below);
            }
        }
    }

    fn of_type(&mut self, props: Props<'_>, path: &Path, wanted: &str, because: &str) -> bool {
        let (ty, at) = (props.ty(), path.child("type"));
        let detail = format!("must be {wanted} if {because} is specified");
        if ty.is_empty() {
            self.require(&at, &detail);
        } else if ty != wanted {
            self.invalid(&at, ty, &detail);
        }
        ty == wanted
    }

    fn map_type(&mut self, props: Props<'_>, path: &Path) {
        let Some(map_type) = props.name("x-kubernetes-map-type") else { return };
        self.of_type(props, path, "object", "x-kubernetes-map-type");
        if !matches!(map_type, "atomic" | "granular") {
            let at = path.child("x-kubernetes-map-type");
            self.errors.push(field::Error::not_supported(&at, map_type, &["atomic", "granular"]));
        }
    }

    fn list_type(&mut self, props: Props<'_>, path: &Path) {
        let at = path.child("x-kubernetes-list-type");
        let keys = !props.list("x-kubernetes-list-map-keys").is_empty();
        let Some(list_type) = props.name("x-kubernetes-list-type") else {
            if keys {
                self.require(&at, "must be map if x-kubernetes-list-map-keys is non-empty");
            }
            return;
        };
        if self.of_type(props, path, "array", "x-kubernetes-list-type")
            && list_type == "set"
            && self.required.atomic_set_items
        {
            self.set_items(props, path);
        }
        if !matches!(list_type, "atomic" | "set" | "map") {
            self.errors.push(field::Error::not_supported(&at, list_type, &["atomic", "set", "map"]));
        }
        if keys && list_type != "map" {
            self.invalid(&at, list_type, "must be map if x-kubernetes-list-map-keys is non-empty");
        }
    }

    /// Items of a set are compared whole, so they must be atomic.
    fn set_items(&mut self, props: Props<'_>, path: &Path) {
        let Some(items) = props.child("items") else { return };
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let list_type = items.name("x-kubernetes-list-type");
        let shown = list_type.map_or(Value::Null, Value::from);
        match items.ty() {
            "array" if list_type.is_some_and(|t| t != "atomic") => {
                self.invalid(&path.child("items").child("x-kubernetes-list-type"), shown, detail);
            }
            "object" if items.name("x-kubernetes-map-type") != Some("atomic") => {
                self.invalid(&path.child("items").child("x-kubernetes-map-type"), shown, detail);
            }
            _ => {}
        }
    }

    fn list_map(&mut self, props: Props<'_>, path: &Path) {
        let keys = props.names("x-kubernetes-list-map-keys");
        let keys_at = path.child("x-kubernetes-list-map-keys");
        if keys.is_empty() {
            self.require(&keys_at, "must not be empty if x-kubernetes-list-type is map");
        }
        let items_at = path.child("items");
        let Some(items) = props.child("items") else {
            match props.get("items") {
                None => self.require(&items_at, "must have a schema if x-kubernetes-list-type is map"),
                Some(several) => {
                    let detail = "must only have a single schema if x-kubernetes-list-type is map";
                    self.errors.push(shown::invalid(&items_at, &shown::items(several), detail));
                }
            }
            return;
        };
        if items.ty() != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            self.invalid(&items_at.child("type"), items.ty(), detail);
            return;
        }
        for (i, key) in keys.iter().enumerate() {
            match items.property(key) {
                Some(property) if matches!(property.ty(), "array" | "object") => {
                    let at = items_at.child("properties").key(key).child("type");
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.invalid(&at, items.ty(), detail);
                }
                Some(_) => {}
                None => self.invalid(&keys_at, keys.clone(), "entries must all be names of item properties"),
            }
            if keys[..i].contains(key) {
                self.invalid(&keys_at, keys.clone(), "must not contain duplicate entries");
            }
        }
    }

    /// Items of sets and maps are never `null`, and a map's keys are always there.
    fn keyed_items(&mut self, props: Props<'_>, path: &Path) {
        let (Some(items), Some(list_type @ ("set" | "map"))) =
            (props.child("items"), props.name("x-kubernetes-list-type"))
        else {
            return;
        };
        let at = path.child("items");
        if items.flag("nullable") {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbid(&at.child("nullable"), detail);
        }
        if list_type != "map" {
            return;
        }
        let required = items.names("required");
        for key in props.names("x-kubernetes-list-map-keys") {
            let Some(property) = items.property(key) else { continue };
            let at = at.child("properties").key(key);
            let because = "this property is in x-kubernetes-list-map-keys, so it";
            if !required.contains(&key) && property.get("default").is_none() {
                self.require(
                    &at.child("default"),
                    &format!("{because} must have a default or be a required property"),
                );
            }
            if property.flag("nullable") {
                self.forbid(&at.child("nullable"), format!("{because} cannot be nullable"));
            }
        }
    }

    fn rule(&mut self, props: Props<'_>, rule: Props<'_>, path: &Path) {
        let (text, message) = (rule.text("rule").trim(), rule.text("message"));
        let breaks = |s: &str| s.contains(['\n', '\r']);
        let at = path.child("message");
        if text.is_empty() {
            self.require(&path.child("rule"), "rule is not specified");
        } else if !message.is_empty() && message.trim().is_empty() {
            self.invalid(&at, message, "must be non-empty if specified");
        } else if breaks(message.trim()) {
            self.invalid(&at, message, "must not contain line breaks");
        } else if breaks(text) && message.trim().is_empty() {
            self.require(&at, "message must be specified if rule contains line breaks");
        }
        let expression = rule.text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            self.require(
                &path.child("messageExpression"),
                "messageExpression must be non-empty if specified",
            );
        }
        if let Some(reason) = rule.name("reason")
            && !REASONS.contains(&reason)
        {
            self.errors.push(field::Error::not_supported(&path.child("reason"), reason, &REASONS));
        }
        let field_path = rule.text("fieldPath");
        let at = path.child("fieldPath");
        if !field_path.is_empty() && field_path.trim().is_empty() {
            self.invalid(&at, field_path, "must be non-empty if specified");
        }
        if breaks(field_path) {
            self.invalid(&at, field_path, "must not contain line breaks");
        }
        if !field_path.is_empty() && walk(field_path, props, Brackets::Allowed).is_err() {
            self.invalid(&at, field_path, "must be a valid path");
        }
    }
}
