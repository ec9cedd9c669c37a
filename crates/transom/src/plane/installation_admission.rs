//! What platform teams write, checked before it is stored: definitions, Compositions with their templates and the inputs of built-in
//! functions, and packages. An embedded plane checks in its API server, controllers on a cluster by a webhook.
//!
//! Controllers and composite resources find the same mistakes later, so nothing depends on a check being made.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};
use transom_apiserver::{Admission, Endpoint, Operation, Phase, Review, Verdict, async_trait};
use transom_controllers::{VALIDATED, admission_response, installation_problems, refusal, reviewed};
use transom_engine::Cluster;
use transom_object::{GroupVersionKind, Status, meta};
use transom_runner::{Resolver, Source};
use transom_xapi::Function;
use transom_xapi::constants::{group, kind};

/// What is wrong with an object that is to be stored.
#[derive(Default)]
struct Findings {
    /// Why it is refused, each beginning with the field.
    problems: Vec<String>,
    /// What it has no effect in, or another than was probably meant.
    warnings: Vec<String>,
}

async fn findings(cluster: &Cluster, object: &Value, before: Option<&Value>) -> Findings {
    let mut found =
        Findings { problems: installation_problems(cluster, object, before).await, ..Findings::default() };
    let is_composition = meta::kind(object) == kind::COMPOSITION && !meta::is_deleting(object);
    if found.problems.is_empty() && is_composition {
        found.problems.extend(wrong_templates(object, before));
        review_inputs(cluster, object, before, &mut found).await;
    }
    found
}

/// Reviews the inputs of a Composition's steps whose functions are built in. Inputs that were stored before are left alone.
async fn review_inputs(cluster: &Cluster, composition: &Value, before: Option<&Value>, found: &mut Findings) {
    let steps = |composition: &Value| composition["spec"]["pipeline"].as_array().cloned().unwrap_or_default();
    let former = before.map(steps).unwrap_or_default();
    for (index, step) in steps(composition).iter().enumerate().filter(|(_, step)| !former.contains(step)) {
        let Some(input) = step["input"].as_object() else { continue };
        let Some(built_in) = built_in(cluster, &step["functionRef"]["name"]).await else { continue };
        let review = transom_builtins::review_input(&built_in, input);
        let field = format!("spec.pipeline[{index}].input");
        match review.refusal() {
            Some(why) => found.problems.push(format!("{field}: {why}")),
            None => found.warnings.extend(review.mistakes.iter().map(|one| format!("{field}.{one}"))),
        }
    }
}

/// The name of the built-in function that a Function is, if it is installed and is one.
async fn built_in(cluster: &Cluster, function: &Value) -> Option<String> {
    let gvk = GroupVersionKind::new(group::PKG, "v1", kind::FUNCTION);
    let function = cluster.get(&gvk, "", function.as_str()?).await.ok()??;
    match Resolver::new(transom_builtins::names()).resolve(&Function::deserialize(&function).ok()?) {
        Source::Builtin(name) => Some(name),
        _ => None,
    }
}

/// Why the templates of a Composition would compose nothing, if there is a reason. Templates that were stored before are left
/// alone.
fn wrong_templates(composition: &Value, before: Option<&Value>) -> Option<String> {
    let spec = composition.get("spec").and_then(Value::as_object)?;
    let templates = spec.get("resources").and_then(Value::as_array).filter(|list| !list.is_empty())?;
    let unchanged = |before: &Value| {
        ["resources", "patchSets", "environment", "functions"]
            .iter()
            .all(|field| before.pointer("/spec").and_then(|spec| spec.get(*field)) == spec.get(*field))
    };
    if meta::is_deleting(composition) || before.is_some_and(unchanged) {
        return None;
    }
    let words = transom_builtins::review_templates(spec).refusal();
    words.or_else(|| names(spec, templates)).map(|words| format!("spec: {words}"))
}

/// Resources are known by the names of their templates, or by the places of these.
fn names(spec: &Map<String, Value>, templates: &[Value]) -> Option<String> {
    let named =
        templates.iter().filter(|template| template["name"].as_str().is_some_and(|name| !name.is_empty()));
    let named = named.count();
    let has_functions = spec.get("functions").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if named != 0 && named != templates.len() {
        return Some("resources: either every template has a name, or none has".to_owned());
    }
    (has_functions && named == 0)
        .then(|| "resources: every template needs a name if the Composition has functions".to_owned())
}

/// The response to an `AdmissionReview`.
pub(super) async fn review(cluster: &Cluster, review: &Value) -> Value {
    let found = match reviewed(review) {
        (Some(object), before) => findings(cluster, object, before).await,
        (None, _) => Findings::default(),
    };
    admission_response(review, &found.problems, &found.warnings)
}

/// The same checks in the server of this process.
pub(super) struct InstallationAdmission {
    /// The server that this is a part of: it is known once the server has started.
    pub(super) cluster: Arc<OnceLock<Cluster>>,
}

#[async_trait]
impl Admission for InstallationAdmission {
    fn name(&self) -> &str {
        "installations.transom.io"
    }

    fn wants(&self, phase: Phase, operation: Operation, endpoint: &Endpoint<'_>) -> bool {
        phase == Phase::Validate
            && matches!(operation, Operation::Create | Operation::Update)
            && endpoint.subresource.is_empty()
            && VALIDATED
                .iter()
                .any(|(group, resources)| endpoint.group == *group && resources.contains(&endpoint.resource))
    }

    async fn review(&self, review: &Review<'_>) -> Verdict {
        let (Some(object), Some(cluster)) = (review.object, self.cluster.get()) else {
            return Verdict::allow();
        };
        let found = findings(cluster, object, review.old_object).await;
        let verdict = if found.problems.is_empty() {
            Verdict::allow()
        } else {
            Verdict::refuse(Status::new(422, "Invalid", refusal(object, &found.problems)))
        };
        found.warnings.into_iter().fold(verdict, Verdict::warn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn composition(templates: &Value) -> Value {
        json!({"kind": "Composition", "metadata": {"name": "c"}, "spec": {"resources": templates}})
    }

    fn template(patch: &Value) -> Value {
        json!({"name": "a", "base": {"apiVersion": "v1", "kind": "ConfigMap"}, "patches": [patch]})
    }

    #[test]
    fn templates_with_mistakes_are_refused_when_they_are_written() {
        let patch = json!({"fromFieldPath": "spec.a", "toFieldPath": "data.a"});
        let good = composition(&json!([template(&patch)]));
        assert_eq!(wrong_templates(&good, None), None);
        let bogus = composition(&json!([template(&json!({"type": "Bogus", "fromFieldPath": "spec.a"}))]));
        let why = wrong_templates(&bogus, None).unwrap();
        assert!(why.contains("resources[0].patches[0].type") && why.contains("Bogus"), "{why}");
        assert_eq!(wrong_templates(&bogus, Some(&bogus)), None, "what is stored can be changed otherwise");
        assert!(wrong_templates(&bogus, Some(&good)).is_some());
        let transform =
            json!({"fromFieldPath": "a", "transforms": [{"type": "math", "math": {"type": "Divide"}}]});
        assert!(wrong_templates(&composition(&json!([template(&transform)])), None).is_some());
        let mixed = composition(&json!([template(&patch), {"base": {"apiVersion": "v1", "kind": "A"}}]));
        assert!(
            wrong_templates(&mixed, None).unwrap().contains("either every template has a name, or none has")
        );
    }
}
