//! `ApplicationDefinition` and `InfrastructureDefinition`, as CompositeResourceDefinitions.

use super::catalogue::{Catalogue, Role, requirement};
use super::metadata;
use super::notes::{Difference, Notes, Problem};
use super::part::Part;
use super::schema;
use crate::constants::kind;
use serde_json::{Map, Value, json};
use transom_object::meta;

/// The fields of the design's template of a CRD, which are those of CustomResourceDefinition v1beta1.
const TEMPLATE: [&str; 10] = [
    "group",
    "version",
    "versions",
    "names",
    "scope",
    "validation",
    "subresources",
    "additionalPrinterColumns",
    "conversion",
    "preserveUnknownFields",
];

/// Today's definition: of namespaced composite resources in v2, or of legacy ones in v1, with claims if it is published.
pub(super) fn translate(
    definition: &Part<'_>,
    role: Role,
    catalogue: &Catalogue,
    notes: &mut Notes,
) -> Option<Value> {
    definition.only(&["apiVersion", "kind", "metadata", "spec", "status"], notes);
    let spec = definition.required("spec", notes)?;
    let own: &[&str] = match role {
        Role::Application => {
            &["crdSpecTemplate", "serviceAccountRef", "defaultComposition", "forceComposition"]
        }
        Role::Infrastructure => &[
            "connectionDetails",
            "crdSpecTemplate",
            "serviceAccountRef",
            "defaultComposition",
            "forceComposition",
        ],
    };
    spec.only(own, notes);
    let template = spec.required("crdSpecTemplate", notes)?;
    let mut today = of_template(&template, role, notes)?;
    check_name(definition, &today, notes);
    let is_published =
        catalogue.named(meta::name(definition.value)).is_some_and(|defined| defined.is_published);
    if is_published {
        today.insert("claimNames".to_owned(), claim_names(&today));
    }
    today.extend(connection_keys(&spec, notes));
    account(&spec, role, &mut today, notes);
    for (field, name) in
        [("defaultComposition", "defaultCompositionRef"), ("forceComposition", "enforcedCompositionRef")]
    {
        let reference = spec.get(field).and_then(|part| composition_name(&part, notes));
        today.extend(reference.map(|reference| (name.to_owned(), json!({"name": reference}))));
    }
    let (api_version, scope) = match role {
        Role::Application => (kind::APIEXTENSIONS_V2, "Namespaced"),
        Role::Infrastructure => (kind::APIEXTENSIONS_V1, "LegacyCluster"),
    };
    today.insert("scope".to_owned(), scope.into());
    let metadata = metadata(definition.value);
    Some(json!({"apiVersion": api_version, "kind": kind::XRD, "metadata": metadata, "spec": today}))
}

/// Group, names and the one version.
fn of_template(template: &Part<'_>, role: Role, notes: &mut Notes) -> Option<Map<String, Value>> {
    template.only(&TEMPLATE, notes);
    let group = template.required_text("group", notes);
    let names = names(template, notes);
    let version = version(template, role, notes);
    check_scope(template, role, notes);
    for (field, why) in [
        ("conversion", "a kind with one version has nothing to convert"),
        ("preserveUnknownFields", "set x-kubernetes-preserve-unknown-fields in the schema instead"),
    ] {
        if let Some(part) = template.get(field).filter(|part| part.value != false) {
            notes.remark(&part.field, Difference::Unsupported(why));
        }
    }
    let fields = [("group", group?.into()), ("names", names?), ("versions", json!([version?]))];
    Some(fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
}

fn names(template: &Part<'_>, notes: &mut Notes) -> Option<Value> {
    let names = template.required("names", notes)?;
    names.only(&["kind", "listKind", "plural", "singular", "shortNames", "categories"], notes);
    let (kind, plural) = (names.required_text("kind", notes), names.required_text("plural", notes));
    kind.zip(plural).map(|_| names.value.clone())
}

/// The name of the only version of a definition.
pub(super) fn version_name(definition: &Value) -> Option<&str> {
    let template = definition.pointer("/spec/crdSpecTemplate")?;
    let of_list = || template.pointer("/versions/0/name");
    template.get("version").filter(|name| !name.is_null()).or_else(of_list)?.as_str()
}

fn version(template: &Part<'_>, role: Role, notes: &mut Notes) -> Option<Value> {
    let listed =
        template.get("versions").map(|part| (part.items(notes), part.field)).filter(|(l, _)| !l.is_empty());
    if let Some((list, field)) = listed.as_ref().filter(|(list, _)| list.len() > 1) {
        notes.wrong(field, Problem::Versions(list.len()));
        return None;
    }
    let listed = listed.and_then(|(mut list, _)| list.pop());
    if let Some(listed) = &listed {
        listed.only(
            &["name", "served", "storage", "schema", "subresources", "additionalPrinterColumns"],
            notes,
        );
    }
    let name = match (template.get("version"), &listed) {
        (None, Some(listed)) => listed.required_text("name", notes),
        _ => template.required_text("version", notes),
    };
    if let Some((wanted, listed)) = name.zip(listed.as_ref()) {
        let given = listed.required_text("name", notes).unwrap_or(wanted);
        if given != wanted {
            let (given, wanted) = (given.to_owned(), wanted.to_owned());
            notes.wrong(&listed.field.child("name"), Problem::Version { given, wanted });
        }
    }
    let of_version = |field| listed.as_ref().and_then(|listed| listed.get(field));
    let schema = match template.get("validation").or_else(|| of_version("schema")) {
        Some(validation) => validation.required("openAPIV3Schema", notes),
        None => template.required("validation", notes),
    };
    let schema = schema.and_then(|schema| schema::of_object(&schema, role, notes));
    let mut version =
        json!({"name": name?, "served": true, "referenceable": true, "schema": {"openAPIV3Schema": schema?}});
    let either = |field| template.get(field).or_else(|| of_version(field));
    // Every kind has the subresource status.
    if let Some(scale) = either("subresources").and_then(|subresources| subresources.get("scale")) {
        version["subresources"] = json!({"scale": scale.value});
    }
    if let Some(columns) = either("additionalPrinterColumns") {
        version["additionalPrinterColumns"] = columns.items(notes).iter().map(column).collect();
    }
    Some(version)
}

/// A column, with the name that CustomResourceDefinition v1 has for its path.
fn column(column: &Part<'_>) -> Value {
    let mut column = column.value.clone();
    if let Some(path) = column.as_object_mut().and_then(|fields| fields.remove("JSONPath")) {
        column["jsonPath"] = path;
    }
    column
}

fn check_scope(template: &Part<'_>, role: Role, notes: &mut Notes) {
    let (wanted, kind) = match role {
        Role::Application => ("Namespaced", "application"),
        Role::Infrastructure => ("Cluster", "infrastructure"),
    };
    if let Some(scope) = template.get("scope").filter(|scope| scope.value != wanted) {
        notes.wrong(&scope.field, Problem::Scope { wanted, kind });
    }
}

fn check_name(definition: &Part<'_>, today: &Map<String, Value>, notes: &mut Notes) {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let plural = text(today.get("names").and_then(|names| names.get("plural")));
    let wanted = format!("{plural}.{}", text(today.get("group")));
    if meta::name(definition.value) != wanted {
        notes.wrong(&definition.field.down(&["metadata", "name"]), Problem::DefinitionName(wanted));
    }
}

/// The kind is suffixed with `Requirement`, and so are the other names.
fn claim_names(today: &Map<String, Value>) -> Value {
    let kind = today.get("names").and_then(|names| names.get("kind")).and_then(Value::as_str);
    let kind = requirement(kind.unwrap_or_default());
    let singular = kind.to_lowercase();
    json!({
        "kind": kind, "listKind": format!("{kind}List"),
        "plural": format!("{singular}s"), "singular": singular,
    })
}

fn connection_keys(spec: &Part<'_>, notes: &mut Notes) -> Option<(String, Value)> {
    let details = spec.get("connectionDetails")?;
    let keys: Vec<&str> = details.items(notes).iter().filter_map(|detail| detail.text(notes)).collect();
    (!keys.is_empty()).then(|| ("connectionSecretKeys".to_owned(), json!(keys)))
}

fn account(spec: &Part<'_>, role: Role, today: &mut Map<String, Value>, notes: &mut Notes) {
    let Some(account) = spec.get("serviceAccountRef") else { return };
    account.only(&["name", "namespace"], notes);
    let name = account.required_text("name", notes);
    // A namespaced composite resource has a namespace that can be that of the account.
    let namespace = match role {
        Role::Infrastructure => account.required_text("namespace", notes),
        Role::Application => account.get("namespace").and_then(|part| part.text(notes)),
    };
    let mut reference = Map::new();
    reference.extend(name.map(|name| ("name".to_owned(), name.into())));
    reference.extend(namespace.map(|namespace| ("namespace".to_owned(), namespace.into())));
    today.insert("serviceAccountRef".to_owned(), reference.into());
}

/// The name in a reference to a Composition of the design.
fn composition_name<'a>(reference: &Part<'a>, notes: &mut Notes) -> Option<&'a str> {
    reference.only(&["apiVersion", "kind", "name"], notes);
    for (field, wanted) in [("apiVersion", kind::APIEXTENSIONS_V1ALPHA1), ("kind", kind::COMPOSITION)] {
        if let Some(part) = reference.get(field).filter(|part| part.value != wanted) {
            let given = part.value.as_str().unwrap_or_default().to_owned();
            notes.wrong(&part.field, Problem::NotAComposition { wanted, given });
        }
    }
    reference.required_text("name", notes)
}
