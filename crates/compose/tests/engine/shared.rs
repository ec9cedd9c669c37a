//! Observed state is shared: each call of each step gets the objects that were read, not copies of them.

use crate::script::{Case, Script, object};
use serde_json::Value;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use transom_function::ResourceSelector;

/// The first step is called twice, because it requires something new; the second one once.
#[tokio::test]
async fn steps_and_iterations_share_what_was_observed() {
    let case = Case::steps(2).observe("bucket", object("Bucket", "bucket", true));
    let asked = AtomicUsize::new(0);
    let script = Script::new().then(move |request| {
        let mut response = request.copy_response();
        if asked.fetch_add(1, Ordering::SeqCst) < 2 {
            response.require("absent", ResourceSelector::named("v1", "ConfigMap", "absent"));
        }
        response
    });
    case.run(&script).await.expect("a plan");

    let calls = script.calls();
    let made: Vec<(&str, usize)> = calls.iter().map(|call| (call.step.as_str(), call.iteration)).collect();
    assert_eq!(made, [("a", 0), ("a", 1), ("b", 0)]);
    let composite: &Value = calls[0].request.observed_composite().object();
    for call in &calls {
        let composed = call.request.observed_composed("bucket").expect("the observed resource").object();
        let which = format!("step {} in iteration {}", call.step, call.iteration);
        assert!(
            ptr::eq(composed, &raw const *case.observed["bucket"].object),
            "{which} has a copy of the composed resource"
        );
        assert!(
            ptr::eq(composite, call.request.observed_composite().object()),
            "{which} has a copy of the XR"
        );
    }
}
