//! Functions and their revisions: which revision answers for a step, and whether it can.

#![expect(missing_docs, reason = "names and fields are Crossplane's, which its CRDs describe")]

use crate::composition::{LabelMatch, PipelineStep};
use crate::conditions::{self, Condition};
use crate::constants::{condition, reason};
use crate::package::{Package, PackageRevision, PackageRevisionSpec, PackageRevisionStatus, PackageSpec};
use transom_object::quote::quote;

/// What a function must be able to do to run in a Composition.
pub const CAPABILITY_COMPOSITION: &str = "composition";
/// What a function must be able to do to run in an Operation.
pub const CAPABILITY_OPERATION: &str = "operation";

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

    /// Fields that are accepted and have no effect yet, in a sentence for the author of the Function.
    pub fn without_effect(&self) -> Option<&'static str> {
        let words = "no effect yet: activeRevisionLimit; one revision of a Function is active at a time";
        self.spec.active_revision_limit.is_some_and(|limit| limit > 1).then_some(words)
    }
}

/// The last segment of a reference's repository, without tag and digest.
pub fn repository_name(package: &str) -> &str {
    let package = package.split('@').next().unwrap_or_default();
    let last = package.rsplit('/').next().unwrap_or_default();
    last.split(':').next().unwrap_or_default()
}

/// Whether a list of capabilities names this one, whatever its case and punctuation.
pub fn is_capable(capabilities: &[String], of: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let of = plain(of);
    capabilities.iter().any(|c| plain(c) == of)
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

/// Whether all active revisions of the named functions have the capabilities. Functions that are not installed do not
/// fail this check, but the pipeline.
pub fn check_capabilities(
    capabilities: &[&str],
    functions: &[&str],
    revisions: &[FunctionRevision],
) -> Result<(), Incapable> {
    for revision in revisions.iter().filter(|r| r.is_active() && functions.contains(&r.package())) {
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
pub fn pipeline_condition(functions: &[&str], revisions: &[FunctionRevision]) -> Condition {
    match check_capabilities(&[CAPABILITY_COMPOSITION], functions, revisions) {
        Ok(()) => Condition::valid_pipeline(),
        Err(incapable) => Condition::missing_capabilities(incapable.to_string()),
    }
}

/// No revision of a function can answer for a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRevision {
    #[error("cannot find an active FunctionRevision (a FunctionRevision with spec.desiredState: Active)")]
    NoneActive,
    #[error("cannot find an active FunctionRevision of {} that matches the functionRevisionSelector", quote(.0))]
    NoneSelected(String),
    #[error("cannot find FunctionRevision {} of {}", quote(revision), quote(function))]
    NotThere { revision: String, function: String },
    #[error("FunctionRevision {} is not active", quote(.0))]
    Inactive(String),
}

/// The revision that answers for a step: the one it names; else, among the active ones of the function (with the
/// labels the step asks for), the one with the highest number.
pub fn revision_for<'a>(
    step: &PipelineStep,
    revisions: impl IntoIterator<Item = &'a FunctionRevision>,
) -> Result<&'a FunctionRevision, NoRevision> {
    let function = step.function_ref.name.as_str();
    let mut own = revisions.into_iter().filter(|r| r.package() == function);
    if let Some(reference) = &step.function_revision_ref {
        let found = own.find(|r| r.metadata.name == reference.name).ok_or_else(|| NoRevision::NotThere {
            revision: reference.name.clone(),
            function: function.to_owned(),
        })?;
        return if found.is_active() { Ok(found) } else { Err(NoRevision::Inactive(reference.name.clone())) };
    }
    let selector = step.function_revision_selector.as_ref();
    let matches =
        |r: &&FunctionRevision| selector.is_none_or(|s: &LabelMatch| s.matches(&r.metadata.label_map()));
    let newest = own.filter(|r| r.is_active()).filter(matches).max_by_key(|r| r.spec.revision);
    newest.ok_or_else(|| match selector {
        Some(_) => NoRevision::NoneSelected(function.to_owned()),
        None => NoRevision::NoneActive,
    })
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
    fn a_step_runs_the_revision_it_names_or_the_newest_active() {
        let all = [
            revision("f-1", 1, "Active", &json!({"channel": "stable"})),
            revision("f-2", 2, "Active", &json!({"channel": "alpha"})),
            revision("f-3", 3, "Inactive", &json!({"channel": "alpha"})),
        ];
        let run = |more: &Value| {
            revision_for(&step(more), &all).map(|r| r.metadata.name.as_str()).map_err(|e| e.to_string())
        };
        assert_eq!(run(&json!({})), Ok("f-2"));
        assert_eq!(run(&json!({"functionRevisionRef": {"name": "f-1"}})), Ok("f-1"));
        let stable = json!({"functionRevisionSelector": {"matchLabels": {"channel": "stable"}}});
        assert_eq!(run(&stable), Ok("f-1"));
        assert!(run(&json!({"functionRevisionRef": {"name": "f-3"}})).unwrap_err().contains("not active"));
        assert!(run(&json!({"functionRevisionRef": {"name": "f-9"}})).unwrap_err().contains("cannot find"));
        let none = json!({"functionRevisionSelector": {"matchLabels": {"channel": "none"}}});
        assert!(run(&none).unwrap_err().contains("functionRevisionSelector"));
        assert_eq!(revision_for(&step(&json!({})), []), Err(NoRevision::NoneActive));
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
    fn only_active_revisions_of_named_functions_are_checked() {
        let mut incapable = revision("f-1", 1, "Active", &json!({}));
        incapable.status.capabilities = vec!["operation".to_owned()];
        assert_eq!(pipeline_condition(&["g"], std::slice::from_ref(&incapable)), Condition::valid_pipeline());
        assert_eq!(
            pipeline_condition(&["f"], std::slice::from_ref(&incapable)).message,
            "function \"f\" (active revision \"f-1\") is missing required capabilities: composition"
        );
        incapable.spec.desired_state = "Inactive".to_owned();
        assert!(pipeline_condition(&["f"], &[incapable]).is_true());
    }

    #[test]
    fn fields_without_effect_are_named() {
        let function = |spec: Value| -> Function { serde_json::from_value(json!({"spec": spec})).unwrap() };
        assert_eq!(function(json!({"revisionActivationPolicy": "Manual"})).without_effect(), None);
        assert_eq!(function(json!({"activeRevisionLimit": 1})).without_effect(), None);
        let limited = function(json!({"activeRevisionLimit": 2}));
        assert!(limited.without_effect().unwrap().contains("activeRevisionLimit"));
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
