//! What makes a schema structural: a spine of `properties`, `items` and `additionalProperties` in which every
//! node has a type, and logic (`allOf`, `anyOf`, `oneOf`, `not`) that only restricts what the spine specifies.

use super::props::{OrBool, Props};
use serde_json::{Value, json};
use transom_go::regexp::{self, Limits};
use transom_object::field::{self, Path};

/// Where a node stands in the spine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// All violations, sorted by their text as upstream sorts them.
pub(super) fn check(props: Props<'_>, path: &Path) -> Vec<field::Error> {
    let mut rules = Rules { errors: Vec::new() };
    rules.spine(props, Level::Root, path);
    rules.errors.extend(completeness(props, path));
    rules.errors.sort_by_cached_key(ToString::to_string);
    rules.errors
}

/// Logic that restricts fields or items the spine does not specify.
pub(super) fn completeness(props: Props<'_>, path: &Path) -> Vec<field::Error> {
    let mut rules = Rules { errors: Vec::new() };
    rules.logic_is_specified(props, props, path, path);
    rules.errors
}

struct Rules {
    errors: Vec<field::Error>,
}

impl Rules {
    fn require(&mut self, path: &Path, detail: impl Into<String>) {
        self.errors.push(field::Error::required(path, detail));
    }

    fn forbid(&mut self, path: &Path, detail: &str) {
        self.errors.push(field::Error::forbidden(path, detail));
    }

    fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: &str) {
        self.errors.push(field::Error::invalid(path, value, detail));
    }

    fn spine(&mut self, props: Props<'_>, level: Level, path: &Path) {
        if props.ty() == "array" && props.get("items").and_then(Props::read).is_none() {
            self.require(&path.child("items"), "must be specified");
        }
        if let Some(items) = props.child("items") {
            self.spine(items, Level::Item, &path.child("items"));
        }
        for (name, property) in props.named("properties") {
            self.spine(property, Level::Field, &path.child("properties").key(name));
        }
        if let Some(additional) = props.additional() {
            let path = path.child("additionalProperties");
            if level == Level::Root {
                self.forbid(&path, "must not be used at the root");
            }
            if let OrBool::Schema(values) = additional {
                self.spine(values, Level::Field, &path);
            }
        }
        self.extensions(props, path);
        let (any_of, all_of) = int_or_string_patterns(props);
        self.logic(props, any_of, all_of, path);
        self.node_type(props, level, path);
        self.metadata(props, level, path);
    }

    fn extensions(&mut self, props: Props<'_>, path: &Path) {
        if !props.flag("x-kubernetes-int-or-string") {
            return;
        }
        for keyword in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if props.flag(keyword) {
                self.invalid(
                    &path.child(keyword),
                    true,
                    "must be false if x-kubernetes-int-or-string is true",
                );
            }
        }
    }

    fn node_type(&mut self, props: Props<'_>, level: Level, path: &Path) {
        let (ty, at) = (props.ty(), path.child("type"));
        let embedded = props.flag("x-kubernetes-embedded-resource");
        let preserving = props.flag("x-kubernetes-preserve-unknown-fields");
        if embedded && ty != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            if ty.is_empty() {
                self.require(&at, detail);
            } else {
                self.invalid(&at, ty, detail);
            }
        } else if ty.is_empty() && !props.flag("x-kubernetes-int-or-string") && !preserving {
            self.require(
                &at,
                match level {
                    Level::Root => "must not be empty at the root",
                    Level::Item => "must not be empty for specified array items",
                    Level::Field => "must not be empty for specified object fields",
                },
            );
        }
        if embedded && props.additional().is_some() {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            self.forbid(&path.child("additionalProperties"), detail);
        }
        if level == Level::Root && !ty.is_empty() && ty != "object" {
            self.invalid(&at, ty, "must be object at the root");
        }
        if embedded && !preserving && !props.has_properties() {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                          x-kubernetes-preserve-unknown-fields";
            self.require(&path.child("properties"), detail);
        }
    }

    /// `apiVersion`, `kind` and `metadata` are specified implicitly; a schema may only narrow the names.
    fn metadata(&mut self, props: Props<'_>, level: Level, path: &Path) {
        let is_resource = level == Level::Root || props.flag("x-kubernetes-embedded-resource");
        let at = path.child("properties");
        if is_resource {
            for name in ["kind", "apiVersion"] {
                if let Some(property) = props.property(name)
                    && property.ty() != "string"
                {
                    self.invalid(&at.key(name).child("type"), property.ty(), "must be string");
                }
            }
        }
        let Some(metadata) = props.property("metadata") else { return };
        let at = at.key("metadata");
        if is_resource && metadata.ty() != "object" {
            self.invalid(&at.child("type"), metadata.ty(), "must be object");
        }
        if level == Level::Root && !narrows_names_only(metadata) {
            let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            self.forbid(&at, detail);
        }
    }

    fn logic(&mut self, props: Props<'_>, skip_any_of: bool, skip_first_any_of: bool, path: &Path) {
        if !skip_any_of {
            for (i, branch) in props.children("anyOf").enumerate() {
                self.branch(branch, false, &path.child("anyOf").index(i));
            }
        }
        for (i, branch) in props.children("allOf").enumerate() {
            self.branch(branch, skip_first_any_of && i == 0, &path.child("allOf").index(i));
        }
        for (i, branch) in props.children("oneOf").enumerate() {
            self.branch(branch, false, &path.child("oneOf").index(i));
        }
        if let Some(branch) = props.child("not") {
            self.branch(branch, false, &path.child("not"));
        }
        let source = props.text("pattern");
        if !source.is_empty()
            && let Err(e) = regexp::compile(source, Limits::default())
        {
            let detail = format!("must be a valid regular expression, but isn't: {e}");
            self.invalid(&path.child("pattern"), source, &detail);
        }
    }

    /// A schema inside logic: it may restrict, not specify.
    fn branch(&mut self, props: Props<'_>, skip_any_of: bool, path: &Path) {
        self.logic(props, skip_any_of, false, path);
        if let Some(items) = props.child("items") {
            self.branch(items, false, &path.child("items"));
        }
        for (name, property) in props.named("properties") {
            self.branch(property, false, &path.child("properties").key(name));
        }
        for (keyword, detail) in specifying_keywords(props) {
            self.forbid(&path.child(keyword), detail);
        }
        if props.property("metadata").is_some() {
            self.forbid(
                &path.child("properties").key("metadata"),
                "must not be specified in a nested context",
            );
        }
    }

    fn logic_is_specified(&mut self, logic: Props<'_>, spine: Props<'_>, at: &Path, logic_at: &Path) {
        if let Some(branch) = logic.child("not") {
            self.branch_is_specified(branch, Some(spine), at, &logic_at.child("not"));
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for (i, branch) in logic.children(keyword).enumerate() {
                self.branch_is_specified(branch, Some(spine), at, &logic_at.child(keyword).index(i));
            }
        }
    }

    fn branch_is_specified(
        &mut self,
        branch: Props<'_>,
        spine: Option<Props<'_>>,
        at: &Path,
        branch_at: &Path,
    ) {
        let Some(spine) = spine else {
            self.require(at, format!("because it is defined in {branch_at}"));
            return;
        };
        self.logic_is_specified(branch, spine, at, branch_at);
        if let Some(items) = branch.child("items") {
            self.branch_is_specified(
                items,
                spine.child("items"),
                &at.child("items"),
                &branch_at.child("items"),
            );
        }
        for (name, property) in branch.named("properties") {
            let (at, branch_at) = (at.child("properties").key(name), branch_at.child("properties").key(name));
            self.branch_is_specified(property, spine.property(name), &at, &branch_at);
        }
    }
}

/// The keywords of a node that specify something, and what they must be where a schema may only restrict.
fn specifying_keywords(props: Props<'_>) -> impl Iterator<Item = (&'static str, &'static str)> {
    const EMPTY: &str = "must be empty to be structural";
    const UNDEFINED: &str = "must be undefined to be structural";
    const FALSE: &str = "must be false to be structural";
    // `additionalProperties: false` specifies nothing.
    let additional = !matches!(props.additional(), None | Some(OrBool::Bool(false)));
    let is_text = |keyword| !props.text(keyword).is_empty();
    let is_list = |keyword| !props.list(keyword).is_empty();
    let is_named = |keyword| props.name(keyword).is_some();
    let is_true = |keyword| props.flag(keyword);
    [
        ("type", !props.ty().is_empty(), EMPTY),
        ("additionalProperties", additional, UNDEFINED),
        ("default", props.get("default").is_some(), UNDEFINED),
        ("title", is_text("title"), EMPTY),
        ("description", is_text("description"), EMPTY),
        ("nullable", is_true("nullable"), FALSE),
        ("x-kubernetes-preserve-unknown-fields", is_true("x-kubernetes-preserve-unknown-fields"), FALSE),
        ("x-kubernetes-embedded-resource", is_true("x-kubernetes-embedded-resource"), FALSE),
        ("x-kubernetes-int-or-string", is_true("x-kubernetes-int-or-string"), FALSE),
        ("x-kubernetes-list-map-keys", is_list("x-kubernetes-list-map-keys"), EMPTY),
        ("x-kubernetes-list-type", is_named("x-kubernetes-list-type"), UNDEFINED),
        ("x-kubernetes-map-type", is_named("x-kubernetes-map-type"), UNDEFINED),
        ("x-kubernetes-validations", is_list("x-kubernetes-validations"), EMPTY),
    ]
    .into_iter()
    .filter_map(|(keyword, specifies, detail)| specifies.then_some((keyword, detail)))
}

/// Whether the node has one of the two forms of logic that spell out int-or-string, where types are allowed:
/// `anyOf: [integer, string]`, or the same as the first of its `allOf`.
fn int_or_string_patterns(props: Props<'_>) -> (bool, bool) {
    let spelled =
        |props: Props<'_>| props.get("anyOf") == Some(&json!([{"type": "integer"}, {"type": "string"}]));
    (spelled(props), props.children("allOf").next().is_some_and(spelled))
}

fn narrows_names_only(metadata: Props<'_>) -> bool {
    let names_only = metadata.named("properties").all(|(name, _)| matches!(name, "name" | "generateName"));
    let zero = |value: &Value| match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::String(s) => s.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) | Value::Number(_) => false,
    };
    let silent = metadata.raw().iter().all(|(keyword, value)| match keyword.as_str() {
        "type" | "default" | "properties" => true,
        // Not part of a structural schema.
        "example" | "externalDocs" => true,
        // Said by being there.
        "additionalProperties" | "x-kubernetes-list-type" | "x-kubernetes-map-type" => value.is_null(),
        _ => zero(value),
    });
    names_only && silent
}
