//! NopResource, the managed resource that manages nothing: made for trying and testing.

use serde_json::{Value, json};
use transom_provider::age_column;
use transom_provider::schema::{
    Crd, Version, anything, choice, condition_column, conditions, integer, list, name_reference, object,
    text, texts_by_name, with,
};

pub(super) fn nop_resource() -> Value {
    let status = object(
        "What was observed.",
        &[],
        json!({
            "atProvider": at_provider(),
            "conditions": conditions(),
            "observedGeneration": integer("The generation of the object that was last reconciled."),
        }),
    );
    let version = Version {
        name: "v1alpha1",
        columns: vec![condition_column("READY", "Ready"), condition_column("SYNCED", "Synced"), age_column()],
        description: "A NopResource manages nothing. It gets the conditions that its spec lists, at the times listed.",
        properties: json!({"spec": spec(), "status": status}),
        required: &["spec"],
        status: true,
        deprecated: None,
    };
    Crd {
        group: "nop.crossplane.io",
        kind: "NopResource",
        plural: "nopresources",
        short_names: &[],
        categories: &["crossplane", "managed", "nop"],
        namespaced: false,
        versions: vec![version],
    }
    .build()
}

pub(super) fn at_provider() -> Value {
    object("The observed state.", &[], json!({"fields": fields()}))
}

fn fields() -> Value {
    anything("Any data, for patches to read or write.")
}

fn spec() -> Value {
    let secret = object(
        "The Secret to write connection details to.",
        &["name", "namespace"],
        json!({"name": text("Name of the Secret."), "namespace": text("Namespace of the Secret.")}),
    );
    let actions = &["Observe", "Create", "Update", "Delete", "LateInitialize", "*"];
    let policies =
        list("The actions that are allowed on the external resource.", choice("An action.", actions));
    let deletion =
        choice("Whether the external resource is deleted with this object.", &["Orphan", "Delete"]);
    object(
        "The desired state.",
        &["forProvider"],
        json!({
            "deletionPolicy": with(deletion, json!({"default": "Delete"})),
            "forProvider": basic_parameters(),
            "managementPolicies": with(policies, json!({"default": ["*"]})),
            "providerConfigRef": config("The configuration of the provider."),
            "publishConnectionDetailsTo": publish(),
            "writeConnectionSecretToRef": secret,
        }),
    )
}

/// `forProvider` of the kinds that came later.
pub(super) fn parameters() -> Value {
    let mut parameters = basic_parameters();
    parameters["properties"]["deleteAfter"] =
        text("How long after its deletion the object still exists, such as 10s.");
    parameters["properties"]["deleteError"] =
        with(text("The error with which every deletion fails."), json!({"minLength": 1}));
    parameters
}

fn basic_parameters() -> Value {
    let condition = object(
        "A condition and its time.",
        &["conditionStatus", "conditionType", "time"],
        json!({
            "time": text("How long after its creation the object gets the condition, such as 10s."),
            "conditionType": text("Type of the condition, such as Ready."),
            "conditionStatus": text("Status of the condition, such as True."),
            "conditionReason": text("Reason of the condition, such as Available."),
        }),
    );
    let detail = object(
        "A connection detail.",
        &["name", "value"],
        json!({"name": text("Name of the detail."), "value": text("Value of the detail.")}),
    );
    object(
        "What the object shall do.",
        &[],
        json!({
            "conditionAfter": list("Conditions the object gets after some time. It never becomes ready unless one says \
                                    so.", condition),
            "connectionDetails": list("Connection details the object publishes.", detail),
            "fields": fields(),
        }),
    )
}

/// A reference with a policy on when and whether it must be resolved.
fn config(description: &str) -> Value {
    let resolution = choice("Whether an unresolved reference is an error.", &["Required", "Optional"]);
    let policy = object(
        "How the reference is resolved.",
        &[],
        json!({
            "resolution": with(resolution, json!({"default": "Required"})),
            "resolve": choice("When the reference is resolved.", &["Always", "IfNotPresent"]),
        }),
    );
    let mut config = name_reference(description, "object");
    config["properties"]["policy"] = policy;
    with(config, json!({"default": {"name": "default"}}))
}

fn publish() -> Value {
    let metadata = object(
        "Metadata of the secret.",
        &[],
        json!({
            "labels": texts_by_name("Labels of the secret."),
            "annotations": texts_by_name("Annotations of the secret."),
            "type": text("Type of the secret."),
        }),
    );
    object(
        "Where to publish connection details, if not to a Secret.",
        &["name"],
        json!({
            "name": text("Name of the connection secret."),
            "metadata": metadata,
            "configRef": config("The store of secrets."),
        }),
    )
}
