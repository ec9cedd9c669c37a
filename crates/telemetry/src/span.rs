//! Spans: what is done, from when to when, within which other.

use crate::export::EXPORTER;
use crate::messages::{KeyValue, Span};
use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// What is recorded of a span besides its name.
pub type Attributes = Vec<(&'static str, String)>;

/// The span that code runs in.
#[derive(Clone, Copy)]
struct Context {
    trace_id: u128,
    span_id: u64,
}

tokio::task_local! {
    static CURRENT: Context;
}

const INTERNAL: i32 = 1;

/// Runs a future as a span. The attributes are asked for only if spans are exported.
pub async fn traced<F: Future>(
    name: &'static str,
    attributes: impl FnOnce() -> Attributes,
    future: F,
) -> F::Output {
    let Some(exporter) = EXPORTER.get() else { return future.await };
    let parent = CURRENT.try_with(|context| *context).ok();
    let trace_id =
        parent.map_or_else(|| (u128::from(random()) << 64) | u128::from(random()), |parent| parent.trace_id);
    let context = Context { trace_id, span_id: random() };
    let start_time_unix_nano = now();
    let output = CURRENT.scope(context, future).await;
    exporter.add(Span {
        trace_id: trace_id.to_be_bytes().to_vec(),
        span_id: context.span_id.to_be_bytes().to_vec(),
        parent_span_id: parent.map(|parent| parent.span_id.to_be_bytes().to_vec()).unwrap_or_default(),
        name: name.to_owned(),
        kind: INTERNAL,
        start_time_unix_nano,
        end_time_unix_nano: now(),
        attributes: attributes().into_iter().map(|(key, value)| KeyValue::text(key, value)).collect(),
    });
    output
}

/// The current span in the form of the W3C header `traceparent`, if there is one.
pub fn traceparent() -> Option<String> {
    let context = CURRENT.try_with(|context| *context).ok()?;
    Some(format!("00-{:032x}-{:016x}-01", context.trace_id, context.span_id))
}

/// A number that is not zero, and that no other span has with overwhelming probability. The keys of the standard library's hash are
/// random.
fn random() -> u64 {
    RandomState::new().hash_one(now()).max(1)
}

/// Nanoseconds since the epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
