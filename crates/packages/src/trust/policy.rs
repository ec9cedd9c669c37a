//! The policy that an image is verified by, as a value that can be compared: a verification need not be repeated while its
//! policy, the keys and the trust root are the same.

use super::Evidence;
use crate::digest::Digest;
use crate::image_config::ImagePlan;
use crate::reference::Reference;
use crate::registry::Credentials;
use async_trait::async_trait;
use serde_json::json;
use std::collections::BTreeSet;
use transom_xapi::constants::image_config as reason;
use transom_xapi::image_config::CosignAuthority;

/// Verifies signatures. Implemented where registries and cryptography are, and by tests.
#[async_trait]
pub trait SignatureVerifier: Send + Sync + 'static {
    /// What identifies the trust root of keyless authorities: another one means that images are verified again. Empty
    /// without a trust root.
    fn trust_root(&self) -> &str;

    /// What is signed of the image at a reference with a digest: an entry for each authority, in the same order.
    async fn evidence(
        &self,
        image: &Reference,
        authorities: &[Authority],
        with: &[Credentials],
    ) -> Vec<Evidence>;
}

/// An authority with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// As it is configured.
    pub config: CosignAuthority,
    /// Nothing for an authority without a key.
    pub key: Option<ReadKey>,
}

/// Why a public key cannot be read: which Secret or file lacks it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyMissing(pub String);

/// A public key in PEM, or why it cannot be read.
pub type ReadKey = Result<Vec<u8>, KeyMissing>;

/// The authorities of an ImageConfig; an image is trusted if one of them accepts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The name of the ImageConfig.
    pub image_config: String,
    /// Tried in order.
    pub authorities: Vec<Authority>,
}

impl Policy {
    /// The policy that a plan asks for. `read` returns what a Secret has at one of its keys.
    pub fn of(plan: &ImagePlan, read: &dyn Fn(&str, &str) -> ReadKey) -> Option<Self> {
        let authorities = plan.verification.as_ref()?;
        let applied = plan.applied.iter().find(|applied| applied.reason == reason::VERIFY);
        let authority = |config: &CosignAuthority| Authority {
            key: config.key.as_ref().map(|key| read(&key.secret_ref.name, &key.secret_ref.key)),
            config: config.clone(),
        };
        Some(Self {
            image_config: applied.map(|applied| applied.name.clone()).unwrap_or_default(),
            authorities: authorities.iter().map(authority).collect(),
        })
    }

    /// The same for an image, a policy with its keys, and a trust root that are the same, and different otherwise.
    pub fn fingerprint(&self, image: &Digest, trust_root: &str) -> Digest {
        let authority = |authority: &Authority| {
            let key = authority.key.as_ref().map(|key| match key {
                Ok(pem) => Digest::of(pem).as_str().to_owned(),
                Err(problem) => problem.to_string(),
            });
            json!({"config": authority.config, "key": key})
        };
        let all = json!({
            "image": image.as_str(),
            "imageConfig": self.image_config,
            "authorities": self.authorities.iter().map(authority).collect::<Vec<_>>(),
            "trustRoot": trust_root,
        });
        Digest::of(all.to_string().as_bytes())
    }

    /// The record of a verification: the ImageConfig, the authority that accepted the image, and the fingerprint.
    pub fn record(&self, authority: &str, fingerprint: &Digest) -> String {
        format!("{}/{authority} {fingerprint}", self.image_config)
    }
}

/// Whether a record is of the verification with this fingerprint.
pub fn is_record_of(record: &str, fingerprint: &Digest) -> bool {
    record.rsplit_once(' ').is_some_and(|(_, of)| of == fingerprint.as_str())
}

/// The names of the Secrets with the keys that a plan asks for.
pub fn key_secrets(plan: &ImagePlan) -> BTreeSet<&str> {
    let authorities = plan.verification.iter().flatten();
    authorities.filter_map(|authority| Some(authority.key.as_ref()?.secret_ref.name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(key: ReadKey) -> Policy {
        let config: CosignAuthority = serde_json::from_value(
            json!({"name": "a", "key": {"secretRef": {"name": "s", "key": "k"}, "hashAlgorithm": "sha256"}}),
        )
        .unwrap();
        Policy { image_config: "signed".to_owned(), authorities: vec![Authority { config, key: Some(key) }] }
    }

    #[test]
    fn a_record_is_of_one_image_policy_key_and_trust_root() {
        let (image, root) = (Digest::of(b"image"), "sha256:root");
        let first = policy(Ok(b"key".to_vec()));
        let fingerprint = first.fingerprint(&image, root);
        let record = first.record("a", &fingerprint);
        assert!(record.starts_with("signed/a sha256:"), "{record}");
        assert!(is_record_of(&record, &policy(Ok(b"key".to_vec())).fingerprint(&image, root)));
        let mut renamed = first.clone();
        renamed.authorities[0].config.name = "b".to_owned();
        let mut by_another_config = first.clone();
        by_another_config.image_config = "other".to_owned();
        for other in [
            policy(Ok(b"another".to_vec())).fingerprint(&image, root),
            policy(Err(KeyMissing("missing".to_owned()))).fingerprint(&image, root),
            renamed.fingerprint(&image, root),
            by_another_config.fingerprint(&image, root),
            first.fingerprint(&Digest::of(b"other"), root),
            first.fingerprint(&image, ""),
        ] {
            assert!(!is_record_of(&record, &other));
        }
        assert!(!is_record_of("", &fingerprint) && !is_record_of(fingerprint.as_str(), &fingerprint));
    }
}
