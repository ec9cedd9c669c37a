//! ImageConfigs: how the images of packages are pulled, verified, rewritten and run.

#![expect(missing_docs, reason = "names and fields are Crossplane's, which its CRDs describe")]

use crate::composition::{NameReference, nullable, omit};
use crate::metadata::Metadata;
use crate::package::RuntimeConfigReference;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ImageConfig {
    pub metadata: Metadata,
    pub spec: ImageConfigSpec,
}

/// Each of the optional fields is a purpose of its own, for which an image may have another ImageConfig.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageConfigSpec {
    #[serde(deserialize_with = "nullable")]
    pub match_images: Vec<ImageMatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<RegistryConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<ImageVerification>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite_image: Option<ImageRewrite>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<ImageRuntime>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ImageMatch {
    /// `Prefix`, the only type there is.
    #[serde(rename = "type", skip_serializing_if = "omit::text")]
    pub match_type: String,
    pub prefix: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RegistryConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<RegistryAuthentication>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryAuthentication {
    pub pull_secret_ref: NameReference,
}

/// The part of an image that matched is replaced by this prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ImageRewrite {
    pub prefix: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageRuntime {
    /// Replaces the reference of the package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_ref: Option<RuntimeConfigReference>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ImageVerification {
    /// `Cosign`, the only provider there is.
    pub provider: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosign: Option<CosignVerification>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct CosignVerification {
    /// Tried in order: the first that succeeds decides.
    #[serde(deserialize_with = "nullable")]
    pub authorities: Vec<CosignAuthority>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct CosignAuthority {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<CosignKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyless: Option<CosignKeyless>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "omit::list")]
    pub attestations: Vec<Attestation>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CosignKey {
    pub secret_ref: SecretKeyReference,
    pub hash_algorithm: String,
}

/// A key of a Secret in the namespace of the control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct SecretKeyReference {
    pub name: String,
    pub key: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct CosignKeyless {
    #[serde(deserialize_with = "nullable")]
    pub identities: Vec<CosignIdentity>,
    #[serde(rename = "insecureIgnoreSCT", skip_serializing_if = "Option::is_none")]
    pub insecure_ignore_sct: Option<bool>,
}

/// A signer. A regular expression takes precedence over the exact text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CosignIdentity {
    #[serde(skip_serializing_if = "omit::text")]
    pub issuer: String,
    #[serde(skip_serializing_if = "omit::text")]
    pub subject: String,
    #[serde(skip_serializing_if = "omit::text")]
    pub issuer_reg_exp: String,
    #[serde(skip_serializing_if = "omit::text")]
    pub subject_reg_exp: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Attestation {
    pub name: String,
    pub predicate_type: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_is_read_and_written() {
        let spec = json!({
            "matchImages": [{"type": "Prefix", "prefix": "r.io/"}],
            "registry": {"authentication": {"pullSecretRef": {"name": "s"}}},
            "verification": {"provider": "Cosign", "cosign": {"authorities": [{
                "name": "a",
                "key": {"secretRef": {"name": "s", "key": "k"}, "hashAlgorithm": "sha256"},
                "keyless": {
                    "identities": [{"issuer": "i", "subject": "s", "issuerRegExp": "i.*", "subjectRegExp": "s.*"}],
                    "insecureIgnoreSCT": true,
                },
                "attestations": [{"name": "t", "predicateType": "spdx"}],
            }]}},
            "rewriteImage": {"prefix": "mirror.io/"},
            "runtime": {"configRef": {"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig", "name": "r"}},
        });
        let config: ImageConfig = serde_json::from_value(json!({"spec": spec})).unwrap();
        assert_eq!(json!(config.spec), spec);
    }
}
