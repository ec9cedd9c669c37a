//! ManagedResourceDefinitions and ManagedResourceActivationPolicies.

use super::definition::{LOWER_PLURAL, LOWER_SINGULAR, conversion, names, printer_column, scale};
use super::schema::{
    Crd, IMMUTABLE, Version, anything, atomic, choice, column, condition_column, conditions, flag, list,
    object, ruled, text, texts, with,
};
use super::{age_column, conditioned_status};
use crate::constants::{group, kind};
use serde_json::{Value, json};

const ACTIVE_STAYS: (&str, &str) =
    ("self == oldSelf || oldSelf != 'Active'", "state cannot be changed once it becomes Active");

pub(super) fn definition() -> Value {
    let columns = vec![
        column("STATE", "string", ".spec.state"),
        condition_column("ESTABLISHED", "Established"),
        age_column(),
    ];
    let description = "A ManagedResourceDefinition contains the CustomResourceDefinition of a managed resource, which is \
                       created when the definition becomes active.";
    let version = version(columns, description, definition_spec(), conditioned_status());
    crd(kind::MRD, "managedresourcedefinitions", &["mrd", "mrds"], version)
}

pub(super) fn activation_policy() -> Value {
    let description = "A ManagedResourceActivationPolicy activates ManagedResourceDefinitions.";
    let activate = texts(
        "Names of the definitions to activate. In a name, * stands for any text, as in *.aws.crossplane.io.",
    );
    let spec = object(
        "What to activate.",
        &["activate"],
        json!({"activate": with(activate, json!({"minItems": 1}))}),
    );
    let activated = texts("Names of the definitions that this policy activates.");
    let status =
        object("What was observed.", &[], json!({"activated": activated, "conditions": conditions()}));
    let version = version(vec![age_column()], description, spec, status);
    crd(kind::MRAP, "managedresourceactivationpolicies", &["mrap"], version)
}

fn crd(
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    version: Version,
) -> Value {
    Crd {
        group: group::APIEXTENSIONS,
        kind,
        plural,
        short_names,
        categories: &["crossplane"],
        namespaced: false,
        versions: vec![version],
    }
    .build()
}

fn version(columns: Vec<Value>, description: &'static str, spec: Value, status: Value) -> Version {
    let properties = super::schema::fields([("spec", spec), ("status", status)]);
    Version {
        name: "v1alpha1",
        columns,
        description,
        properties,
        required: &[],
        status: true,
        deprecated: None,
    }
}

fn definition_spec() -> Value {
    let scope = choice("The scope of the managed resources.", &["Namespaced", "Cluster"]);
    let state = choice(
        "Active creates the CustomResourceDefinition. A definition that is Active cannot become Inactive again.",
        &["Active", "Inactive"],
    );
    let detail = object(
        "A key of connection secrets.",
        &["description", "name"],
        json!({"name": text("The key."), "description": text("What its value is.")}),
    );
    let fields = json!({
        "group": ruled(text("API group of the managed resources."), &[IMMUTABLE]),
        "names": ruled(names("Names of the managed resources."), &[IMMUTABLE, LOWER_PLURAL, LOWER_SINGULAR]),
        "scope": ruled(with(scope, json!({"default": "Namespaced"})), &[IMMUTABLE]),
        "state": ruled(with(state, json!({"default": "Inactive"})), &[ACTIVE_STAYS]),
        "versions": atomic(list("Versions of the managed resources.", resource_version())),
        "conversion": conversion("How versions of managed resources are converted into each other."),
        "connectionDetails": list("The keys that managed resources write to their connection secrets.", detail),
        "preserveUnknownFields": flag("Deprecated: whether fields that are not in the schema are kept."),
    });
    object("What to define.", &["group", "names", "scope", "versions"], fields)
}

fn resource_version() -> Value {
    let schema = object(
        "The schema of the managed resources.",
        &[],
        json!({"openAPIV3Schema": anything("An OpenAPI v3 schema.")}),
    );
    let selectable = object("A field.", &["jsonPath"], json!({"jsonPath": text("JSONPath of the field.")}));
    let status = json!({"type": "object", "description": "Serves the status subresource."});
    object(
        "A version.",
        &["name", "served", "storage"],
        json!({
            "name": text("Name of the version, such as v1 or v1alpha1."),
            "served": flag("Whether the API serves this version."),
            "storage": flag("Whether objects are stored in this version. Exactly one is."),
            "deprecated": flag("Whether clients that use this version get a deprecation warning."),
            "deprecationWarning": text("The deprecation warning; by default one that names the version."),
            "schema": schema,
            "additionalPrinterColumns": atomic(list("Columns of `kubectl get`.", printer_column())),
            "selectableFields": atomic(list("Fields that field selectors may use.", selectable)),
            "subresources": object("Subresources.", &[], json!({"scale": scale(), "status": status})),
        }),
    )
}
