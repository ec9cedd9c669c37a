//! `transom xpkg verify`: whether a package is signed as an ImageConfig would want it.

use super::origin::{self, Origin};
use crate::plane::{public_trust_root, read_trust_root};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use transom_console::{Failure, Format};
use transom_oci::signature::evidence;
use transom_packages::trust::{Authority, Policy, decide};

/// The flags of which one is needed where no key is given.
const IDENTITY_FLAGS: [&str; 3] = ["trusted_root", "certificate_identity", "certificate_identity_regexp"];

/// Verify who signed a package: a key, or an identity by keyless signatures
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xpkg verify registry.example.org/acme/platform:v1.0.0 --key cosign.pub
  transom xpkg verify registry.example.org/acme/platform:v1.0.0 --trusted-root trusted_root.json --certificate-identity dev@example.org --certificate-oidc-issuer https://accounts.google.com")]
pub(crate) struct Verify {
    /// The package: a reference with a tag or digest
    #[arg(value_name = "REF")]
    package: String,

    /// The public key that must have signed it, in PEM
    #[arg(long, value_name = "FILE", conflicts_with = "trusted_root", required_unless_present_any = IDENTITY_FLAGS)]
    key: Option<PathBuf>,

    /// The hash that the key signs with: sha224, sha256, sha384 or sha512
    #[arg(long, value_name = "HASH", default_value = "sha256")]
    signature_digest_algorithm: String,

    /// The trust root of keyless signatures, in the format of Sigstore's trusted_root.json; by default that of the public
    /// Sigstore, if `cosign initialize` has put it into the home directory
    #[arg(long, value_name = "FILE")]
    trusted_root: Option<PathBuf>,

    /// Whom the certificate must have been issued to
    #[arg(long, value_name = "NAME")]
    certificate_identity: Option<String>,

    /// The same as a regular expression
    #[arg(long, value_name = "REGEXP")]
    certificate_identity_regexp: Option<String>,

    /// Who must have confirmed that identity
    #[arg(long, value_name = "URL")]
    certificate_oidc_issuer: Option<String>,

    /// The same as a regular expression
    #[arg(long, value_name = "REGEXP")]
    certificate_oidc_issuer_regexp: Option<String>,

    /// Accept certificates that are in no certificate log
    #[arg(long)]
    insecure_ignore_sct: bool,

    /// Verify an attestation of this type instead of a signature, such as slsaprovenance1 or a URI
    #[arg(long = "type", value_name = "TYPE")]
    predicate_type: Option<String>,

    /// How the result is printed: the reference with the digest, or both apart
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    output: Format,

    #[command(flatten)]
    origin: Origin,
}

pub(crate) async fn run(options: Verify) -> Result<ExitCode, Failure> {
    let reference = origin::reference(&options.package)?;
    let policy = Policy { image_config: String::new(), authorities: vec![options.authority()?] };
    let root = match &options.trusted_root {
        None if options.key.is_some() => None,
        None => public_trust_root().map(|path| read_trust_root(&path)).transpose()?.flatten(),
        Some(path) => Some(read_trust_root(path)?.ok_or_else(|| {
            Failure::new(format!("there is no file {}, which --trusted-root names", path.display()))
        })?),
    };
    let opened = options.origin.open().await?;
    let with = opened.credentials(&reference).await?;
    let digest = opened.registry().resolve(&reference, &with).await.map_err(|e| opened.explain(&e))?;
    let root = root.as_ref().ok_or("give one with --trusted-root FILE, or run `cosign initialize`");
    let image = reference.at(digest.clone());
    let found = evidence(opened.images(), root, &image, &policy.authorities, &with).await;
    decide(&policy, &found, &digest).map_err(|untrusted| {
        Failure::new(format!("{reference} at {digest} is not verified: {}", untrusted.reasons.join("; ")))
    })?;
    let result = json!({"package": reference.to_string(), "digest": digest.as_str(), "verified": true});
    let text = |_: &_| format!("{}@{digest}\n", reference.source());
    transom_console::print(options.output.write(&result, text).as_bytes())
}

impl Verify {
    /// The flags as an authority of an ImageConfig.
    fn authority(&self) -> Result<Authority, Failure> {
        let mut config = json!({"name": "command line"});
        if let Some(predicate_type) = &self.predicate_type {
            config["attestations"] = json!([{"name": predicate_type, "predicateType": predicate_type}]);
        }
        let key = match &self.key {
            Some(path) => {
                let algorithm = &self.signature_digest_algorithm;
                let named = path.display().to_string();
                config["key"] =
                    json!({"secretRef": {"name": named, "key": "PEM"}, "hashAlgorithm": algorithm});
                let read = std::fs::read(path);
                Some(Ok(read.map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())))?))
            }
            None => {
                let identity = json!({
                    "issuer": self.certificate_oidc_issuer.as_deref().unwrap_or_default(),
                    "issuerRegExp": self.certificate_oidc_issuer_regexp.as_deref().unwrap_or_default(),
                    "subject": self.certificate_identity.as_deref().unwrap_or_default(),
                    "subjectRegExp": self.certificate_identity_regexp.as_deref().unwrap_or_default(),
                });
                let ignore = self.insecure_ignore_sct;
                config["keyless"] = json!({"identities": [identity], "insecureIgnoreSCT": ignore});
                None
            }
        };
        let config = serde_json::from_value(config);
        let config = config.map_err(|e| Failure::new(format!("cannot read the flags: {e}")))?;
        Ok(Authority { config, key })
    }
}
