//! Functions and their revisions.

use super::schema::{
    Crd, Version, column, condition_column, conditions, flag, integer, list, merge, name_reference, object,
    ruled, text, texts, texts_by_name, wide, with,
};
use super::{age_column, schema};
use crate::constants::group;
use serde_json::{Value, json};

const QUALIFIED: (&str, &str) = (
    r"self.matches('^[^\\.\\/]+(\\.[^\\.\\/]+)+(\\/[^\\/:@]+)+(:[^:@]+(@sha256.+)?|@sha256.+)$')",
    "must be a fully qualified image name, including the registry, repository, and tag or digest. For example, \
     'registry.example.com/repo/package:tag' or 'registry.example.com/repo/package[:tag]@sha256:1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef'.",
);
const LIMITED: (&str, &str) = (
    "!has(self.activeRevisionLimit) || self.revisionHistoryLimit == 0 || \
     self.activeRevisionLimit <= self.revisionHistoryLimit",
    "activeRevisionLimit must not exceed revisionHistoryLimit",
);

pub(super) fn function() -> Value {
    let columns = || {
        vec![
            condition_column("INSTALLED", "Installed"),
            condition_column("HEALTHY", "Healthy"),
            column("PACKAGE", "string", ".spec.package"),
            age_column(),
        ]
    };
    let description = "A Function is a package that composes resources when a Composition calls it.";
    let version = |name| version(name, description, columns(), function_spec(), function_status());
    crd("Function", "functions", &["crossplane", "pkg"], vec![version("v1"), version("v1beta1")])
}

pub(super) fn function_revision() -> Value {
    let columns = || {
        vec![
            condition_column("HEALTHY", "RevisionHealthy"),
            condition_column("RUNTIME-HEALTHY", "RuntimeHealthy"),
            condition_column("RUNTIME-ACTIVE", "RuntimeActive"),
            column("IMAGE", "string", ".spec.image"),
            column("STATE", "string", ".spec.desiredState"),
            age_column(),
            wide(column("REVISION", "string", ".spec.revision")),
            wide(column("DEP-FOUND", "string", ".status.foundDependencies")),
            wide(column("DEP-INSTALLED", "string", ".status.installedDependencies")),
        ]
    };
    let description = "A FunctionRevision is one image of a Function. It is made and kept by the control plane: do not \
                       edit it.";
    let version = |name| version(name, description, columns(), revision_spec(), revision_status());
    crd(
        "FunctionRevision",
        "functionrevisions",
        &["crossplane", "pkgrev"],
        vec![version("v1"), version("v1beta1")],
    )
}

fn crd(
    kind: &'static str,
    plural: &'static str,
    categories: &'static [&'static str],
    versions: Vec<Version>,
) -> Value {
    Crd { group: group::PKG, kind, plural, short_names: &[], categories, namespaced: false, versions }.build()
}

fn version(
    name: &'static str,
    description: &'static str,
    columns: Vec<Value>,
    spec: Value,
    status: Value,
) -> Version {
    let properties = schema::fields([("spec", spec), ("status", status)]);
    Version { name, columns, description, properties, required: &[], status: true, deprecated: None }
}

/// What the spec of a package and of its revisions have in common.
fn common_spec() -> Value {
    let secret = json!({
        "type": "object",
        "description": "A Secret.",
        "properties": {"name": with(text("Name of the Secret."), json!({"default": ""}))},
        "x-kubernetes-map-type": "atomic",
    });
    let mut runtime = name_reference("How to run the package.", "runtime config");
    runtime["default"] = json!({"name": "default"});
    let api_version = text("Group and version of the runtime config.");
    runtime["properties"]["apiVersion"] = with(api_version, json!({"default": "pkg.crossplane.io/v1beta1"}));
    let kind = text("Kind of the runtime config.");
    runtime["properties"]["kind"] = with(kind, json!({"default": "DeploymentRuntimeConfig"}));
    let off = |description: &str| with(flag(description), json!({"default": false}));
    json!({
        "packagePullPolicy": with(text("When to pull the image."), json!({"default": "IfNotPresent"})),
        "packagePullSecrets": list("Secrets to pull the image with.", secret),
        "ignoreCrossplaneConstraints": off("Whether to install the package although it wants another version of \
                                            Crossplane."),
        "skipDependencyResolution": off("Whether to install the package without what it depends on."),
        "commonLabels": texts_by_name("Labels of what is made for the package."),
        "commonAnnotations": texts_by_name("Annotations of what is made for the package."),
        "runtimeConfigRef": runtime,
    })
}

fn function_spec() -> Value {
    let mut fields = common_spec();
    let history = integer("How many inactive revisions to keep; 0 keeps all.");
    let active = integer("How many revisions may run at the same time; 1 by default.");
    let policy = text("Whether new revisions are activated by themselves: Automatic or Manual.");
    merge(
        &mut fields,
        json!({
            "package": ruled(text("The image of the package."), &[QUALIFIED]),
            "revisionActivationPolicy": with(policy, json!({"default": "Automatic"})),
            "revisionHistoryLimit": with(history, json!({"default": 1})),
            "activeRevisionLimit": with(active, json!({"minimum": 1})),
        }),
    );
    ruled(object("What to install.", &["package"], fields), &[LIMITED])
}

fn revision_spec() -> Value {
    let mut fields = common_spec();
    merge(
        &mut fields,
        json!({
            "image": text("The image of the package."),
            "desiredState": text("Active or Inactive."),
            "revision": integer("The number of the revision; the latest has the highest."),
            "tlsClientSecretName": text("Secret with the client's certificate."),
            "tlsServerSecretName": text("Secret with the server's certificate."),
        }),
    );
    object("What to run.", &["desiredState", "image", "revision"], fields)
}

/// What the status of a package and of its revisions have in common.
fn common_status() -> Value {
    let used = object(
        "An ImageConfig and what it was used for.",
        &["name", "reason"],
        json!({"name": text("Name of the ImageConfig."), "reason": text("What it was used for.")}),
    );
    json!({"conditions": conditions(), "appliedImageConfigRefs": list("ImageConfigs that were used.", used)})
}

fn function_status() -> Value {
    let mut fields = common_status();
    merge(
        &mut fields,
        json!({
            "currentIdentifier": text("The package as it was last asked for."),
            "currentRevision": text("The newest revision, active or not."),
            "resolvedPackage": text("The package as it was looked for after rewriting its path."),
        }),
    );
    object("What was observed.", &[], fields)
}

fn revision_status() -> Value {
    let mut fields = common_status();
    let reference = object(
        "An object.",
        &["apiVersion", "kind", "name"],
        json!({
            "apiVersion": text("Group and version of the object."),
            "kind": text("Kind of the object."),
            "name": text("Name of the object."),
            "uid": text("UID of the object."),
        }),
    );
    merge(
        &mut fields,
        json!({
            "capabilities": texts("What the package says it can do."),
            "endpoint": text("Where the function is called."),
            "foundDependencies": integer("How many packages this one depends on."),
            "installedDependencies": integer("How many of them are installed."),
            "invalidDependencies": integer("How many of them are installed in a version that does not fit."),
            "objectRefs": list("Objects the package brought.", reference),
            "resolvedImage": text("The image as it was pulled after rewriting its path."),
            "tlsClientSecretName": text("Secret with the client's certificate."),
            "tlsServerSecretName": text("Secret with the server's certificate."),
        }),
    );
    object("What was observed.", &[], fields)
}
