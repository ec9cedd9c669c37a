//! The schemas of the kinds, as the original has them.

use super::Generation;
use super::collection::KIND;
use serde_json::{Map, Value, json};
use transom_provider::schema::{
    Crd, Version, anything, choice, column, condition_column, conditions, flag, list, name_reference, object,
    ruled, text, texts, texts_by_name, wide, with,
};
use transom_provider::{Layout, ManagedKind, age_column};

/// `spec.forProvider` of an Object.
pub(super) fn parameters() -> Value {
    let policies = choice(
        "What happens to what the object owns when it is deleted.",
        &["Orphan", "Background", "Foreground"],
    );
    object(
        "The object.",
        &["manifest"],
        json!({
            "manifest": embedded("The object as it shall be. Without a name it has that of the Object."),
            "deletionPropagationPolicy": with(policies, json!({"default": "Background"})),
        }),
    )
}

fn embedded(description: &str) -> Value {
    with(anything(description), json!({"x-kubernetes-embedded-resource": true}))
}

/// `status.atProvider` of an Object.
pub(super) fn at_provider() -> Value {
    object("The observed object.", &[], json!({"manifest": embedded("The object as it is.")}))
}

/// The fields of `spec` of an Object beside those of every managed resource.
pub(super) fn more_spec(group: &str) -> Value {
    json!({
        "connectionDetails": list("Fields of objects that become connection details.", connection_detail()),
        "readiness": readiness(),
        "references": list("Objects that must exist first.", reference(group)),
        "watch": with(
            flag("Whether a change of the object is noticed at once, by a watch."),
            json!({"default": false}),
        ),
    })
}

fn connection_detail() -> Value {
    with(
        object(
            "A field of an object in the cluster of the Object.",
            &[],
            json!({
                "apiVersion": text("Version of the object."),
                "kind": text("Kind of the object."),
                "namespace": text("Namespace of the object."),
                "name": text("Name of the object."),
                "fieldPath": text("Path of the field, such as data.password."),
                "uid": text("Not used."),
                "resourceVersion": text("Not used."),
                "toConnectionSecretKey": text("Name of the connection detail."),
            }),
        ),
        json!({"x-kubernetes-map-type": "atomic"}),
    )
}

fn readiness() -> Value {
    let policies = ["SuccessfulCreate", "DeriveFromObject", "AllTrue", "DeriveFromCelQuery"];
    let policy = choice("When the Object is ready.", &policies);
    let schema = object(
        "When the Object is ready.",
        &[],
        json!({
            "policy": with(policy, json!({"default": "SuccessfulCreate"})),
            "celQuery": text("An expression over the variable object that is true when the Object is ready."),
        }),
    );
    let rule = "self.policy != 'DeriveFromCelQuery' || (self.policy == 'DeriveFromCelQuery' && size(self.celQuery) > 0)";
    ruled(schema, &[(rule, "celQuery must be set if policy is DeriveFromCelQuery")])
}

fn reference(group: &str) -> Value {
    let target = |description: &str, required: &[&str], more: Value| {
        let version = json!({"default": format!("{group}/v1alpha1")});
        let mut schema = object(
            description,
            required,
            json!({
                "apiVersion": with(text("Version of the object."), version),
                "kind": with(text("Kind of the object."), json!({"default": "Object"})),
                "name": text("Name of the object."),
                "namespace": text("Namespace of the object."),
            }),
        );
        if let (Some(properties), Value::Object(more)) = (schema["properties"].as_object_mut(), more) {
            properties.extend(more);
        }
        schema
    };
    let path = json!({"fieldPath": text("Path of the field whose value is copied.")});
    object(
        "An object of the control plane that must exist first, and a field of it that is copied.",
        &[],
        json!({
            "dependsOn": target("An object that must exist.", &["name"], json!({})),
            "patchesFrom": target("An object that a value is copied from.", &["fieldPath", "name"], path),
            "toFieldPath": text("Path in the manifest that gets the value; without it, the same path."),
        }),
    )
}

/// The CustomResourceDefinition of an Object.
pub(super) fn object_crd(kind: &ManagedKind) -> Value {
    let mut crd = kind.crd();
    let manifest =
        |name: &str, path: &str| column(name, "string", &format!(".spec.forProvider.manifest.{path}"));
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        manifest("KIND", "kind"),
        wide(manifest("APIVERSION", "apiVersion")),
        wide(manifest("METANAME", "metadata.name")),
        wide(manifest("METANAMESPACE", "metadata.namespace")),
        column("PROVIDERCONFIG", "string", ".spec.providerConfigRef.name"),
        condition_column("SYNCED", "Synced"),
        condition_column("READY", "Ready"),
        age_column(),
    ]);
    crd
}

/// The CustomResourceDefinition of an ObservedObjectCollection.
pub(super) fn collection_crd(generation: Generation) -> Value {
    let status = json!({
        "conditions": conditions(),
        "membershipLabel": texts_by_name("The label of the Objects of this collection."),
    });
    let observed = |name: &str, path: &str| column(name, "string", &format!(".spec.observeObjects.{path}"));
    let version = Version {
        name: generation.version(KIND),
        columns: vec![
            observed("KIND", "kind"),
            wide(observed("APIVERSION", "apiVersion")),
            column("PROVIDERCONFIG", "string", ".spec.providerConfigRef.name"),
            condition_column("SYNCED", "Synced"),
            condition_column("READY", "Ready"),
            age_column(),
        ],
        description: "Observes all objects of a cluster that match, by an Object for each that only observes.",
        properties: json!({
            "spec": collection_spec(generation), "status": object("What was observed.", &[], status),
        }),
        required: &["spec"],
        status: true,
        deprecated: None,
    };
    let mut crd = Crd {
        group: generation.group(),
        kind: KIND,
        plural: "observedobjectcollections",
        short_names: &[],
        categories: &["crossplane", "managed", "kubernetes"],
        namespaced: generation.layout == Layout::Modern,
        versions: vec![version],
    }
    .build();
    // The name is the value of a label of its Objects.
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let schema_with_rule =
        ruled(schema.take(), &[("size(self.metadata.name) < 64", "metadata.name max length is 63")]);
    *schema = schema_with_rule;
    crd
}

fn collection_spec(generation: Generation) -> Value {
    let requirement = object(
        "A requirement on a label.",
        &["key", "operator"],
        json!({
            "key": text("The label."),
            "operator": text("In, NotIn, Exists or DoesNotExist."),
            "values": texts("The values of In and NotIn."),
        }),
    );
    let selector = object(
        "The labels of the objects. Without requirements all objects match.",
        &[],
        json!({
            "matchLabels": texts_by_name("Labels that the objects have."),
            "matchExpressions": list("Requirements on the labels of the objects.", requirement),
        }),
    );
    let not_empty = |description: &str| with(text(description), json!({"minLength": 1}));
    let observe = object(
        "The objects that are observed.",
        &["apiVersion", "kind", "selector"],
        json!({
            "apiVersion": not_empty("Their version."),
            "kind": not_empty("Their kind."),
            "namespace": text("Their namespace; without it, all."),
            "selector": with(selector, json!({"x-kubernetes-map-type": "atomic"})),
        }),
    );
    let metadata = object(
        "Metadata of the Objects.",
        &[],
        json!({
            "labels": texts_by_name("Labels of the Objects."),
            "annotations": texts_by_name("Annotations of the Objects."),
        }),
    );
    object(
        "What is observed.",
        &["observeObjects"],
        json!({
            "observeObjects": observe,
            "objectTemplate": object("What the Objects have.", &[], json!({"metadata": metadata})),
            "providerConfigRef": config_reference(generation),
        }),
    )
}

fn config_reference(generation: Generation) -> Value {
    let description = "The configuration of the provider.";
    match generation.layout {
        Layout::Legacy => {
            let reference = name_reference(description, "ProviderConfig");
            with(reference, json!({"default": {"name": "default"}}))
        }
        Layout::Modern => {
            let mut reference = name_reference(description, "configuration");
            reference["properties"]["kind"] = text("ProviderConfig or ClusterProviderConfig.");
            reference["required"] = json!(["kind", "name"]);
            with(reference, json!({"default": {"kind": "ClusterProviderConfig", "name": "default"}}))
        }
    }
}

/// `spec` of a ProviderConfig.
pub(super) fn config(_: bool) -> Value {
    let sources = choice(
        "Where the credentials are.",
        &["None", "Secret", "InjectedIdentity", "Environment", "Filesystem"],
    );
    let secret = object(
        "A key of a Secret.",
        &["key", "name", "namespace"],
        json!({
            "name": text("Name of the Secret."),
            "namespace": text("Namespace of the Secret."),
            "key": text("The key."),
        }),
    );
    let credentials = Map::from_iter([
        ("source".to_owned(), sources),
        ("secretRef".to_owned(), secret),
        ("env".to_owned(), object("Not supported.", &["name"], json!({"name": text("A variable.")}))),
        ("fs".to_owned(), object("Not supported.", &["path"], json!({"path": text("A file.")}))),
    ]);
    let mut identity = credentials.clone();
    let types = [
        "GoogleApplicationCredentials",
        "AzureServicePrincipalCredentials",
        "AzureWorkloadIdentityCredentials",
        "UpboundTokens",
        "AWSWebIdentityCredentials",
        "NebiusServiceAccountCredentials",
    ];
    identity.insert("type".to_owned(), choice("The kind of credentials.", &types));
    object(
        "How to connect to a Kubernetes cluster.",
        &["credentials"],
        json!({
            "credentials": object(
                "A kubeconfig; or, with InjectedIdentity, the cluster that this object is in.",
                &["source"],
                Value::Object(credentials),
            ),
            "identity": object("Credentials of clouds: not supported.", &["source", "type"], Value::Object(identity)),
        }),
    )
}
