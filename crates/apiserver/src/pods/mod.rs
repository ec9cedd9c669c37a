//! What the subresources of pods change: containers for debugging, sizes, the node, and evictions within budgets.
//!
//! Pure: given the live objects, these functions return the new ones or a refusal. `verbs::binding` and `verbs::eviction`
//! write them. They must not know of the store or of HTTP. Nothing runs pods here; a scheduler or a kubelet that someone
//! runs against the server finds the endpoints that it needs.

mod binding;
mod budget;
mod part;

pub(crate) use binding::{bind, validate_binding};
pub(crate) use budget::{Budget, disrupt, is_undisturbed, mark_disrupted};
pub(crate) use part::{keep_part, only_part};

use serde_json::{Value, json};

/// Sets a condition of a pod. Its time is that of the last change of its status.
fn set_condition(pod: &mut Value, mut condition: Value, now: &str) {
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    condition["lastTransitionTime"] = now.into();
    let Some(all) = pod["status"]["conditions"].as_array_mut() else { return };
    match all.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => all.push(condition),
    }
}
