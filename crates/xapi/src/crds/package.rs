//! Providers, Configurations and Functions, and their revisions.

use super::schema::{
    Crd, Version, column, condition_column, conditions, flag, integer, list, merge, object, ruled,
    runtime_config_reference, secret_reference, text, texts, texts_by_name, wide, with,
};
use super::{age_column, schema};
use crate::constants::group;
use crate::package::{DEFAULT_RUNTIME_CONFIG, PackageKind};
use serde_json::{Value, json};

const QUALIFIED: (&str, &str) = (
    r"self.matches('^[^\\.\\/]+(\\.[^\\.\\/]+)+(\\/[^\\/:@]+)+(:[^:@]+(@sha256.+)?|@sha256.+)$')",
    "must be a fully qualified image name, including the registry, repository, and tag or digest. For example, \
     'registry.example.com/repo/package:tag' or 'registry.example.com/repo/package[:tag]@sha256:1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef'.",
);
const LIMITED: (&str, &str) = (
    "!has(self.activeRevisionLimit) || !has(self.revisionHistoryLimit) || self.revisionHistoryLimit == 0 || \
     self.activeRevisionLimit <= self.revisionHistoryLimit",
    "activeRevisionLimit must not exceed revisionHistoryLimit",
);

pub(super) fn package(kind: PackageKind) -> Value {
    let columns = || {
        vec![
            condition_column("INSTALLED", "Installed"),
            condition_column("HEALTHY", "Healthy"),
            column("PACKAGE", "string", ".spec.package"),
            age_column(),
        ]
    };
    let description = match kind {
        PackageKind::Provider => {
            "A Provider is a package that installs kinds of managed resources and runs their controllers."
        }
        PackageKind::Configuration => {
            "A Configuration is a package that installs CompositeResourceDefinitions and Compositions."
        }
        PackageKind::Function => {
            "A Function is a package that composes resources when a Composition calls it."
        }
    };
    let versions =
        versions(kind, |name| version(name, description, columns(), package_spec(kind), package_status()));
    crd(kind.kind(), kind.plural(), &["crossplane", "pkg"], versions)
}

pub(super) fn revision(kind: PackageKind) -> Value {
    let description = match kind {
        PackageKind::Provider => {
            "A ProviderRevision is one image of a Provider. The control plane creates and updates it: do not edit it."
        }
        PackageKind::Configuration => {
            "A ConfigurationRevision is one image of a Configuration. The control plane creates and updates it: do \
             not edit it."
        }
        PackageKind::Function => {
            "A FunctionRevision is one image of a Function. The control plane creates and updates it: do not edit it."
        }
    };
    let versions = versions(kind, |name| {
        version(name, description, revision_columns(kind), revision_spec(kind), revision_status(kind))
    });
    crd(kind.revision_kind(), kind.revision_plural(), &["crossplane", "pkgrev"], versions)
}

fn revision_columns(kind: PackageKind) -> Vec<Value> {
    let mut columns = vec![condition_column("HEALTHY", "RevisionHealthy")];
    if kind.has_runtime() {
        columns.push(condition_column("RUNTIME-HEALTHY", "RuntimeHealthy"));
        columns.push(condition_column("RUNTIME-ACTIVE", "RuntimeActive"));
    }
    columns
        .extend([column("IMAGE", "string", ".spec.image"), column("STATE", "string", ".spec.desiredState")]);
    if kind == PackageKind::Function {
        columns.push(column("ENDPOINT", "string", ".status.endpoint"));
    }
    columns.extend([
        age_column(),
        wide(column("REVISION", "string", ".spec.revision")),
        wide(column("DEP-FOUND", "string", ".status.foundDependencies")),
        wide(column("DEP-INSTALLED", "string", ".status.installedDependencies")),
    ]);
    columns
}

/// The versions of a kind, which all have the same schema.
fn versions(kind: PackageKind, version: impl Fn(&'static str) -> Version) -> Vec<Version> {
    let names: &[&'static str] = if kind == PackageKind::Function { &["v1", "v1beta1"] } else { &["v1"] };
    names.iter().map(|name| version(name)).collect()
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
fn common_spec(kind: PackageKind) -> Value {
    let off = |description: &str| with(flag(description), json!({"default": false}));
    let mut fields = json!({
        "packagePullPolicy": with(text("When to pull the image."), json!({"default": "IfNotPresent"})),
        "packagePullSecrets": list("Secrets to pull the image with.", secret_reference("A Secret.")),
        "ignoreCrossplaneConstraints": off(
            "Whether to install the package even if it does not support this version of Crossplane.",
        ),
        "skipDependencyResolution": off("Whether to install the package without its dependencies."),
        "commonLabels": texts_by_name("Labels of the objects that are created for the package."),
        "commonAnnotations": texts_by_name("Annotations of the objects that are created for the package."),
    });
    if kind.has_runtime() {
        let reference = runtime_config_reference("How to run the package.");
        fields["runtimeConfigRef"] = with(reference, json!({"default": {"name": DEFAULT_RUNTIME_CONFIG}}));
    }
    fields
}

fn package_spec(kind: PackageKind) -> Value {
    let mut fields = common_spec(kind);
    let history = integer("How many inactive revisions to keep; 0 keeps all.");
    let policy = text("Whether new revisions are activated automatically: Automatic or Manual.");
    merge(
        &mut fields,
        json!({
            "package": ruled(text("The image of the package."), &[QUALIFIED]),
            "revisionActivationPolicy": with(policy, json!({"default": "Automatic"})),
            "revisionHistoryLimit": with(history, json!({"default": 1})),
        }),
    );
    if kind != PackageKind::Function {
        let active =
            integer("How many revisions are active at the same time: only Functions can have more than 1.");
        fields["activeRevisionLimit"] = with(active, json!({"minimum": 1, "maximum": 1}));
        return object("What to install.", &["package"], fields);
    }
    let active = integer(
        "How many revisions are active at the same time: those with the highest numbers. Ignored with the activation \
         policy Manual. 1 by default.",
    );
    fields["activeRevisionLimit"] = with(active, json!({"minimum": 1}));
    ruled(object("What to install.", &["package"], fields), &[LIMITED])
}

fn revision_spec(kind: PackageKind) -> Value {
    let mut fields = common_spec(kind);
    merge(
        &mut fields,
        json!({
            "image": text("The image of the package."),
            "desiredState": text("Active or Inactive."),
            "revision": integer("The number of the revision; the latest has the highest."),
        }),
    );
    if kind.has_runtime() {
        merge(&mut fields, secret_names());
    }
    object("What to install.", &["desiredState", "image", "revision"], fields)
}

/// The Secrets with the certificates of a runtime.
fn secret_names() -> Value {
    json!({
        "tlsClientSecretName": text("Secret with the client's certificate."),
        "tlsServerSecretName": text("Secret with the server's certificate."),
    })
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

fn package_status() -> Value {
    let mut fields = common_status();
    merge(
        &mut fields,
        json!({
            "currentIdentifier": text("spec.package when the current revision was resolved."),
            "currentRevision": text("The newest revision, active or not."),
            "resolvedPackage": text("The package reference after ImageConfigs rewrote it."),
        }),
    );
    object("What was observed.", &[], fields)
}

fn revision_status(kind: PackageKind) -> Value {
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
            "capabilities": texts("The capabilities that the package declares."),
            "foundDependencies": integer("How many dependencies the package has."),
            "installedDependencies": integer("How many dependencies are installed."),
            "invalidDependencies": integer("How many dependencies are installed in a version that does not satisfy the constraint."),
            "objectRefs": list("The objects that the package installed.", reference),
            "resolvedImage": text("The image reference after ImageConfigs rewrote it."),
        }),
    );
    if kind.has_runtime() {
        merge(&mut fields, secret_names());
    }
    if kind == PackageKind::Function {
        fields["endpoint"] = text("The address at which the function is called.");
    }
    object("What was observed.", &[], fields)
}
