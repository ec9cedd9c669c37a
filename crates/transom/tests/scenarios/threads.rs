//! Reconciling and serving use threads of their own, so that a large composition does not delay requests.

use crate::scenarios::user::*;
use serde_json::json;
use std::fs;

/// Processor time of the threads with a name, in ticks of the kernel.
fn ticks(pid: u32, name: &str) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let named = threads.filter(|thread| {
        fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    });
    let used = named.filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
        // The name, which may contain spaces, is in parentheses; user and system time are the 12th and 13th field after it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
    });
    used.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_composition_is_computed_beside_the_threads_that_serve() {
    let user = User::new().await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    let template = "{{ range $i := until 1000 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map-{{ $i }}\n  \
                    namespace: default\n  annotations: {gotemplating.fn.crossplane.io/composition-resource-name: \"{{ $i }}\"}\n\
                    {{ end }}\n";
    let input = json!({
        "apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate", "source": "Inline",
        "inline": {"template": template},
    });
    user.apply(&composition("many", "Thing", &json!({}), &[("function-go-templating", input)])).await;
    user.until_true(XRD, "things.example.org", "Established").await;
    user.until_idle().await;
    let pid = user.plane.pid();
    let (computing, serving) = (ticks(pid, "controllers"), ticks(pid, "serving"));
    user.apply(&object("Thing", "one", "")).await;
    user.until_idle().await;
    let (computing, serving) = (ticks(pid, "controllers") - computing, ticks(pid, "serving") - serving);
    assert_eq!(user.composed(MAP, "one").await.len(), 1000);
    // The client that waits here is served, too.
    assert!(2 * computing > serving, "controllers: {computing} ticks, serving: {serving}");
}
