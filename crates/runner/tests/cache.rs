//! Answers are given again while they hold, and never otherwise.

use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use transom_compose::{FunctionRunner, StepRef, WantedRevision};
use transom_function::testing::RequestBuilder;
use transom_function::{
    Error, Function, Resource, Resources, RunFunctionRequest, RunFunctionResponse, Schema, Struct,
    async_trait,
};
use transom_metrics::MetricsRegistry;
use transom_runner::{
    Account, CacheOptions, Cached, Callable, InProcess, Instance, RevisionId, RevisionSpec, Router, Source,
};
use transom_xapi::function::RevisionTraits;

/// Counts its calls and says which one this is, for how long its input says.
#[derive(Default)]
struct Counter(AtomicUsize);

#[async_trait]
impl Function for Counter {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let call = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        let mut response = request.start_response();
        response.set_context("call", json!(call));
        let input = request.input.as_ref().map(|input| input.fields().clone()).unwrap_or_default();
        response.meta.as_mut().unwrap().ttl = None;
        if let Some(seconds) = input.get("ttl").and_then(serde_json::Value::as_u64) {
            response.set_ttl(Duration::from_secs(seconds));
        }
        if input.get("fatal").is_some() {
            response.fatal("no");
        }
        if let Some(size) = input.get("size").and_then(serde_json::Value::as_u64) {
            response.set_context("big", json!("x".repeat(usize::try_from(size)?)));
        }
        Ok(response)
    }
}

struct Bench {
    functions: Arc<Router>,
    cached: Arc<Cached>,
    metrics: MetricsRegistry,
}

fn bench(options: CacheOptions) -> Bench {
    let metrics = MetricsRegistry::default();
    let functions = Arc::new(Router::default().counting(Account::new(&metrics)));
    functions.run_in_process("f", Arc::new(Counter::default()));
    let cached = Arc::new(Cached::new(functions.clone(), options));
    Bench { functions, cached, metrics }
}

impl Bench {
    /// Which call answers.
    async fn call(&self, request: RunFunctionRequest) -> u64 {
        let response = self.answer(request).await;
        response.context.unwrap().fields()["call"].as_u64().unwrap()
    }

    async fn answer(&self, request: RunFunctionRequest) -> RunFunctionResponse {
        let step = StepRef { name: "step", ..StepRef::calling("f") };
        self.cached.run(step, request).await.unwrap().response
    }

    /// The value of a counter, or how often a duration was measured.
    fn count(&self, name: &str) -> u64 {
        let suffix = if name.ends_with("_seconds") { "_count" } else { "" };
        let series = format!("{name}{suffix}{{function_name=\"f\"");
        let text = self.metrics.render();
        let values =
            text.lines().filter(|line| line.starts_with(&series)).filter_map(|line| line.rsplit(' ').next());
        values.map(|value| value.parse::<u64>().unwrap()).sum()
    }
}

fn request(tag: &str, input: serde_json::Value) -> RunFunctionRequest {
    RequestBuilder::new(json!({"kind": "XR"})).tag(tag).input(input).build()
}

fn minute() -> RunFunctionRequest {
    request("a", json!({"ttl": 60}))
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_given_again_while_it_holds() {
    let bench = bench(CacheOptions::default());
    assert_eq!(bench.call(minute()).await, 1);
    tokio::time::advance(Duration::from_secs(40)).await;
    let again = bench.answer(minute()).await;
    assert_eq!(again.context.unwrap().fields()["call"], 1);
    assert_eq!(again.meta.unwrap().ttl.unwrap().seconds, 20, "it holds for what is left");
    assert_eq!(bench.call(request("b", json!({"ttl": 60}))).await, 2, "another request");
    tokio::time::advance(Duration::from_millis(19_900)).await;
    let last = bench.answer(minute()).await;
    assert_eq!(last.meta.unwrap().ttl.unwrap().seconds, 1, "a remaining TTL below a second is rounded up");
    tokio::time::advance(Duration::from_millis(100)).await;
    assert_eq!(bench.call(minute()).await, 3, "it no longer holds");
    for (name, expected) in [
        ("function_run_function_response_cache_hits_total", 2),
        ("function_run_function_response_cache_misses_total", 3),
        ("function_run_function_response_cache_writes_total", 3),
        ("function_run_function_response_cache_read_seconds", 2),
        ("function_run_function_response_cache_write_seconds", 3),
        ("function_run_function_response_cache_errors_total", 0),
        ("function_run_function_request_total", 3),
        ("function_run_function_response_total", 3),
        ("function_run_function_seconds", 3),
    ] {
        assert_eq!(bench.count(name), expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_leave_memory_when_they_end() {
    let bench = bench(CacheOptions::default());
    let cache = bench.cached.clone();
    let expiry = tokio::spawn(async move { cache.expire().await });
    bench.call(minute()).await;
    bench.call(request("b", json!({"ttl": 30}))).await;
    assert_eq!(bench.cached.size().0, 2);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(bench.cached.size().0, 1);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(bench.cached.size(), (0, 0));
    assert_eq!(bench.count("function_run_function_response_cache_deletes_total"), 2);
    let written = bench.count("function_run_function_response_cache_bytes_written_total");
    assert!(written > 0);
    assert_eq!(bench.count("function_run_function_response_cache_bytes_deleted_total"), written);
    expiry.abort();
}

#[tokio::test]
async fn what_may_not_be_kept_is_not() {
    let bench = bench(CacheOptions::default());
    for input in [json!({}), json!({"ttl": 0}), json!({"ttl": 60, "fatal": true})] {
        let first = bench.call(request("a", input.clone())).await;
        assert_eq!(bench.call(request("a", input.clone())).await, first + 1, "{input}");
    }
    let first = bench.call(request("", json!({"ttl": 60}))).await;
    assert_eq!(bench.call(request("", json!({"ttl": 60}))).await, first + 1, "without a tag");
    assert_eq!(bench.cached.size(), (0, 0));
}

#[tokio::test]
async fn an_iteration_is_never_answered_with_another_ones_answer() {
    let bench = bench(CacheOptions::default());
    let item = |says: &str| Resources { items: vec![Resource::new(json!({"data": says})).unwrap()] };
    let mut requests = vec![minute()];
    let mut with = |change: &dyn Fn(&mut RunFunctionRequest)| {
        let mut request = minute();
        change(&mut request);
        requests.push(request);
    };
    // The tag is that of the first iteration throughout.
    with(&|r| drop(r.required_resources.insert("it".to_owned(), Resources::default())));
    with(&|r| drop(r.required_resources.insert("it".to_owned(), item("a"))));
    with(&|r| drop(r.required_resources.insert("it".to_owned(), item("b"))));
    with(&|r| drop(r.required_resources.insert("other".to_owned(), item("b"))));
    with(&|r| drop(r.extra_resources.insert("it".to_owned(), item("b"))));
    with(&|r| drop(r.required_schemas.insert("it".to_owned(), Schema::default())));
    with(&|r| r.context = Some(Struct::try_from(json!({"k": "v"})).unwrap()));
    for (call, request) in (1..).zip(&requests) {
        assert_eq!(bench.call(request.clone()).await, call, "{request:?}");
    }
    for (call, request) in (1..).zip(&requests) {
        assert_eq!(bench.call(request.clone()).await, call, "and each again: {request:?}");
    }
}

#[tokio::test]
async fn a_changed_function_is_asked_itself() {
    let bench = bench(CacheOptions::default());
    let instance: Arc<dyn Instance> = Arc::new(InProcess::new(Arc::new(Counter::default())));
    let use_revision = |revision: &str, package: &str| {
        let id = RevisionId { function: "f".to_owned(), revision: revision.to_owned() };
        let (source, traits) = (Source::Builtin("f".to_owned()), RevisionTraits::default());
        let number = i64::from(revision == "f-2");
        let spec = RevisionSpec {
            id,
            number,
            package: package.to_owned(),
            source,
            traits,
            image: Default::default(),
            config: Default::default(),
        };
        bench.functions.set(&spec, Callable::Ready(instance.clone()));
    };
    use_revision("f-1", "example.org/f:v1");
    bench.call(minute()).await;
    use_revision("f-1", "example.org/f:v1");
    assert_eq!(bench.call(minute()).await, 1, "nothing changed");
    use_revision("f-1", "example.org/f:v2");
    assert_eq!(bench.call(minute()).await, 2, "another package");
    use_revision("f-2", "example.org/f:v2");
    assert_eq!(bench.call(minute()).await, 3, "another revision");
    let first = StepRef { revision: WantedRevision::Named("f-1"), ..StepRef::calling("f") };
    let answer = bench.cached.run(first, minute()).await.unwrap();
    assert_eq!(answer.revision.as_deref(), Some("f-1"));
    assert_eq!(bench.call(minute()).await, 3, "each revision has its own answers");
    bench.functions.remove("f");
    bench.functions.run_in_process("f", Arc::new(Counter(AtomicUsize::new(100))));
    assert_eq!(bench.call(minute()).await, 101, "another instance");
    bench.functions.remove("f");
    let step = StepRef { name: "step", ..StepRef::calling("f") };
    assert!(bench.cached.run(step, minute()).await.is_err(), "it cannot be called any longer");
}

#[tokio::test(start_paused = true)]
async fn time_and_memory_are_bounded() {
    let max_ttl = Duration::from_secs(10);
    let bench = bench(CacheOptions { max_ttl, max_bytes: 10_000 });
    bench.call(minute()).await;
    tokio::time::advance(max_ttl).await;
    assert_eq!(bench.call(minute()).await, 2, "a minute is longer than allowed");
    bench.call(request("huge", json!({"ttl": 5, "size": 20_000}))).await;
    assert_eq!(bench.cached.size().0, 1, "too large to be kept");
    for i in 0..100 {
        bench.call(request(&i.to_string(), json!({"ttl": 5, "size": 1000}))).await;
        assert!(bench.cached.size().1 <= 10_000);
    }
    let before = bench.call(request("99", json!({"ttl": 5, "size": 1000}))).await;
    assert_eq!(before, 103, "the last one is still there");
    assert_eq!(bench.call(minute()).await, 2, "and so is what holds longest");
}
