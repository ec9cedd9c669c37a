//! Managed resources: their definitions become CRDs when they are active, and policies activate them.
//!
//! | module | what it holds |
//! |---|---|
//! | `definition` | ManagedResourceDefinitions: the CRD of an active one |
//! | `policy` | ManagedResourceActivationPolicies: activates the definitions that its patterns match, now and later |
//!
//! A provider has hundreds of definitions, so what a change costs does not depend on how many there are: a definition
//! wakes the policies with a pattern that matches it, when it comes, goes, or its state changes, and a policy finds the
//! definitions that it matches in the cache of the watch, of which it reads and writes only those it activates.

mod definition;
mod policy;

use crate::catalog::kinds;
use crate::definition::CRD_CONTROLLERS;
use crate::plane::Plane;
use serde_json::{Value, json};
use std::sync::Arc;
use transom_engine::{Change, Cluster, Controller, Depth, ErrorContext, Mirror, Pace, Queue, Result, Seen};
use transom_object::meta;
use transom_xapi::constants::{group, kind, owner};
use transom_xapi::metadata;
use transom_xapi::package::ACTIVE;

/// The policy that is made when a control plane starts.
const DEFAULT_POLICY: &str = "default";

/// What is kept of definitions: whether they are active, and what controls them.
pub(crate) const ACTIVATION: Depth = Depth::Part("activation", activation);

fn activation(definition: &Value) -> Value {
    let controller = meta::controller_of(definition).map(|controller| controller.name);
    json!({"active": definition["spec"]["state"] == ACTIVE, "controller": controller})
}

/// Whether a definition is active.
pub(crate) fn is_active(definition: &Seen) -> bool {
    definition.object["active"] == true
}

/// The name of the revision that controls a definition.
pub(crate) fn controlling_revision(definition: &Seen) -> Option<&str> {
    definition.object["controller"].as_str()
}

/// Whether a definition came, went, or has another state.
pub(crate) fn is_of_activation(change: &Change<'_>) -> bool {
    change.gap || change.before.map(is_active) != change.after.map(is_active)
}

/// What is kept of policies: their patterns, unless they are paused.
fn patterns(policy: &Value) -> Value {
    if metadata::is_paused(policy) {
        return Value::Null;
    }
    policy.pointer("/spec/activate").cloned().unwrap_or_default()
}

/// Makes the policy `default`, unless there is one already. Without patterns there is none.
pub(crate) async fn ensure_default_policy(cluster: &Cluster, activate: &[String]) -> Result<()> {
    let words = || format!("cannot create {} {DEFAULT_POLICY:?}", kind::MRAP);
    let gvk = kinds::activation_policy();
    if activate.is_empty() || cluster.get(&gvk, "", DEFAULT_POLICY).await.context(words())?.is_some() {
        return Ok(());
    }
    let policy = json!({
        "apiVersion": format!("{}/{}", group::APIEXTENSIONS, gvk.version), "kind": gvk.kind,
        "metadata": {"name": DEFAULT_POLICY}, "spec": {"activate": activate},
    });
    match cluster.create(&policy, owner::DEFAULT).await {
        Err(error) if !error.is_already_exists() => Err(error).context(words()),
        _ => Ok(()),
    }
}

/// Starts the controllers of definitions and of policies.
pub(crate) fn start(plane: &Arc<Plane>) -> [Controller; 2] {
    [start_definitions(plane), start_policies(plane)]
}

fn start_definitions(plane: &Arc<Plane>) -> Controller {
    let mut controller = plane.controller(definition::NAME, Pace::default());
    let definitions = controller.watch_own(&kinds::managed_definition(), ACTIVATION);
    let queue = controller.queue().clone();
    // A CRD has the name of its definition. The definition's own changes wake it, so it matters only if it is known.
    let wake = move |change: &Change<'_>| {
        if let Some(crd) = change.object().filter(|crd| definitions.get(&crd.key).is_some()) {
            change.wake(&queue, &crd.key);
        }
    };
    controller.watch(&kinds::crd(), CRD_CONTROLLERS, Arc::new(wake));
    controller.start(definition::Definitions { plane: plane.clone() })
}

fn start_policies(plane: &Arc<Plane>) -> Controller {
    let mut controller = plane.controller(policy::NAME, Pace::default());
    let policies = controller.watch_own(&kinds::activation_policy(), Depth::Part("patterns", patterns));
    let queue = controller.queue().clone();
    let wake = move |change: &Change<'_>| wake_policies(&policies, &queue, change);
    let definitions = controller.watch(&kinds::managed_definition(), ACTIVATION, Arc::new(wake));
    controller.start(policy::Policies { plane: plane.clone(), definitions })
}

/// A definition wakes the policies that match it.
fn wake_policies(policies: &Mirror, queue: &Queue, change: &Change<'_>) {
    let Some(definition) = change.object().filter(|_| is_of_activation(change)) else { return };
    for policy in policies.all() {
        let patterns = policy.object.as_array().into_iter().flatten().filter_map(Value::as_str);
        if policy::matches(patterns, &definition.key.name) {
            change.wake(queue, &policy.key);
        }
    }
}
