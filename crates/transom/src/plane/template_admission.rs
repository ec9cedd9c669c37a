//! The templates of Compositions with `resources`, checked before they are stored, as Crossplane v1 did by the schema of their CRD.
//!
//! A composite resource finds the same mistakes later, so nothing depends on this check being made.

use serde_json::{Map, Value};
use transom_apiserver::{Admission, Endpoint, Operation, Phase, Review, Verdict, async_trait};
use transom_object::{Status, meta};
use transom_xapi::constants::{group, kind};

/// Why the templates of a Composition would compose nothing, if there is a reason. Templates that were stored before are left
/// alone.
fn refusal(composition: &Value, before: Option<&Value>) -> Option<String> {
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

/// The words of an API server about the object that is refused.
fn invalid(composition: &Value, why: &str) -> String {
    format!("{} {:?} is invalid: {why}", meta::kind(composition), meta::name(composition))
}

/// The response to an `AdmissionReview` that nothing else refused.
pub(super) fn review(review: &Value, mut answer: Value) -> Value {
    let request = &review["request"];
    let object = &request["object"];
    if answer["response"]["allowed"] != true || meta::kind(object) != kind::COMPOSITION {
        return answer;
    }
    let before = request.get("oldObject").filter(|before| before.is_object());
    if let Some(why) = refusal(object, before) {
        let message = invalid(object, &why);
        answer["response"]["allowed"] = false.into();
        answer["response"]["status"] =
            serde_json::json!({"metadata": {}, "reason": "Invalid", "message": message, "code": 422});
    }
    answer
}

/// The same check in the server of this process.
pub(super) struct TemplateAdmission;

#[async_trait]
impl Admission for TemplateAdmission {
    fn name(&self) -> &str {
        "templates.transom.io"
    }

    fn wants(&self, phase: Phase, operation: Operation, endpoint: &Endpoint<'_>) -> bool {
        phase == Phase::Validate
            && matches!(operation, Operation::Create | Operation::Update)
            && endpoint.group == group::APIEXTENSIONS
            && endpoint.resource == "compositions"
            && endpoint.subresource.is_empty()
    }

    async fn review(&self, review: &Review<'_>) -> Verdict {
        let Some(composition) = review.object else { return Verdict::allow() };
        match refusal(composition, review.old_object) {
            None => Verdict::allow(),
            Some(why) => Verdict::refuse(Status::new(422, "Invalid", invalid(composition, &why))),
        }
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
        assert_eq!(refusal(&good, None), None);
        let bogus = composition(&json!([template(&json!({"type": "Bogus", "fromFieldPath": "spec.a"}))]));
        let why = refusal(&bogus, None).unwrap();
        assert!(why.contains("resources[0].patches[0].type") && why.contains("Bogus"), "{why}");
        assert_eq!(refusal(&bogus, Some(&bogus)), None, "what is stored can be changed otherwise");
        assert!(refusal(&bogus, Some(&good)).is_some());
        let transform =
            json!({"fromFieldPath": "a", "transforms": [{"type": "math", "math": {"type": "Divide"}}]});
        assert!(refusal(&composition(&json!([template(&transform)])), None).is_some());
        let mixed = composition(&json!([template(&patch), {"base": {"apiVersion": "v1", "kind": "A"}}]));
        assert!(refusal(&mixed, None).unwrap().contains("either every template has a name, or none has"));
        let answer = json!({"response": {"uid": "u", "allowed": true}});
        let reviewed = review(&json!({"request": {"object": bogus}}), answer.clone());
        assert_eq!(
            (&reviewed["response"]["allowed"], &reviewed["response"]["status"]["code"]),
            (&json!(false), &json!(422))
        );
        assert_eq!(review(&json!({"request": {"object": good}}), answer.clone()), answer);
    }
}
