//! Workloads say in their status that nothing runs them, in the conditions that Helm, kstatus and Argo CD read.
//!
//! The conditions are set when the object is created, with its creation time. A controller that someone runs against the
//! server replaces the status and with it the conditions; from then on the server leaves it alone.

use serde_json::{Value, json};

/// The reason in the conditions; it also recognises the status as the server's own.
const REASON: &str = "NothingRunsPods";
const MESSAGE: &str = "nothing runs pods on this control plane: the object is stored and has no effect";

/// The first status of a workload. Returns whether objects of the kind are workloads.
pub(super) fn begin(kind: &str, new: &mut Value) -> bool {
    let since = new["metadata"]["creationTimestamp"].clone();
    let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "message": MESSAGE, "lastTransitionTime": since});
    let conditions = match kind {
        // kstatus and Argo CD read this reason as failed; kstatus reads Stalled of any kind.
        "Deployment" => {
            let progressing = condition("Progressing", "False", "ProgressDeadlineExceeded");
            json!([progressing, condition("Stalled", "True", REASON)])
        }
        "StatefulSet" | "DaemonSet" => json!([condition("Stalled", "True", REASON)]),
        "ReplicaSet" | "ReplicationController" => {
            json!([condition("ReplicaFailure", "True", REASON), condition("Stalled", "True", REASON)])
        }
        // Hooks of Helm and `helm --wait-for-jobs` end with the reason of this condition.
        "Job" => json!([condition("Failed", "True", REASON)]),
        "Pod" => json!([condition("PodScheduled", "False", "Unschedulable")]),
        _ => return false,
    };
    new["status"]["conditions"] = conditions;
    observe(kind, new);
    true
}

/// Reports a changed spec as observed, as long as the status is the server's own: tools wait for the generation first.
pub(super) fn observe(kind: &str, new: &mut Value) {
    let observes =
        matches!(kind, "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "ReplicationController");
    let own = new["status"]["conditions"].as_array().is_some_and(|c| c.iter().any(|c| c["reason"] == REASON));
    if observes && own {
        new["status"]["observedGeneration"] = new["metadata"]["generation"].clone();
    }
}
