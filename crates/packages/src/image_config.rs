//! ImageConfigs: which of them apply to an image, and what follows for it.
//!
//! Each purpose (rewriting, pull secret, verification, runtime) is decided for itself: of the configs that have it, the one
//! with the longest matching prefix applies; of equally long ones the first in the list.

use crate::lock::graph::Mirrors;
use crate::reference::{Reference, ReferenceError};
use transom_xapi::ImageConfig;
use transom_xapi::constants::image_config as reason;
use transom_xapi::image_config::{CosignAuthority, ImageConfigSpec};
use transom_xapi::package::{AppliedImageConfig, RuntimeConfigReference};

/// What an ImageConfig is applied for.
#[derive(Clone, Copy)]
enum Purpose {
    /// It changed where the image is pulled from.
    Rewrite,
    /// It named a pull secret.
    PullSecret,
    /// It asked for verification.
    Verify,
    /// It chose a runtime config.
    Runtime,
}

impl Purpose {
    /// The word in the status.
    fn reason(self) -> &'static str {
        match self {
            Self::Rewrite => reason::REWRITE,
            Self::PullSecret => reason::SET_PULL_SECRET,
            Self::Verify => reason::VERIFY,
            Self::Runtime => reason::CONFIGURE_RUNTIME,
        }
    }

    /// Whether a config has this purpose.
    fn is_of(self, spec: &ImageConfigSpec) -> bool {
        match self {
            Self::Rewrite => spec.rewrite_image.is_some(),
            Self::PullSecret => pull_secret(spec).is_some(),
            Self::Verify => spec.verification.is_some(),
            Self::Runtime => spec.runtime.is_some(),
        }
    }
}

fn pull_secret(spec: &ImageConfigSpec) -> Option<&str> {
    let authentication = spec.registry.as_ref()?.authentication.as_ref()?;
    Some(authentication.pull_secret_ref.name.as_str()).filter(|name| !name.is_empty())
}

/// What ImageConfigs say about an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImagePlan {
    /// The reference as the user wrote it: what the Lock, revisions and their names have.
    pub original: Reference,
    /// Where it is pulled from.
    pub resolved: Reference,
    /// The configs that apply, at most one for each purpose.
    pub applied: Vec<AppliedImageConfig>,
    /// The Secret with credentials for its registry.
    pub pull_secret: Option<String>,
    /// The authorities of which one must have signed it. With an empty list verification fails.
    pub verification: Option<Vec<CosignAuthority>>,
    /// The runtime config that replaces the package's.
    pub runtime_config: Option<RuntimeConfigReference>,
}

impl ImagePlan {
    /// For an image that is not pulled: no ImageConfig says anything about it.
    pub fn as_written(original: Reference) -> Self {
        Self {
            resolved: original.clone(),
            original,
            applied: Vec::new(),
            pull_secret: None,
            verification: None,
            runtime_config: None,
        }
    }
}

/// An ImageConfig that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageConfigError {
    /// It rewrites to nothing.
    #[error("ImageConfig {name:?}: rewrite prefix is missing; set spec.rewriteImage.prefix")]
    NoRewritePrefix {
        /// Its name.
        name: String,
    },
    /// It rewrites an image to something that is not a valid reference.
    #[error("ImageConfig {name:?} rewrites {original} to an invalid reference")]
    InvalidRewrite {
        /// Its name.
        name: String,
        /// The original reference.
        original: String,
        /// What is wrong.
        source: ReferenceError,
    },
    /// It asks for a verification that there is not.
    #[error(
        "ImageConfig {name:?}: unsupported image verification provider {provider:?}, or cosign verification config is \
         missing; set spec.verification.provider to Cosign and spec.verification.cosign"
    )]
    NoCosign {
        /// Its name.
        name: String,
        /// The provider.
        provider: String,
    },
}

/// What the configs, in the order of their list, say about an image. The rewrite is decided by the original reference and
/// happens once; all else is decided by the result.
pub fn plan(configs: &[ImageConfig], original: &Reference) -> Result<ImagePlan, ImageConfigError> {
    let mut applied = Vec::new();
    let mut apply = |image: &str, purpose: Purpose| {
        let (config, _) = best(configs, image, purpose)?;
        let (name, reason) = (config.metadata.name.clone(), purpose.reason().to_owned());
        applied.push(AppliedImageConfig { name, reason });
        Some(config)
    };
    let text = original.to_string();
    let resolved = match apply(&text, Purpose::Rewrite) {
        Some(_) => rewritten(configs, original)?,
        None => original.clone(),
    };
    let image = resolved.to_string();
    let secret =
        apply(&image, Purpose::PullSecret).and_then(|config| pull_secret(&config.spec)).map(str::to_owned);
    let verification = apply(&image, Purpose::Verify).map(authorities).transpose()?;
    let runtime = apply(&image, Purpose::Runtime).and_then(|config| config.spec.runtime.clone());
    Ok(ImagePlan {
        original: original.clone(),
        resolved,
        pull_secret: secret,
        verification,
        runtime_config: runtime.and_then(|runtime| runtime.config_ref),
        applied,
    })
}

/// Where the sources of packages are pulled from, for those that are rewritten. Prefixes that end in a tag do not match.
pub fn mirrors<'s>(configs: &[ImageConfig], sources: impl IntoIterator<Item = &'s str>) -> Mirrors {
    let rewritten = sources.into_iter().filter_map(|source| {
        let (config, prefix) = best(configs, source, Purpose::Rewrite)?;
        let rewrite = &config.spec.rewrite_image.as_ref()?.prefix;
        Some((source.to_owned(), format!("{rewrite}{}", &source[prefix..])))
    });
    rewritten.filter(|(_, place)| Reference::parse_source(place).is_ok()).collect()
}

/// Whether a change of a config can change what is pulled for an image, or whether it may be used: it rewrites, has a pull
/// secret, asks for verification or chooses how it runs, and its prefix matches the original or resolved reference.
pub fn concerns(config: &ImageConfig, original: &str, resolved: Option<&str>) -> bool {
    let matches = |image: &str| config.spec.match_images.iter().any(|m| image.starts_with(&m.prefix));
    let purposes = [Purpose::Rewrite, Purpose::PullSecret, Purpose::Verify, Purpose::Runtime];
    let relevant = purposes.into_iter().any(|purpose| purpose.is_of(&config.spec));
    relevant && (matches(original) || resolved.is_some_and(matches))
}

/// The config with the longest matching prefix, and how long that is. An empty prefix matches nothing.
fn best<'c>(configs: &'c [ImageConfig], image: &str, purpose: Purpose) -> Option<(&'c ImageConfig, usize)> {
    let mut best = None;
    let mut longest = 0;
    for config in configs.iter().filter(|config| purpose.is_of(&config.spec)) {
        for m in &config.spec.match_images {
            if m.prefix.len() > longest && image.starts_with(&m.prefix) {
                longest = m.prefix.len();
                best = Some((config, longest));
            }
        }
    }
    best
}

fn rewritten(configs: &[ImageConfig], original: &Reference) -> Result<Reference, ImageConfigError> {
    let text = original.to_string();
    let Some((config, prefix)) = best(configs, &text, Purpose::Rewrite) else { return Ok(original.clone()) };
    let name = config.metadata.name.clone();
    let rewrite = config.spec.rewrite_image.as_ref().map_or("", |rewrite| rewrite.prefix.as_str());
    if rewrite.is_empty() {
        return Err(ImageConfigError::NoRewritePrefix { name });
    }
    let result = Reference::parse(&format!("{rewrite}{}", &text[prefix..]));
    result.map_err(|source| ImageConfigError::InvalidRewrite { name, original: text, source })
}

fn authorities(config: &ImageConfig) -> Result<Vec<CosignAuthority>, ImageConfigError> {
    let verification = config.spec.verification.clone().unwrap_or_default();
    match verification.cosign {
        Some(cosign) if verification.provider == "Cosign" => Ok(cosign.authorities),
        _ => {
            let (name, provider) = (config.metadata.name.clone(), verification.provider);
            Err(ImageConfigError::NoCosign { name, provider })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn config(name: &str, prefixes: &[&str], rest: Value) -> ImageConfig {
        let mut spec = rest;
        spec["matchImages"] =
            prefixes.iter().map(|prefix| json!({"type": "Prefix", "prefix": prefix})).collect();
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
    }

    fn secret(name: &str, prefixes: &[&str]) -> ImageConfig {
        let registry = json!({"authentication": {"pullSecretRef": {"name": name}}});
        config(name, prefixes, json!({"registry": registry}))
    }

    fn rewrite(name: &str, prefixes: &[&str], to: &str) -> ImageConfig {
        config(name, prefixes, json!({"rewriteImage": {"prefix": to}}))
    }

    fn planned(configs: &[ImageConfig], image: &str) -> Result<ImagePlan, String> {
        plan(configs, &Reference::parse(image).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_longest_prefix_applies_and_then_the_first() {
        let configs =
            [secret("a", &["r.io/x"]), secret("b", &["r.io/", "r.io/x/y"]), secret("c", &["r.io/x/y"])];
        for (image, expected) in [
            ("r.io/x/y:v1", Some("b")),
            ("r.io/x:v1", Some("a")),
            ("r.io/z:v1", Some("b")),
            ("q.io/x:v1", None),
        ] {
            assert_eq!(planned(&configs, image).unwrap().pull_secret.as_deref(), expected, "{image}");
        }
        let empty = secret("e", &[""]);
        assert_eq!(planned(&[empty], "r.io/x:v1").unwrap().pull_secret, None);
    }

    #[test]
    fn purposes_are_independent_and_follow_the_rewrite() {
        let authority = json!({"name": "k", "key": {"secretRef": {"name": "s", "key": "cosign.pub"}}});
        let verification = json!({"provider": "Cosign", "cosign": {"authorities": [authority]}});
        let configs = [
            rewrite("rewrite", &["r.io/", "r.io/team/"], "mirror.io/all/"),
            rewrite("again", &["mirror.io/"], "other.io/"),
            secret("wrong", &["r.io/"]),
            secret("pull", &["mirror.io/"]),
            config("verify", &["mirror.io/all"], json!({"verification": verification})),
            config("run", &["mirror.io"], json!({"runtime": {"configRef": {"name": "special"}}})),
        ];
        let plan = planned(&configs, "r.io/team/x:v1").unwrap();
        assert_eq!(plan.original.to_string(), "r.io/team/x:v1");
        assert_eq!(plan.resolved.to_string(), "mirror.io/all/x:v1");
        assert_eq!(plan.pull_secret.as_deref(), Some("pull"));
        assert_eq!(plan.verification.unwrap()[0].name, "k");
        assert_eq!(plan.runtime_config.unwrap().name, "special");
        let applied: Vec<_> = plan.applied.iter().map(|a| (a.name.as_str(), a.reason.as_str())).collect();
        let expected = [
            ("rewrite", "RewriteImage"),
            ("pull", "SetImagePullSecret"),
            ("verify", "VerifyImage"),
            ("run", "ConfigureRuntime"),
        ];
        assert_eq!(applied, expected);
    }

    #[test]
    fn configs_that_cannot_be_applied_stop_the_pull() {
        let nothing = planned(&[rewrite("r", &["r.io/"], "")], "r.io/x:v1").unwrap_err();
        assert!(nothing.contains("rewrite prefix is missing"), "{nothing}");
        let invalid = planned(&[rewrite("r", &["r.io/"], "nowhere")], "r.io/x:v1").unwrap_err();
        assert!(invalid.contains("rewrites r.io/x:v1 to an invalid reference"), "{invalid}");
        for verification in [json!({"provider": "Cosign"}), json!({"provider": "Notary", "cosign": {}})] {
            let config = config("v", &["r.io/"], json!({"verification": verification}));
            let error = planned(&[config], "r.io/x:v1").unwrap_err();
            assert!(error.contains("cosign verification config is missing"), "{error}");
        }
    }

    #[test]
    fn sources_are_rewritten_as_references_are() {
        let configs = [rewrite("a", &["r.io/"], "m.io/all/"), rewrite("b", &["r.io/x"], "n.io/x")];
        let found = mirrors(&configs, ["r.io/x", "r.io/y", "q.io/z"]);
        let expected = [("r.io/x", "n.io/x"), ("r.io/y", "m.io/all/y")];
        assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())).into());
    }

    #[test]
    fn only_configs_of_the_pull_and_of_verification_concern_a_package() {
        let verify = config("v", &["r.io/"], json!({"verification": {"provider": "Cosign"}}));
        assert!(concerns(&verify, "r.io/x:v1", None));
        let run = config("r", &["r.io/"], json!({"runtime": {"configRef": {"name": "special"}}}));
        assert!(concerns(&run, "r.io/x:v1", None));
        assert!(concerns(&secret("s", &["r.io/"]), "r.io/x:v1", None));
        assert!(concerns(&rewrite("s", &["m.io/"], "n.io/"), "r.io/x:v1", Some("m.io/x:v1")));
        assert!(!concerns(&secret("s", &["m.io/"]), "r.io/x:v1", None));
    }
}
