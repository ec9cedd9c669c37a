//! Edge cases 89 to 91: where functions are, whether their answers are given again, and what they can do.

use super::calling::{as_it_is, asking, count, until_called};
use crate::scenarios::user::*;
use futures_util::stream;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use transom_function::RunFunctionResponse;
use transom_object::meta;
use transom_testkit::process::WAIT_LIMIT;

const NEW: &str = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";
const OLD: &str = "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction";
const CACHED: &str = "--enable-function-response-cache";
/// Everything is looked at every second, whatever answers say of how long they hold.
const LOOKING: [&str; 3] = ["--enable-realtime-compositions=false", "--poll-interval", "1s"];
const HITS: &str = "function_run_function_response_cache_hits_total";
const WRITES: &str = "function_run_function_response_cache_writes_total";

/// A response with one normal result, in as few bytes as it takes.
fn saying(words: &str) -> Vec<u8> {
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
    let result = [&[0x08, 3, 0x12, length(words.as_bytes())], words.as_bytes()].concat();
    let message = [&[0x1a, length(&result)], &*result].concat();
    [&[0, 0, 0, 0, length(&message)], &*message].concat()
}

/// A gRPC server that knows nothing of functions: it answers every call of a path with a message or a status.
async fn answering(
    script: impl Fn(&str) -> Result<Vec<u8>, &'static str> + Clone + Send + 'static,
) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let script = script.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = script(request.uri().path());
                async move {
                    let _ = request.into_body().collect().await;
                    let mut trailers = HeaderMap::new();
                    trailers.insert("grpc-status", answer.as_ref().err().unwrap_or(&"0").parse().unwrap());
                    let message = answer.ok().map(|bytes| Frame::data(Bytes::from(bytes)));
                    let frames = message.into_iter().chain([Frame::trailers(trailers)]);
                    let body = StreamBody::new(stream::iter(frames.map(Ok::<_, Infallible>)));
                    Response::builder().header("content-type", "application/grpc").body(body)
                }
            });
            let serving = http2::Builder::new(TokioExecutor::new());
            tokio::spawn(serving.serve_connection(TokioIo::new(connection), service));
        }
    });
    address
}

/// A plane whose things are composed by a function with these annotations.
async fn with_function(flags: &[&str], annotations: &str) -> User {
    let user = User::with(flags).await;
    user.apply(&function("remote", annotations)).await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("asks", "Thing", &json!({}), &[("remote", Value::Null)])).await;
    user
}

fn looking<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [&LOOKING, flags].concat()
}

/// Waits until a thing is ready and everything that comes of that is over.
async fn until_at_rest(user: &User) {
    user.apply(&object("Thing", "one", "")).await;
    user.until_ready(THING, "one").await;
    user.until_idle().await;
}

async fn until_counted(user: &User, name: &str, at_least: u64) {
    let started = Instant::now();
    while user.counted(name, "").await < at_least {
        assert!(started.elapsed() < WAIT_LIMIT, "{name} stays below {at_least}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_89_a_function_that_runs_nowhere_cannot_be_called() {
    // No process listens on that port.
    let nowhere = function("remote", "").replace("example.org/", "127.0.0.1:1/");
    let invalid = function("remote", "transom.io/endpoint: ''");
    for (manifest, installed, why) in [
        (nowhere, "False", "cannot unpack package: 127.0.0.1:1/remote:v1: "),
        (invalid, "True", "\"\" is not an address of a function"),
    ] {
        let user = User::new().await;
        user.apply(&manifest).await;
        user.apply(&definition("Thing", "Cluster", "")).await;
        user.apply(&composition("asks", "Thing", &json!({}), &[("remote", Value::Null)])).await;
        let ill = user.until(FUNCTION, "remote", |o| message_of(o, "Healthy").contains(why)).await;
        assert_eq!((status_of(&ill, "Installed"), status_of(&ill, "Healthy")), (installed, "False"));
        user.apply(&object("Thing", "one", "")).await;
        let words = format!(
            "cannot run Composition pipeline step \"step-0\": there is no function \"remote\": {why}"
        );
        let failed = user.until(THING, "one", |o| message_of(o, "Synced").contains(&words)).await;
        assert_eq!(reason_of(&failed, "Synced"), "ReconcileError");
        let here = |_: &_, response: &mut RunFunctionResponse| {
            response.normal("here I am");
            Ok(())
        };
        user.function("remote", here).await;
        user.until_ready(THING, "one").await;
        user.until_event("one", "here I am").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_89_the_old_version_is_spoken_where_the_new_is_not() {
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    let asked = paths.clone();
    let address = answering(move |path| {
        // Its health is asked for as well, which it does not tell.
        if !path.starts_with("/grpc.health.v1.Health/") {
            asked.lock().unwrap().push(path.to_owned());
        }
        if path == OLD { Ok(saying("as of old")) } else { Err("12") }
    })
    .await;
    let user = with_function(&[], &format!("transom.io/endpoint: '{address}'")).await;
    user.apply(&object("Thing", "one", "")).await;
    user.until_ready(THING, "one").await;
    user.until_event("one", "Normal ComposeResources Pipeline step \"step-0\": as of old").await;
    assert_eq!(paths.lock().unwrap()[..2], [NEW, OLD]);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_90_an_answer_that_holds_is_given_again() {
    let (mut user, calls) = asking(&looking(&[CACHED]), as_it_is, |request, response| {
        response.set_ttl(Duration::from_secs(3600));
        let cool = request.observed_composite().get_str("spec.coolField").unwrap_or("none").to_owned();
        response.composite().set("status.coolerField", cool)?;
        Ok(())
    })
    .await;
    until_at_rest(&user).await;
    until_counted(&user, HITS, 1).await;
    let before = count(&calls);
    let hits = user.counted(HITS, "").await;
    until_counted(&user, HITS, hits + 2).await;
    assert_eq!(count(&calls), before, "it was reconciled, and no function called");
    // Another question has another tag.
    user.patch(THING, "one", json!({"spec": {"coolField": "cool"}})).await;
    user.until(THING, "one", |o| o["status"]["coolerField"] == "cool").await;
    assert!(count(&calls) > before);
    // A new process knows no answers.
    user.until_idle().await;
    until_counted(&user, HITS, hits + 4).await;
    let before = count(&calls);
    user.restart(&looking(&[CACHED])).await;
    until_called(&calls, before + 1).await;
    until_counted(&user, HITS, 2).await;
    assert_eq!(user.get(THING, "one").await.unwrap()["status"]["coolerField"], "cool");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_90_an_answer_is_kept_as_long_as_it_holds_and_no_longer_than_allowed() {
    for (flags, ttl) in [
        (&[CACHED, "--xfn-cache-max-ttl", "1500ms"][..], Duration::from_secs(3600)),
        (&[CACHED], Duration::from_millis(1500)),
    ] {
        let (user, calls) = asking(&looking(flags), as_it_is, move |_, response| {
            response.set_ttl(ttl);
            Ok(())
        })
        .await;
        until_at_rest(&user).await;
        let (calls_before, written) = (count(&calls), user.counted(WRITES, "").await);
        until_called(&calls, calls_before + 2).await;
        until_counted(&user, WRITES, written + 2).await;
        assert!(user.counted(HITS, "").await > 0, "but it was given again in between");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_90_what_does_not_hold_is_not_kept() {
    // Without a time, and without the flag: each look is a call.
    for (flags, ttl) in [(&[CACHED][..], None), (&[], Some(Duration::from_secs(3600)))] {
        let (user, calls) = asking(&looking(flags), as_it_is, move |_, response| {
            if let Some(ttl) = ttl {
                response.set_ttl(ttl);
            }
            Ok(())
        })
        .await;
        until_at_rest(&user).await;
        until_called(&calls, count(&calls) + 2).await;
        assert_eq!((user.counted(HITS, "").await, user.counted(WRITES, "").await), (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_90_errors_are_passed_on_and_not_kept() {
    let well = Arc::new(AtomicBool::new(false));
    let is_well = well.clone();
    let address =
        answering(move |_| if is_well.load(Ordering::SeqCst) { Ok(saying("better now")) } else { Err("13") })
            .await;
    let user = with_function(&[CACHED], &format!("transom.io/endpoint: '{address}'")).await;
    user.apply(&object("Thing", "one", "")).await;
    let words = "cannot run Composition pipeline step \"step-0\": ";
    let failed = user.until(THING, "one", |o| message_of(o, "Synced").contains(words)).await;
    assert_eq!(reason_of(&failed, "Synced"), "ReconcileError");
    assert_eq!(user.counted(WRITES, "").await, 0);
    well.store(true, Ordering::SeqCst);
    user.until_ready(THING, "one").await;
    user.until_event("one", "better now").await;
}

/// A revision of a function, and what it says it can do.
async fn revision(user: &User, name: &str, labels: &str, state: &str, capabilities: Value) {
    user.function_revision(name, labels, state, 1).await;
    user.set_capabilities(name, capabilities).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_91_only_active_revisions_of_the_functions_of_a_pipeline_must_be_capable() {
    let user = User::new().await;
    for function in ["function-dummy", "function-auto-ready"] {
        user.pause_function(function).await;
    }
    let of = |function: &str| format!("pkg.crossplane.io/package: {function}");
    let other = json!(["operation"]);
    revision(&user, "inactive", &of("function-dummy"), "Inactive", other.clone()).await;
    revision(&user, "unlabelled", "", "Active", other.clone()).await;
    revision(&user, "unmatched", &of("function-auto-ready"), "Active", other.clone()).await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("a", "Thing", &json!({}), &[one_map("Thing", "a")])).await;
    user.apply(&object("Thing", "one", "")).await;
    user.until_ready(THING, "one").await;
    let name = meta::name(&user.list(REVISION).await[0]).to_owned();
    let valid = user.until_true(REVISION, &name, "ValidPipeline").await;
    assert_eq!(reason_of(&valid, "ValidPipeline"), "ValidPipeline");
    revision(&user, "incapable", &of("function-dummy"), "Active", other).await;
    let invalid = user.until(REVISION, &name, |o| status_of(o, "ValidPipeline") == "False").await;
    assert_eq!(reason_of(&invalid, "ValidPipeline"), "MissingCapabilities");
    let words = "function \"function-dummy\" (active revision \"incapable\") is missing required capabilities: composition";
    assert_eq!(message_of(&invalid, "ValidPipeline"), words);
    user.until_event(&name, &format!("Warning CheckCapabilities {words}")).await;
    user.patch(FUNCTION_REVISION, "incapable", json!({"spec": {"desiredState": "Inactive"}})).await;
    user.until_true(REVISION, &name, "ValidPipeline").await;
    // However it is spelled.
    revision(&user, "capable", &of("function-dummy"), "Active", json!(["Composition"])).await;
    user.until_idle().await;
    let valid = user.get(REVISION, &name).await.unwrap();
    assert_eq!(status_of(&valid, "ValidPipeline"), "True");
}
