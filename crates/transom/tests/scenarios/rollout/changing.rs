//! Composite resources that change continuously.

use crate::scenarios::user::*;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinHandle;

/// How many composite resources change continuously.
pub(in crate::scenarios) fn count() -> usize {
    std::env::var("TRANSOM_ROLLOUT_THINGS").ok().and_then(|n| n.parse().ok()).unwrap_or(50)
}

/// Changes things one after the other, again and again.
pub(in crate::scenarios) struct Changing {
    stop: Arc<AtomicBool>,
    task: JoinHandle<u64>,
}

impl Changing {
    pub(in crate::scenarios) fn start(user: &User, names: &[String]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, names, cluster) = (stop.clone(), names.to_vec(), user.cluster.clone());
        let task = tokio::spawn(async move {
            let mut round = 0;
            while !stopped.load(Ordering::SeqCst) {
                round += 1;
                for name in &names {
                    let patch = json!({"spec": {"coolField": round.to_string()}});
                    let thing =
                        json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": name}});
                    cluster.merge_patch(&thing, &patch, "kubectl-edit").await.expect("it can be changed");
                }
            }
            round
        });
        Self { stop, task }
    }

    /// Ends; returns how often all were changed.
    pub(in crate::scenarios) async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.expect("no change failed")
    }
}
