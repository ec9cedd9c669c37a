//! The CRD of DeploymentRuntimeConfigs: what is changed of the Deployment, Service and ServiceAccount of a package.

use super::age_column;
use super::schema::{Crd, Version, anything, object, text, texts_by_name};
use crate::constants::{group, kind};
use serde_json::{Value, json};

pub(super) fn deployment_runtime_config() -> Value {
    let version = Version {
        name: "v1beta1",
        columns: vec![age_column()],
        description: "A DeploymentRuntimeConfig overrides fields of the Deployment, Service and ServiceAccount that run a \
                      package.",
        properties: json!({"spec": spec()}),
        required: &[],
        status: false,
        deprecated: None,
    };
    Crd {
        group: group::PKG,
        kind: kind::DEPLOYMENT_RUNTIME_CONFIG,
        plural: "deploymentruntimeconfigs",
        short_names: &[],
        categories: &["crossplane"],
        namespaced: false,
        versions: vec![version],
    }
    .build()
}

fn spec() -> Value {
    // Crossplane embeds the schema of a whole pod here: nine in ten lines of all its CRDs. Mistakes in it are
    // reported when the Deployment is applied.
    let deployment = json!({
        "metadata": metadata(),
        "spec": anything("What to change in the spec of the Deployment."),
    });
    let only_metadata = |description: &str| object(description, &[], json!({"metadata": metadata()}));
    object(
        "How to run packages.",
        &[],
        json!({
            "deploymentTemplate": object("What to change in the Deployment.", &[], deployment),
            "serviceTemplate": only_metadata("What to change in the Service."),
            "serviceAccountTemplate": only_metadata("What to change in the ServiceAccount."),
        }),
    )
}

fn metadata() -> Value {
    object(
        "Metadata of the object.",
        &[],
        json!({
            "name": text("Name of the object."),
            "labels": texts_by_name("Labels to add."),
            "annotations": texts_by_name("Annotations to add."),
        }),
    )
}
