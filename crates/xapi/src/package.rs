//! Packages and their revisions: Providers, Configurations and Functions in one set of types.
//!
//! The three kinds have the same fields. Those of packages with a runtime are empty in Configurations, `endpoint` in all
//! but Functions; their CRDs prune what is not theirs.

#![expect(missing_docs, reason = "names and fields are Crossplane's, which its CRDs describe")]

mod kind;

pub use kind::PackageKind;

use crate::composition::{NameReference, nullable, omit};
use crate::conditions::Condition;
use crate::constants::{kind as kinds, label};
use crate::metadata::Metadata;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `desiredState` of a revision that is installed.
pub const ACTIVE: &str = "Active";
/// `desiredState` of a revision that is kept, but not installed.
pub const INACTIVE: &str = "Inactive";
/// The runtime config of packages that name none.
pub const DEFAULT_RUNTIME_CONFIG: &str = "default";

/// An installed package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Package {
    pub metadata: Metadata,
    pub spec: PackageSpec,
    pub status: PackageStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PackageSpec {
    /// The image, with registry, and with tag or digest.
    pub package: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_activation_policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i64>,
    /// How many revisions may run at a time: 1 by default. Only Functions have this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_revision_limit: Option<i64>,
    #[serde(flatten)]
    pub installation: Installation,
}

/// How a package is installed: what a package passes on to its revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Installation {
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub package_pull_secrets: Vec<NameReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_pull_policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_crossplane_constraints: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_dependency_resolution: Option<bool>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::map")]
    pub common_labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::map")]
    pub common_annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_config_ref: Option<RuntimeConfigReference>,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PullPolicy {
    /// If it is not here. A reference by tag stands for what it was when it was last pulled.
    #[default]
    IfNotPresent,
    /// Whenever the registry has another one.
    Always,
    /// Never: it must be here.
    Never,
}

/// A text that is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of IfNotPresent, Always, Never")]
pub struct PullPolicyError(pub String);

impl PullPolicy {
    /// Reads a policy as Kubernetes writes it.
    pub fn parse(text: &str) -> Result<Self, PullPolicyError> {
        match text {
            "IfNotPresent" | "" => Ok(Self::IfNotPresent),
            "Always" => Ok(Self::Always),
            "Never" => Ok(Self::Never),
            other => Err(PullPolicyError(other.to_owned())),
        }
    }
}

impl Installation {
    /// The schema allows any text. Any other text means the default, as in Crossplane.
    pub fn pull_policy(&self) -> PullPolicy {
        PullPolicy::parse(self.package_pull_policy.as_deref().unwrap_or_default()).unwrap_or_default()
    }

    /// Whether the package is installed even if it does not support this version of Crossplane.
    pub fn ignores_crossplane_constraints(&self) -> bool {
        self.ignore_crossplane_constraints == Some(true)
    }

    /// Whether dependencies are resolved. Only where the field says so: a stored object has it by default.
    pub fn resolves_dependencies(&self) -> bool {
        self.skip_dependency_resolution == Some(false)
    }
}

/// The object that says how a package runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeConfigReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
}

impl Default for RuntimeConfigReference {
    fn default() -> Self {
        Self {
            api_version: kinds::PKG_V1BETA1.to_owned(),
            kind: kinds::DEPLOYMENT_RUNTIME_CONFIG.to_owned(),
            name: DEFAULT_RUNTIME_CONFIG.to_owned(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PackageStatus {
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "omit::text")]
    pub current_revision: String,
    /// The `spec.package` that the current revision was made from.
    #[serde(skip_serializing_if = "omit::text")]
    pub current_identifier: String,
    /// The image after an ImageConfig rewrote its path.
    #[serde(skip_serializing_if = "omit::text")]
    pub resolved_package: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub applied_image_config_refs: Vec<AppliedImageConfig>,
}

/// An ImageConfig, and what it was used for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AppliedImageConfig {
    pub name: String,
    /// One of [`crate::constants::image_config`]; a status has at most one entry for each.
    pub reason: String,
}

impl Package {
    /// Whether a new revision becomes active by itself.
    pub fn activates_automatically(&self) -> bool {
        self.spec.revision_activation_policy.as_deref().is_none_or(|policy| policy == "Automatic")
    }
}

/// One image of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PackageRevision {
    pub metadata: Metadata,
    pub spec: PackageRevisionSpec,
    pub status: PackageRevisionStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PackageRevisionSpec {
    /// [`ACTIVE`] or [`INACTIVE`].
    pub desired_state: String,
    /// The `spec.package` of the package, before any ImageConfig rewrites it.
    pub image: String,
    /// The newest revision has the highest number.
    pub revision: i64,
    #[serde(flatten)]
    pub installation: Installation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_server_secret_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_client_secret_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PackageRevisionStatus {
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub conditions: Vec<Condition>,
    /// The objects of the package that were installed.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub object_refs: Vec<ObjectReference>,
    #[serde(skip_serializing_if = "omit::zero")]
    pub found_dependencies: i64,
    #[serde(skip_serializing_if = "omit::zero")]
    pub installed_dependencies: i64,
    #[serde(skip_serializing_if = "omit::zero")]
    pub invalid_dependencies: i64,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub applied_image_config_refs: Vec<AppliedImageConfig>,
    /// The image after an ImageConfig rewrote its path.
    #[serde(skip_serializing_if = "omit::text")]
    pub resolved_image: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub capabilities: Vec<String>,
    /// Where a function is called.
    #[serde(skip_serializing_if = "omit::text")]
    pub endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_server_secret_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_client_secret_name: Option<String>,
}

/// An object that a revision installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    #[serde(skip_serializing_if = "omit::text")]
    pub uid: String,
}

impl PackageRevision {
    pub fn is_active(&self) -> bool {
        self.spec.desired_state == ACTIVE
    }

    /// The package it is a revision of.
    pub fn package(&self) -> &str {
        self.metadata.label(label::PACKAGE).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn every_field_of_a_package_and_a_revision_is_read_and_written() {
        let installation = json!({
            "packagePullSecrets": [{"name": "s"}], "packagePullPolicy": "Always", "ignoreCrossplaneConstraints": true,
            "skipDependencyResolution": false, "commonLabels": {"a": "b"}, "commonAnnotations": {"c": "d"},
            "runtimeConfigRef": {"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig", "name": "r"},
        });
        let with = |mut object: Value| -> Value {
            object.as_object_mut().unwrap().extend(installation.as_object().unwrap().clone());
            object
        };
        let spec =
            with(json!({"package": "p", "revisionActivationPolicy": "Manual", "revisionHistoryLimit": 0}));
        let package: Package = serde_json::from_value(json!({"spec": spec})).unwrap();
        assert_eq!(json!(package.spec), spec);
        assert!(!package.activates_automatically() && package.spec.installation.resolves_dependencies());
        assert_eq!(package.spec.installation.pull_policy(), PullPolicy::Always);
        let image_configs = json!([{"name": "i", "reason": "RewriteImage"}]);
        let status = json!({
            "currentRevision": "p-1", "currentIdentifier": "p", "resolvedPackage": "q",
            "appliedImageConfigRefs": image_configs,
        });
        assert_eq!(json!(serde_json::from_value::<PackageStatus>(status.clone()).unwrap()), status);

        let spec = with(json!({
            "desiredState": "Active", "image": "p", "revision": 3, "tlsServerSecretName": "t", "tlsClientSecretName": "u",
        }));
        let revision: PackageRevision = serde_json::from_value(json!({"spec": spec})).unwrap();
        assert!(revision.is_active());
        assert_eq!(json!(revision.spec), spec);
        assert_eq!(revision.spec.installation, package.spec.installation);
        let status = json!({
            "objectRefs": [{"apiVersion": "a/v1", "kind": "K", "name": "n", "uid": "u"}], "foundDependencies": 3,
            "installedDependencies": 2, "invalidDependencies": 1, "appliedImageConfigRefs": image_configs,
            "resolvedImage": "q", "capabilities": ["composition"], "endpoint": "e:9443", "tlsServerSecretName": "t",
            "tlsClientSecretName": "u",
        });
        assert_eq!(json!(serde_json::from_value::<PackageRevisionStatus>(status.clone()).unwrap()), status);
    }

    #[test]
    fn an_empty_package_has_crossplanes_zero_values() {
        let package: Package = serde_json::from_value(json!({
            "spec": {"package": "p", "packagePullSecrets": null, "commonLabels": null, "runtimeConfigRef": {"name": "r"}},
        }))
        .unwrap();
        assert!(package.activates_automatically());
        let installation = &package.spec.installation;
        assert_eq!(installation.pull_policy(), PullPolicy::IfNotPresent);
        assert!(!installation.resolves_dependencies() && !installation.ignores_crossplane_constraints());
        let runtime = installation.runtime_config_ref.as_ref().unwrap();
        assert_eq!((runtime.kind.as_str(), runtime.name.as_str()), ("DeploymentRuntimeConfig", "r"));
        assert_eq!(json!(PackageRevisionStatus::default()), json!({}));
        assert_eq!(
            json!(PackageRevisionSpec::default()),
            json!({"desiredState": "", "image": "", "revision": 0}),
            "required fields are always written"
        );
    }
}
