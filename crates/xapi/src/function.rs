//! Functions and their revisions: which revision answers for a step, and whether it can.

#![expect(missing_docs, reason = "names and fields are Crossplane's, which its CRDs describe")]

use crate::composition::PipelineStep;
use crate::conditions::{self, Condition};
use crate::constants::{annotation, condition, reason};
use crate::package::{Package, PackageRevision, PackageRevisionSpec, PackageRevisionStatus, PackageSpec};
use std::collections::BTreeMap;
use transom_object::quote::quote;

/// What a function must be able to do to run in a Composition.
pub const CAPABILITY_COMPOSITION: &str = "composition";
/// What a function must be able to do to run in an Operation.
pub const CAPABILITY_OPERATION: &str = "operation";
/// The capability of functions that use certificates as soon as their files were replaced. Crossplane does not know it, and
/// ignores it.
pub const CAPABILITY_CERTIFICATE_RELOAD: &str = "certificate-reload";

/// An installed function.
pub type Function = Package;
/// The spec of a function.
pub type FunctionSpec = PackageSpec;
/// One image of a function.
pub type FunctionRevision = PackageRevision;
/// The spec of a revision of a function.
pub type FunctionRevisionSpec = PackageRevisionSpec;
/// The status of a revision of a function.
pub type FunctionRevisionStatus = PackageRevisionStatus;

impl Function {
    /// The last segment of the package's repository, without tag and digest: what the function is called wherever it
    /// is published.
    pub fn repository_name(&self) -> &str {
        repository_name(&self.spec.package)
    }
}

/// The last segment of a reference's repository, without tag and digest.
pub fn repository_name(package: &str) -> &str {
    let package = package.split('@').next().unwrap_or_default();
    let last = package.rsplit('/').next().unwrap_or_default();
    last.split(':').next().unwrap_or_default()
}

/// Whether a list of capabilities contains this one, ignoring case and punctuation.
pub fn is_capable(capabilities: &[String], of: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let of = plain(of);
    capabilities.iter().any(|c| plain(c) == of)
}

/// An image without its tag: `registry.example.org/a/function-x` and `sha256:…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageId<'a> {
    pub repository: &'a str,
    /// Empty if the reference has none.
    pub digest: &'a str,
}

impl<'a> ImageId<'a> {
    /// Of a reference to an image.
    pub fn of(reference: &'a str) -> Self {
        let (name, digest) = reference.split_once('@').unwrap_or((reference, ""));
        let last = name.rfind('/').map_or(0, |slash| slash + 1);
        let end = name[last..].find(':').map_or(name.len(), |colon| last + colon);
        Self { repository: &name[..end], digest }
    }
}

/// Which revision of its function a step wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedRevision<'a> {
    /// Any: of those that are active, the one with the highest number.
    Newest,
    /// The one of this name.
    Named(&'a str),
    /// The one with the highest number among those with all of these labels.
    Labelled(&'a BTreeMap<String, String>),
    /// The one with this image, `REPOSITORY@sha256:…`, regardless of the name of its Function.
    Image(&'a str),
}

/// What steps choose a revision by, beside its name and number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevisionTraits {
    pub labels: BTreeMap<String, String>,
    /// The repositories of its image: as it is written, and after an ImageConfig rewrote it.
    pub repositories: Vec<String>,
    /// The digest of its image; empty if that is not known.
    pub digest: String,
}

impl RevisionTraits {
    pub fn of(revision: &FunctionRevision) -> Self {
        let written = ImageId::of(&revision.spec.image);
        let resolved = ImageId::of(&revision.status.resolved_image);
        let digest = revision.metadata.annotation(annotation::IMAGE_DIGEST).unwrap_or(written.digest);
        let mut repositories = vec![written.repository.to_owned()];
        if !resolved.repository.is_empty() && resolved.repository != written.repository {
            repositories.push(resolved.repository.to_owned());
        }
        Self { labels: revision.metadata.label_map(), repositories, digest: digest.to_owned() }
    }

    /// Of the only revision of a Function that has no FunctionRevisions, or none yet.
    pub fn of_function(function: &Function) -> Self {
        let image = ImageId::of(&function.spec.package);
        Self {
            labels: function.metadata.label_map(),
            repositories: vec![image.repository.to_owned()],
            digest: image.digest.to_owned(),
        }
    }

    /// Whether the revision of this name is one that a step wants.
    pub fn satisfy(&self, name: &str, wanted: WantedRevision<'_>) -> bool {
        match wanted {
            WantedRevision::Newest => true,
            WantedRevision::Named(wanted) => name == wanted,
            WantedRevision::Labelled(labels) => labels.iter().all(|(k, v)| self.labels.get(k) == Some(v)),
            WantedRevision::Image(image) => {
                let image = ImageId::of(image);
                let is_there = |repository: &String| repository == image.repository;
                !image.digest.is_empty()
                    && self.digest == image.digest
                    && self.repositories.iter().any(is_there)
            }
        }
    }
}

/// Whether a revision is active and may answer for a step.
pub fn may_answer(step: &PipelineStep, revision: &FunctionRevision) -> bool {
    if step.inline.is_some() {
        return false;
    }
    let of_function = step.function.is_some() || revision.package() == step.function_ref.name;
    let wanted = step.wanted_revision();
    of_function
        && revision.is_active()
        && RevisionTraits::of(revision).satisfy(&revision.metadata.name, wanted)
}

/// A function that cannot do what its place requires.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "function {} (active revision {}) is missing required capabilities: {}",
    quote(function), quote(revision), missing.join(", ")
)]
pub struct Incapable {
    pub function: String,
    pub revision: String,
    pub missing: Vec<String>,
}

/// Whether all active revisions that may answer for a step have the capabilities. A step that no revision answers for does
/// not fail this check, but the pipeline.
pub fn check_capabilities(
    capabilities: &[&str],
    steps: &[PipelineStep],
    revisions: &[FunctionRevision],
) -> Result<(), Incapable> {
    for revision in revisions.iter().filter(|r| steps.iter().any(|step| may_answer(step, r))) {
        let lacking = capabilities.iter().filter(|c| !is_capable(&revision.status.capabilities, c));
        let missing: Vec<String> = lacking.map(|c| (*c).to_owned()).collect();
        if !missing.is_empty() {
            let (function, revision) = (revision.package().to_owned(), revision.metadata.name.clone());
            return Err(Incapable { function, revision, missing });
        }
    }
    Ok(())
}

/// The condition of whether the functions of a pipeline can run in it.
pub fn pipeline_condition(steps: &[PipelineStep], revisions: &[FunctionRevision]) -> Condition {
    match check_capabilities(&[CAPABILITY_COMPOSITION], steps, revisions) {
        Ok(()) => Condition::valid_pipeline(),
        Err(incapable) => Condition::missing_capabilities(incapable.to_string()),
    }
}

/// The health of a package, as its current revision reports it. Packages without a runtime have no runtime health.
pub fn package_health(revision: &[Condition], has_runtime: bool) -> Condition {
    let active = conditions::get(revision, condition::RUNTIME_ACTIVE);
    let awaiting = active.reason == reason::AWAITING_ACTIVATION;
    let unhealthy = |what: &str, of: &Condition| {
        let mut message = format!("Package {what} health is {}", quote(&of.status));
        if !of.message.is_empty() {
            message.push_str(" with message: ");
            message.push_str(&of.message);
        }
        message
    };
    let own = conditions::get(revision, condition::REVISION_HEALTHY);
    let runtime = conditions::get(revision, condition::RUNTIME_HEALTHY);
    if !own.is_true() {
        return Condition::package_unhealthy(unhealthy("revision", &own));
    }
    if has_runtime && !runtime.is_true() {
        let mut message = unhealthy("runtime", &runtime);
        if awaiting {
            message.push_str("; runtime is scaled to zero awaiting activation");
        }
        return Condition::package_unhealthy(message);
    }
    if awaiting {
        return Condition::package_awaiting_activation(active.message);
    }
    Condition::package_healthy()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::label;
    use serde_json::{Value, json};

    fn revision(name: &str, number: i64, state: &str, labels: &Value) -> FunctionRevision {
        let mut all = json!({label::PACKAGE: "f"});
        for (k, v) in labels.as_object().unwrap() {
            all[k] = v.clone();
        }
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": all},
            "spec": {"desiredState": state, "revision": number},
            "status": {"capabilities": ["Composition"], "endpoint": "e"},
        }))
        .unwrap()
    }

    fn step(more: &Value) -> PipelineStep {
        let mut step = json!({"step": "s", "functionRef": {"name": "f"}});
        for (k, v) in more.as_object().unwrap() {
            step[k] = v.clone();
        }
        serde_json::from_value(step).unwrap()
    }

    #[test]
    fn a_step_wants_a_revision_by_name_labels_or_image() {
        let mut all = revision("f-1", 1, "Active", &json!({"channel": "stable", "tier": "gold"}));
        all.spec.image = "r.io:5000/a/f:v1".to_owned();
        all.status.resolved_image = "mirror.io/a/f:v1".to_owned();
        all.metadata.annotations =
            Some([(annotation::IMAGE_DIGEST.to_owned(), "sha256:1".to_owned())].into());
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let satisfies = |wanted| RevisionTraits::of(&all).satisfy("f-1", wanted);
        assert!(satisfies(WantedRevision::Newest) && satisfies(WantedRevision::Named("f-1")));
        assert!(!satisfies(WantedRevision::Named("f-2")));
        for (pairs, expected) in [
            (&[][..], true),
            (&[("channel", "stable")], true),
            (&[("channel", "stable"), ("tier", "gold")], true),
            (&[("channel", "alpha")], false),
            (&[("channel", "stable"), ("tier", "silver")], false),
            (&[("other", "")], false),
        ] {
            let labels = labels(pairs);
            let traits = RevisionTraits::of(&all);
            assert_eq!(traits.satisfy("f-1", WantedRevision::Labelled(&labels)), expected, "{pairs:?}");
        }
        for (image, expected) in [
            ("r.io:5000/a/f@sha256:1", true),
            ("mirror.io/a/f@sha256:1", true),
            ("r.io:5000/a/f:v9@sha256:1", true),
            ("r.io:5000/a/f@sha256:2", false),
            ("r.io:5000/a/g@sha256:1", false),
            ("r.io:5000/a/f", false),
        ] {
            assert_eq!(satisfies(WantedRevision::Image(image)), expected, "{image}");
        }
        // What is not pulled has the digest that its reference names, if any.
        all.metadata.annotations = None;
        all.spec.image = "r.io/f@sha256:3".to_owned();
        assert!(RevisionTraits::of(&all).satisfy("f-1", WantedRevision::Image("r.io/f@sha256:3")));
        all.spec.image = "r.io/f:v1".to_owned();
        assert!(!RevisionTraits::of(&all).satisfy("f-1", WantedRevision::Image("r.io/f")));
    }

    #[test]
    fn capabilities_are_compared_by_letters_and_digits() {
        let list = ["Safe_Start".to_owned(), "composition".to_owned()];
        assert!(
            is_capable(&list, "safe-start")
                && is_capable(&list, "COMPOSITION")
                && !is_capable(&list, "operation")
        );
    }

    #[test]
    fn only_active_revisions_that_may_answer_are_checked() {
        let mut incapable = revision("f-1", 1, "Active", &json!({"channel": "alpha"}));
        incapable.status.capabilities = vec!["operation".to_owned()];
        let of = |step: PipelineStep| pipeline_condition(&[step], std::slice::from_ref(&incapable));
        let mut other = step(&json!({}));
        other.function_ref.name = "g".to_owned();
        assert_eq!(of(other), Condition::valid_pipeline());
        let words = "function \"f\" (active revision \"f-1\") is missing required capabilities: composition";
        assert_eq!(of(step(&json!({}))).message, words);
        let selecting =
            |channel: &str| step(&json!({"functionRevisionSelector": {"matchLabels": {"channel": channel}}}));
        assert_eq!(of(selecting("alpha")).message, words);
        assert!(
            of(selecting("stable")).is_true()
                && of(step(&json!({"functionRevisionRef": {"name": "f-2"}}))).is_true()
        );
        incapable.spec.desired_state = "Inactive".to_owned();
        assert!(pipeline_condition(&[step(&json!({}))], &[incapable]).is_true());
    }

    #[test]
    fn packages_are_known_by_the_end_of_their_repository() {
        for (package, name) in [
            ("xpkg.example.org/crossplane-contrib/function-auto-ready:v0.4.2", "function-auto-ready"),
            ("localhost:5000/a/function-x@sha256:abc", "function-x"),
            ("xpkg.example.org/a/f:v1@sha256:abc", "f"),
            ("", ""),
        ] {
            let spec = FunctionSpec { package: package.to_owned(), ..FunctionSpec::default() };
            assert_eq!(Function { spec, ..Function::default() }.repository_name(), name);
        }
    }
}
