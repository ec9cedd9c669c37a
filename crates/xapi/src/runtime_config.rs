//! DeploymentRuntimeConfigs, which override fields of the Deployment, Service and ServiceAccount that run a package.

#![expect(missing_docs, reason = "names and fields are Crossplane's, which its CRDs describe")]

use crate::composition::{nullable, omit};
use crate::metadata::Metadata;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DeploymentRuntimeConfig {
    pub metadata: Metadata,
    pub spec: DeploymentRuntimeConfigSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentRuntimeConfigSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_template: Option<DeploymentTemplate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_template: Option<ObjectTemplate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_template: Option<ObjectTemplate>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct DeploymentTemplate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The spec of a Deployment, unchecked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ObjectTemplate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TemplateMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::map")]
    pub annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::map")]
    pub labels: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_is_read_and_written() {
        let metadata = json!({"name": "n", "labels": {"a": "b"}, "annotations": {"c": "d"}});
        let spec = json!({
            "deploymentTemplate": {"metadata": metadata, "spec": {"replicas": 2, "selector": {}, "template": {}}},
            "serviceTemplate": {"metadata": metadata},
            "serviceAccountTemplate": {"metadata": metadata},
        });
        let config: DeploymentRuntimeConfig = serde_json::from_value(json!({"spec": spec})).unwrap();
        assert_eq!(json!(config.spec), spec);
    }
}
