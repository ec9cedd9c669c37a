//! The CRDs of Crossplane's fixed kinds.
//!
//! Fields, types, defaults, rules, columns and names are Crossplane's, so that its objects and habits carry over;
//! descriptions are ours. Fields that Crossplane designed but never shipped are added where the types have them.

mod composition;
mod definition;
mod image_config;
mod inline;
mod lock;
mod managed;
mod package;
mod runtime_config;
pub mod schema;
mod usage;

use crate::package::PackageKind;
use schema::{Crd, Version, column, object};
use serde_json::{Value, json};

/// All CRDs, in the order in which to install them.
pub fn crds() -> impl Iterator<Item = Value> {
    [
        definition::definition(),
        composition::composition(),
        composition::revision(),
        environment_config(),
        managed::definition(),
        managed::activation_policy(),
        package::package(PackageKind::Provider),
        package::revision(PackageKind::Provider),
        package::package(PackageKind::Configuration),
        package::revision(PackageKind::Configuration),
        package::package(PackageKind::Function),
        package::revision(PackageKind::Function),
        lock::lock(),
        image_config::image_config(),
        runtime_config::deployment_runtime_config(),
        usage::usage(),
        usage::cluster_usage(),
        usage::legacy_usage(),
    ]
    .into_iter()
}

fn environment_config() -> Value {
    let data = json!({
        "type": "object",
        "description": "The data that functions and Compositions read.",
        "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true},
    });
    // Both versions have the same schema, so nothing needs converting.
    let version = |name, deprecated| Version {
        name,
        columns: vec![age_column()],
        description: "An EnvironmentConfig holds data that several Compositions share.",
        properties: json!({"data": data}),
        required: &[],
        status: false,
        deprecated,
    };
    let deprecated = "EnvironmentConfig v1alpha1 is deprecated; use v1beta1, which has the same schema";
    Crd {
        group: crate::constants::group::APIEXTENSIONS,
        kind: "EnvironmentConfig",
        plural: "environmentconfigs",
        short_names: &["envcfg"],
        categories: &["crossplane"],
        namespaced: false,
        versions: vec![version("v1beta1", None), version("v1alpha1", Some(deprecated))],
    }
    .build()
}

/// `status` of a kind that has nothing but conditions there.
fn conditioned_status() -> Value {
    object("What was observed.", &[], json!({"conditions": schema::conditions()}))
}

/// The column with the age of objects.
pub fn age_column() -> Value {
    column("AGE", "date", ".metadata.creationTimestamp")
}

#[cfg(test)]
mod fields_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_kinds_are_unique_and_one_version_is_stored() {
        let all: Vec<Value> = crds().collect();
        let unique = |part: fn(&Value) -> String| all.iter().map(part).collect::<BTreeSet<_>>().len();
        assert_eq!(unique(|crd| crd["metadata"]["name"].to_string()), all.len());
        assert_eq!(
            unique(|crd| format!("{}/{}", crd["spec"]["group"], crd["spec"]["names"]["kind"])),
            all.len()
        );
        for crd in &all {
            let spec = &crd["spec"];
            let name =
                format!("{}.{}", spec["names"]["plural"].as_str().unwrap(), spec["group"].as_str().unwrap());
            assert_eq!(crd["metadata"]["name"], name);
            let versions = spec["versions"].as_array().unwrap();
            assert_eq!(versions.iter().filter(|v| v["storage"] == true).count(), 1, "{name}");
            assert!(versions.iter().all(|v| v["served"] == true), "{name}");
        }
    }
}
