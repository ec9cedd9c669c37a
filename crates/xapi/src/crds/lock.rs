//! The CRD of the Lock: the installed packages and their dependencies.

use super::schema::{Crd, Version, choice, list, object, text};
use super::{age_column, conditioned_status};
use crate::constants::{group, kind};
use crate::package::PackageKind;
use serde_json::{Value, json};

pub(super) fn lock() -> Value {
    let version = Version {
        name: "v1beta1",
        columns: vec![age_column()],
        description: "The Lock lists the packages that are installed and what they depend on. The control plane writes \
                      it: do not edit it.",
        properties: json!({
            "packages": list("The packages that are installed.", package()),
            "status": conditioned_status(),
        }),
        required: &[],
        status: true,
        deprecated: None,
    };
    Crd {
        group: group::PKG,
        kind: kind::LOCK,
        plural: "locks",
        short_names: &[],
        categories: &[],
        namespaced: false,
        versions: vec![version],
    }
    .build()
}

fn package() -> Value {
    object(
        "A package that is installed.",
        &["dependencies", "name", "source", "version"],
        json!({
            "name": text("Name of the package revision."),
            "apiVersion": text("Group and version of the package."),
            "kind": text("Kind of the package."),
            "type": package_type(),
            "source": text("The image without tag and digest."),
            "version": text("Tag or digest of the image."),
            "dependencies": list("The dependencies of the package, in the order in which they are installed.", dependency()),
        }),
    )
}

fn dependency() -> Value {
    object(
        "A package that another one depends on.",
        &["constraints", "package"],
        json!({
            "package": text("The image without tag and digest."),
            "apiVersion": text("Group and version of the package."),
            "kind": text("Kind of the package."),
            "type": package_type(),
            "constraints": text("The versions that are accepted: a range of semantic versions, or a digest."),
        }),
    )
}

fn package_type() -> Value {
    let kinds = [PackageKind::Configuration, PackageKind::Provider, PackageKind::Function];
    choice("Deprecated: use apiVersion and kind.", &kinds.map(PackageKind::kind))
}
