//! An upgrade under load: no call fails, and everything is composed by the revision that it selects.

use super::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What a revision was asked for.
#[derive(Default)]
struct Asked {
    calls: AtomicUsize,
    things: Mutex<BTreeSet<String>>,
}

/// A server that says a word and remembers for whom.
async fn remembering(word: &'static str) -> (SocketAddr, Arc<Asked>) {
    let asked: Arc<Asked> = Arc::default();
    let memory = asked.clone();
    let address = serve(Scripted(move |request: RunFunctionRequest| {
        memory.calls.fetch_add(1, Ordering::SeqCst);
        memory.things.lock().unwrap().insert(request.observed_composite().name().to_owned());
        Ok(answer(request, word))
    }))
    .await;
    (address, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_under_load_loses_no_call_and_serves_every_choice() {
    let user = with_things(&[]).await;
    let two = ", activeRevisionLimit: 2";
    let (first, asked_first) = remembering("one").await;
    user.apply(&version("v1", first, "release-channel: stable", two)).await;
    until_current(&user, &revision("v1", first)).await;
    for (name, fields) in [("stable", by_label("stable")), ("default", json!({}))] {
        user.apply(&calling(name, &json!({}), &fields)).await;
    }
    let names: Vec<String> =
        (0..count()).map(|i| format!("{}-{i}", if i % 2 == 0 { "stable" } else { "default" })).collect();
    for name in &names {
        user.apply(&thing(name, name.split('-').next().expect("a Composition"))).await;
    }
    for name in &names {
        until_says(&user, name, "one").await;
    }
    let changing = Changing::start(&user, &names);
    let (second, asked_second) = remembering("two").await;
    let before = asked_first.calls.load(Ordering::SeqCst);
    user.apply(&version("v2", second, "release-channel: alpha", two)).await;
    until_current(&user, &revision("v2", second)).await;
    for name in names.iter().filter(|name| name.starts_with("default")) {
        until_says(&user, name, "two").await;
    }
    // Both serve for a while.
    let served = asked_first.calls.load(Ordering::SeqCst).max(before);
    while asked_first.calls.load(Ordering::SeqCst) < served + count() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(changing.stop().await > 0, "no change failed");
    user.until_idle().await;
    assert_eq!(user.failed_calls(NAME).await, 0);
    for name in &names {
        let thing = user.get(THING, name).await.expect("it is there");
        let word = if name.starts_with("stable") { "one" } else { "two" };
        assert_eq!(
            (&thing["status"]["coolerField"], status_of(&thing, "Synced")),
            (&json!(word), "True"),
            "{name}"
        );
        let events = user.events_of(name).await;
        assert!(events.iter().all(|e| !e.starts_with("Warning")), "{name}: {events:#?}");
    }
    let composed = asked_second.things.lock().unwrap().clone();
    assert!(composed.iter().all(|name| name.starts_with("default")), "{composed:?}");
    // Metrics are by revision.
    for (tag, address) in [("v1", first), ("v2", second)] {
        let package = format!("function_package=\"{PACKAGE}:{tag}\",grpc_target=\"{address}\"");
        assert!(user.counted("function_run_function_request_total", &package).await > 0, "{package}");
    }
}

/// With the response cache on, no revision is given the answers of another.
#[tokio::test(flavor = "multi_thread")]
async fn cached_answers_are_those_of_the_revision_that_is_called() {
    let user = with_things(&["--enable-function-response-cache"]).await;
    let lasting = |word: &'static str| {
        serve(Scripted(move |request: RunFunctionRequest| {
            let mut response = answer(request, word);
            response.set_ttl(std::time::Duration::from_secs(3600));
            Ok(response)
        }))
    };
    let (one, two) = (lasting("one").await, lasting("two").await);
    let limit = ", activeRevisionLimit: 2";
    user.apply(&version("v1", one, "release-channel: stable", limit)).await;
    user.apply(&calling("default", &json!({}), &json!({}))).await;
    user.apply(&thing("default", "default")).await;
    until_says(&user, "default", "one").await;
    user.until_idle().await;
    user.apply(&version("v2", two, "release-channel: alpha", limit)).await;
    until_current(&user, &revision("v2", two)).await;
    poke(&user, "default").await;
    until_says(&user, "default", "two").await;
    user.apply(&calling("default", &json!({}), &by_label("stable"))).await;
    until_says(&user, "default", "one").await;
    user.apply(&calling("default", &json!({}), &by_label("alpha"))).await;
    until_says(&user, "default", "two").await;
}
