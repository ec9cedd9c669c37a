//! A schema document of good shape into a [`Schema`].

use super::props::{OrBool, Props};
use super::shape;
use crate::model::{Additional, Checks, ListType, MapType, Pattern, Rule, Schema, Type};
use crate::normalize;
use crate::validate::formats::Format;
use serde_json::{Map, Value};
use std::sync::Arc;
use transom_object::field::{self, Path};

/// How default values are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Defaults {
    /// Kept as written: to judge them.
    Written,
    /// Without the fields the schema does not specify: to use them.
    Pruned,
}

pub(super) fn schema(doc: &Value, defaults: Defaults) -> Result<Schema, Vec<field::Error>> {
    let root = Path::root();
    let mut errors = shape::check(doc, &root);
    let Some(props) = Props::read(doc).filter(|_| errors.is_empty()) else { return Err(errors) };
    if let Some(keyword) = unsupported(props) {
        let detail = format!("OpenAPIV3Schema '{keyword}' is not supported");
        return Err(vec![field::Error::invalid(&root, "", detail)]);
    }
    let schema = node(props, &root, defaults, &mut errors);
    if errors.is_empty() { Ok(schema) } else { Err(errors) }
}

/// The first keyword, anywhere in the document, that no structural schema can express.
pub(super) fn unsupported(props: Props<'_>) -> Option<&'static str> {
    const KEYWORDS: [&str; 7] =
        ["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"];
    let says = |keyword: &&'static str| match props.get(keyword) {
        Some(Value::String(s)) => !s.is_empty(),
        Some(Value::Object(o)) => !o.is_empty(),
        Some(_) => true,
        None => false,
    };
    let mut found = KEYWORDS.into_iter().find(says);
    if found.is_none()
        && props.get("items").is_some_and(|items| items.as_array().is_some_and(|a| !a.is_empty()))
    {
        found = Some("items");
    }
    if found.is_none() && props.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        found = Some("x-kubernetes-preserve-unknown-fields: false");
    }
    props.each_child(&mut |child| {
        if found.is_none() {
            found = unsupported(child);
        }
    });
    found
}

fn node(props: Props<'_>, path: &Path, defaults: Defaults, errors: &mut Vec<field::Error>) -> Schema {
    let ty = Type::from_name(props.ty()).unwrap_or_else(|| {
        let names = ["array", "boolean", "integer", "number", "object", "string"];
        errors.push(field::Error::not_supported(&path.child("type"), props.ty(), &names));
        Type::Any
    });
    let properties = props
        .named("properties")
        .map(|(name, child)| {
            let path = path.child("properties").key(name);
            (name.to_owned(), Arc::new(node(child, &path, defaults, errors)))
        })
        .collect();
    let additional = match props.additional() {
        None => Additional::Absent,
        Some(OrBool::Bool(b)) => Additional::Bool(b),
        Some(OrBool::Schema(child)) => {
            Additional::Schema(Arc::new(node(child, &path.child("additionalProperties"), defaults, errors)))
        }
    };
    let items =
        props.child("items").map(|child| Arc::new(node(child, &path.child("items"), defaults, errors)));
    let mut schema = Schema {
        ty,
        format: text(props, "format"),
        title: text(props, "title"),
        description: text(props, "description"),
        nullable: props.flag("nullable"),
        default: props.get("default").cloned(),
        defaults_free: false,
        properties,
        additional,
        items,
        int_or_string: props.flag("x-kubernetes-int-or-string"),
        preserve_unknown: props.flag("x-kubernetes-preserve-unknown-fields"),
        embedded: props.flag("x-kubernetes-embedded-resource"),
        list_type: list_type(props),
        map_type: match props.text("x-kubernetes-map-type") {
            "granular" => Some(MapType::Granular),
            "atomic" => Some(MapType::Atomic),
            _ => None,
        },
        checks: checks(props, path, defaults, errors),
        rules: props.list("x-kubernetes-validations").iter().filter_map(Value::as_object).map(rule).collect(),
        patch: None,
    };
    schema.defaults_free = schema.default.is_none()
        && schema.properties.values().all(|s| s.defaults_free)
        && schema.items.as_ref().is_none_or(|s| s.defaults_free)
        && !matches!(&schema.additional, Additional::Schema(s) if !s.defaults_free);
    if defaults == Defaults::Pruned
        && let Some(mut default) = schema.default.take()
    {
        normalize::prune(&mut default, &schema, false);
        schema.default = Some(default);
    }
    schema
}

fn checks(props: Props<'_>, path: &Path, defaults: Defaults, errors: &mut Vec<field::Error>) -> Checks {
    let mut branches = |keyword: &str| -> Vec<Arc<Schema>> {
        let path = path.child(keyword);
        let branch = |(i, child)| Arc::new(node(child, &path.index(i), defaults, errors));
        props.children(keyword).enumerate().map(branch).collect()
    };
    let (all_of, any_of, one_of) = (branches("allOf"), branches("anyOf"), branches("oneOf"));
    let not = props.child("not").map(|child| Arc::new(node(child, &path.child("not"), defaults, errors)));
    Checks {
        maximum: props.number("maximum"),
        exclusive_maximum: props.flag("exclusiveMaximum"),
        minimum: props.number("minimum"),
        exclusive_minimum: props.flag("exclusiveMinimum"),
        multiple_of: props.number("multipleOf"),
        max_length: props.integer("maxLength"),
        min_length: props.integer("minLength"),
        pattern: Some(props.text("pattern")).filter(|p| !p.is_empty()).map(Pattern::new),
        // Other types have formats of their own, and no others.
        format: Format::from_name(props.text("format"))
            .filter(|_| matches!(props.text("type"), "" | "string")),
        max_items: props.integer("maxItems"),
        min_items: props.integer("minItems"),
        unique_items: props.flag("uniqueItems"),
        max_properties: props.integer("maxProperties"),
        min_properties: props.integer("minProperties"),
        required: props.names("required").into_iter().map(str::to_owned).collect(),
        enumeration: Some(props.list("enum").to_vec()).filter(|values| !values.is_empty()),
        all_of,
        any_of,
        one_of,
        not,
    }
}

fn list_type(props: Props<'_>) -> Option<ListType> {
    match props.text("x-kubernetes-list-type") {
        "atomic" => Some(ListType::Atomic),
        "set" => Some(ListType::Set),
        "map" => {
            let keys = props.names("x-kubernetes-list-map-keys");
            Some(ListType::Map(keys.into_iter().map(str::to_owned).collect()))
        }
        _ => None,
    }
}

fn rule(fields: &Map<String, Value>) -> Rule {
    let text =
        |name: &str| fields.get(name).and_then(Value::as_str).filter(|s| !s.is_empty()).map(str::to_owned);
    Rule {
        rule: text("rule").unwrap_or_default(),
        message: text("message"),
        message_expression: text("messageExpression"),
        reason: fields.get("reason").and_then(Value::as_str).map(str::to_owned),
        field_path: text("fieldPath"),
        optional_old_self: fields.get("optionalOldSelf").and_then(Value::as_bool),
    }
}

fn text(props: Props<'_>, keyword: &str) -> Option<String> {
    Some(props.text(keyword)).filter(|s| !s.is_empty()).map(str::to_owned)
}
