//! Spans as a collector receives them: with their parents, their attributes, and the context that is passed to functions.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;
use transom_telemetry::testing::Collector;
use transom_telemetry::{install, traced, traceparent};

#[tokio::test]
async fn spans_arrive_with_their_parents_and_their_context_is_passed_on() {
    assert_eq!(traced("before", Vec::new, async { traceparent() }).await, None, "off by default");
    let collector = Collector::default();
    let address = collector.start().unwrap();
    for wrong in ["localhost:4317", "https://localhost:4317", "", "nonsense"] {
        assert!(install(wrong, "test").is_err(), "{wrong}");
    }
    install(&format!("http://{address}"), "test").unwrap();
    let passed_on = traced("reconcile", || vec![("key", "default/one".to_owned())], async {
        traced("call", || vec![("function", "f".to_owned())], async { traceparent() }).await
    })
    .await
    .unwrap();
    for _ in 0..1000 {
        if collector.spans().len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let spans = collector.spans();
    let find = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let (reconcile, call) = (find("reconcile"), find("call"));
    assert_eq!(call.parent_span_id, reconcile.span_id);
    assert_eq!(call.trace_id, reconcile.trace_id);
    assert!(reconcile.parent_span_id.is_empty());
    assert!(reconcile.start_time_unix_nano <= call.start_time_unix_nano);
    assert!(call.end_time_unix_nano <= reconcile.end_time_unix_nano);
    assert_eq!(reconcile.attributes[0].key, "key");
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(passed_on, format!("00-{}-{}-01", hex(&call.trace_id), hex(&call.span_id)));
    let requests = collector.requests();
    let service = &requests[0].resource_spans[0].resource.as_ref().unwrap().attributes[0];
    assert_eq!(
        (service.key.as_str(), service.value.as_ref().unwrap().string_value.as_str()),
        ("service.name", "test")
    );
}
