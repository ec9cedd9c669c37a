//! Evictions: which pods may go, as far as the stored status of PodDisruptionBudgets says.

use super::set_condition;
use serde_json::{Value, json};
use transom_object::labels::Selector;
use transom_object::status::{Cause, Details};
use transom_object::{GroupResource, Status, meta};

/// How many evictions may be waiting for the controller of the budget to see them.
const DISRUPTED_PODS: usize = 2000;
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Whether the eviction of a pod disturbs nothing, so that no budget counts: it has not started, has ended, or is going.
pub(crate) fn is_undisturbed(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Pending"))
        || !pod["metadata"]["deletionTimestamp"].is_null()
}

/// What the budgets of a namespace mean for one of its pods.
pub(crate) enum Budget {
    /// The pod may go.
    Unlimited,
    /// It may go as long as it stays as it is, since it does not count as healthy.
    Unhealthy,
    /// The budget of this name decides, and counts it.
    Counted(String),
}

impl Budget {
    /// The budget of a pod, from all budgets of its namespace.
    pub(crate) fn of(pod: &Value, budgets: &[Value]) -> Result<Self, Status> {
        let labels = meta::labels(pod);
        let selects = |budget: &&Value| {
            let selector = &budget["spec"]["selector"];
            selector.is_object() && Selector::from_label_selector(selector).is_ok_and(|s| s.matches(&labels))
        };
        let mut selected = budgets.iter().filter(selects);
        let Some(budget) = selected.next() else { return Ok(Self::Unlimited) };
        if selected.next().is_some() {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Status::new(500, "", why));
        }
        let count = |field: &str| budget["status"][field].as_i64().unwrap_or_default();
        let enough = count("currentHealthy") >= count("desiredHealthy") && count("desiredHealthy") > 0;
        if !is_ready(pod) && (budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" || enough) {
            return Ok(Self::Unhealthy);
        }
        Ok(Self::Counted(budget["metadata"]["name"].as_str().unwrap_or_default().to_owned()))
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
}

/// The budget with one disruption less, or why it allows none.
pub(crate) fn disrupt(budget: &Value, pod: &str, now: &str) -> Result<Value, Status> {
    let name = budget["metadata"]["name"].as_str().unwrap_or_default();
    let status = &budget["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or_default();
    let forbidden =
        |why: &str| Err(Status::forbidden(&GroupResource::new("policy", "poddisruptionbudget"), name, why));
    if count("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or_default() {
        return Err(too_many(
            format!("The disruption budget {name} is still being processed by the server."),
            10,
        ));
    }
    let allowed = count("disruptionsAllowed");
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    if status["disruptedPods"].as_object().is_some_and(|pods| pods.len() > DISRUPTED_PODS) {
        return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if allowed == 0 {
        return Err(too_many(exhausted(name, status), 0));
    }
    let mut changed = budget.clone();
    changed["status"]["disruptionsAllowed"] = (allowed - 1).into();
    changed["status"]["disruptedPods"][pod] = now.into();
    if allowed == 1 {
        let condition = json!({"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
            "observedGeneration": status["observedGeneration"]});
        set_condition(&mut changed, condition, now);
    }
    Ok(changed)
}

fn exhausted(name: &str, status: &Value) -> String {
    let count = |field: &str| status[field].as_i64().unwrap_or_default();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let failed =
        conditions.into_iter().find(|c| c["type"] == "DisruptionAllowed").filter(|c| c["status"] == "False");
    let text = |key: &str| failed.and_then(|c| c[key].as_str()).unwrap_or_default();
    let (reason, message) = (text("reason"), text("message"));
    let (current, desired) = (count("currentHealthy"), count("desiredHealthy"));
    if reason == "SyncFailed" && !message.is_empty() {
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        );
    }
    if current <= desired {
        return format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        );
    }
    match message {
        "" => format!("The disruption budget {name} does not allow evicting pods currently"),
        message => format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        ),
    }
}

fn too_many(why: String, retry_after_seconds: u32) -> Status {
    let cause = Cause { reason: "DisruptionBudget".into(), message: why, ..Cause::default() };
    let details = Details { causes: vec![cause], retry_after_seconds, ..Details::default() };
    Status::new(429, "TooManyRequests", REFUSED).with_details(details)
}

/// The pod, which is about to be evicted.
pub(crate) fn mark_disrupted(pod: &Value, now: &str) -> Value {
    let mut marked = pod.clone();
    let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null});
    set_condition(&mut marked, condition, now);
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(status: &Value) -> Value {
        json!({"metadata": {"name": "b", "generation": 1}, "spec": {"selector": {"matchLabels": {"a": "b"}}}, "status": status})
    }

    fn why(status: &Value) -> (u16, String) {
        let refused = disrupt(&budget(status), "p", "now").unwrap_err();
        let cause = refused.details.and_then(|d| d.causes.into_iter().next()).unwrap_or_default();
        (refused.code, cause.message)
    }

    #[test]
    fn a_budget_counts_what_it_allows() {
        let one = budget(&json!({"observedGeneration": 1, "disruptionsAllowed": 1}));
        let used = disrupt(&one, "p", "now").unwrap();
        assert_eq!(
            (&used["status"]["disruptionsAllowed"], &used["status"]["disruptedPods"]["p"]),
            (&json!(0), &json!("now"))
        );
        assert_eq!(used["status"]["conditions"][0]["reason"], "InsufficientPods");
        assert_eq!(disrupt(&used, "q", "now").unwrap_err().code, 429);
    }

    #[test]
    fn a_refusal_says_what_is_missing() {
        let old = json!({"observedGeneration": 0, "disruptionsAllowed": 1});
        assert_eq!(
            why(&old),
            (429, "The disruption budget b is still being processed by the server.".into())
        );
        let few = json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 2});
        assert_eq!(
            why(&few),
            (429, "The disruption budget b needs 2 healthy pods and has 1 currently".into())
        );
        let condition = json!([{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "oh"}]);
        let failed = json!({"observedGeneration": 1, "currentHealthy": 3, "desiredHealthy": 2, "conditions": condition});
        assert!(why(&failed).1.ends_with("because it failed sync: oh"));
        assert_eq!(why(&json!({"observedGeneration": 1, "disruptionsAllowed": -1})).0, 403);
    }

    #[test]
    fn pods_that_are_not_ready_go_where_the_budget_allows_it() {
        let pod = |ready: &str| json!({"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
        let enough = [budget(&json!({"currentHealthy": 2, "desiredHealthy": 2}))];
        assert!(matches!(Budget::of(&pod("False"), &enough), Ok(Budget::Unhealthy)));
        assert!(matches!(Budget::of(&pod("True"), &enough), Ok(Budget::Counted(_))));
        let few = [budget(&json!({"currentHealthy": 1, "desiredHealthy": 2}))];
        assert!(matches!(Budget::of(&pod("False"), &few), Ok(Budget::Counted(_))));
        assert!(matches!(Budget::of(&json!({"metadata": {}}), &few), Ok(Budget::Unlimited)));
        let two = [few[0].clone(), few[0].clone()];
        assert_eq!(Budget::of(&pod("True"), &two).map(drop).unwrap_err().code, 500);
    }
}
