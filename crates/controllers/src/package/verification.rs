//! Whether an image is what an ImageConfig wants it to be signed as. Images are verified by digest before their content is
//! fetched, in the cache or not. What was verified is recorded at the revision: while the policy, its keys and the trust
//! root are the same, no request is sent to a registry.

use super::Shared;
use super::source::{Run, failed, within};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use transom_engine::{Error, ErrorContext, Result};
use transom_object::meta;
use transom_packages::Digest;
use transom_packages::image_config::ImagePlan;
use transom_packages::names::revision_name;
use transom_packages::trust::{self, Evidence, KeyMissing, Policy, is_record_of};
use transom_xapi::composition::NameReference;
use transom_xapi::constants::annotation;
use transom_xapi::{PackageRevision, connection};

use crate::catalog::kinds;

/// How long the registry may take to send signatures.
const VERIFY_WITHIN: Duration = Duration::from_secs(120);
/// How many verifications are remembered.
const REMEMBERED_MAX: usize = 1000;

/// The latest verifications of this process by their fingerprints: a package and its revision need the same one.
#[derive(Default)]
pub(super) struct Verifications(Mutex<VecDeque<(Digest, String)>>);

impl Verifications {
    fn get(&self, fingerprint: &Digest) -> Option<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(of, _)| of == fingerprint).map(|(_, record)| record.clone())
    }

    fn add(&self, fingerprint: Digest, record: String) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.pop_front();
        }
        known.push_back((fingerprint, record));
    }
}

impl Shared {
    /// Makes sure that an image may be used: what an ImageConfig requires to be verified is verified, unless `recorded` says that it
    /// was. Returns what to record at the revision; nothing for an image that need not be verified.
    pub(super) async fn verify(
        &self,
        run: Run<'_>,
        plan: &ImagePlan,
        image: &Digest,
        recorded: Option<&str>,
        secrets: &[NameReference],
    ) -> Result<Option<String>> {
        let Some(policy) = self.policy(run, plan).await? else { return Ok(None) };
        let fingerprint = policy.fingerprint(image, self.verifier.trust_root());
        if let Some(recorded) = recorded.filter(|recorded| is_record_of(recorded, &fingerprint)) {
            return Ok(Some(recorded.to_owned()));
        }
        if let Some(record) = self.verifications.get(&fingerprint) {
            return Ok(Some(record));
        }
        let with = self.credentials(run, plan.pull_secret.as_deref(), secrets).await?;
        let pinned = plan.resolved.at(image.clone());
        let asked = async { Ok(self.verifier.evidence(&pinned, &policy.authorities, &with).await) };
        let evidence = within(VERIFY_WITHIN, &pinned, asked).await?;
        let asked = evidence.iter().filter_map(Evidence::retry_after).max();
        let decided = trust::decide(&policy, &evidence, image);
        let authority =
            decided.map_err(|untrusted| failed(format!("{}: {untrusted}", plan.resolved), asked))?;
        let record = policy.record(authority, &fingerprint);
        self.verifications.add(fingerprint, record.clone());
        Ok(Some(record))
    }

    /// The digest of the image of a revision, which is verified if it must be.
    pub(super) async fn verified_digest(
        &self,
        run: Run<'_>,
        object: &Value,
        revision: &PackageRevision,
        plan: &ImagePlan,
    ) -> Result<Digest> {
        let secrets = &revision.spec.installation.package_pull_secrets;
        let digest = match meta::annotation(object, annotation::IMAGE_DIGEST) {
            Some(digest) => Digest::parse(digest).map_err(Error::permanent)?,
            // A revision that another program made: its name has the beginning of the digest.
            None => {
                let digest = self.resolve(run, plan, secrets).await?;
                let name = revision_name(revision.package(), &digest);
                if name != revision.metadata.name {
                    return Err(Error::domain(format!(
                        "{} is now at {digest}, which is the image of revision {name:?}; this revision has no annotation \
                         {} with the digest that it was made for",
                        plan.resolved,
                        annotation::IMAGE_DIGEST
                    )));
                }
                digest
            }
        };
        let recorded = meta::annotation(object, annotation::VERIFIED_BY);
        self.verify(run, plan, &digest, recorded, secrets).await?;
        Ok(digest)
    }

    /// The policy that an image is verified by, with the keys from their Secrets. A missing key makes only its own authority
    /// fail; another authority may still accept the image.
    async fn policy(&self, run: Run<'_>, plan: &ImagePlan) -> Result<Option<Policy>> {
        let mut data = BTreeMap::new();
        for name in trust::key_secrets(plan) {
            let read = self.read_followed(run, &kinds::secret(), name).await;
            let read = read.context(format!("cannot get Secret {name:?} with the key of an authority"))?;
            data.insert(name, read.map(|secret| connection::details(&secret)));
        }
        let namespace = &self.plane.options.namespace;
        let key = |name: &str, key: &str| match data.get(name) {
            Some(Some(found)) => match found.get(key).filter(|value| !value.is_empty()) {
                Some(value) => Ok(value.clone()),
                None => {
                    Err(KeyMissing(format!("Secret {name:?} in namespace {namespace:?} has no key {key:?}")))
                }
            },
            _ => Err(KeyMissing(format!(
                "there is no Secret {name:?} in namespace {namespace:?} with its public key"
            ))),
        };
        Ok(Policy::of(plan, &key))
    }
}
