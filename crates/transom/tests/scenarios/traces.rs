//! Traces: what a collector is sent of a reconcile.

use super::user::*;
use serde_json::json;
use transom_telemetry::messages::Span;
use transom_telemetry::testing::Collector;

fn attribute<'s>(span: &'s Span, key: &str) -> &'s str {
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    found.and_then(|attribute| attribute.value.as_ref()).map_or("", |value| &value.string_value)
}

/// A reconcile with everything below it.
fn is_complete(spans: &[Span]) -> bool {
    let below = |parent: &Span, name: &str| {
        spans.iter().find(|span| span.name == name && span.parent_span_id == parent.span_id).cloned()
    };
    spans.iter().filter(|span| span.name == "reconcile" && attribute(span, "key").ends_with("one")).any(
        |reconcile| {
            let step = below(reconcile, "step").filter(|step| !attribute(step, "step").is_empty());
            let call = step.and_then(|step| below(&step, "call"));
            let is_called = call.is_some_and(|call| {
                attribute(&call, "function") == "function-dummy" && call.trace_id == reconcile.trace_id
            });
            let written = below(reconcile, "write");
            is_called && written.is_some_and(|write| !attribute(&write, "method").is_empty())
        },
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconcile_its_steps_calls_and_writes_are_traced() {
    let collector = Collector::default();
    let address = collector.start().expect("a port");
    let user = User::with(&["--otlp-endpoint", &format!("http://{address}")]).await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    let step = ("function-dummy", one_map("Thing", "traced").1);
    user.apply(&composition("things", "Thing", &json!({}), &[step])).await;
    user.apply(&object("Thing", "one", "coolField: a")).await;
    user.until_ready(THING, "one").await;
    transom_testkit::process::wait_until("the trace arrives", async || is_complete(&collector.spans())).await;
}
