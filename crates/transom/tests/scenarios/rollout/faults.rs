//! Revisions that do not work: others go on, and what is wrong is said.

use super::*;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use transom_function::testing::serve_verbatim;
use transom_function::{Error, Function, async_trait};

const TWO: &str = ", activeRevisionLimit: 2";

/// An address at which nothing listens.
async fn nowhere() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address")
}

/// A server that answers garbage.
async fn garbage() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            tokio::spawn(async move { connection.write_all(b"HTTP/1.1 418 teapot\r\n\r\n").await });
        }
    });
    address
}

/// A function that answers when it may.
struct Hanging(Arc<Semaphore>);

#[async_trait]
impl Function for Hanging {
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let _may = self.0.acquire().await?;
        Ok(answer(request, "late"))
    }
}

/// A plane with a stable revision, and a thing that selects it.
async fn with_stable(flags: &[&str]) -> (User, SocketAddr) {
    let user = with_things(flags).await;
    let one = saying("one").await;
    user.apply(&version("v1", one, "release-channel: stable", TWO)).await;
    user.apply(&calling("stable", &json!({}), &by_label("stable"))).await;
    user.apply(&calling("alpha", &json!({}), &by_label("alpha"))).await;
    user.apply(&calling("default", &json!({}), &json!({}))).await;
    user.apply(&thing("stable", "stable")).await;
    user.apply(&thing("default", "default")).await;
    until_says(&user, "stable", "one").await;
    until_says(&user, "default", "one").await;
    (user, one)
}

/// "A revision that never becomes healthy leaves the old one active and says so", also after a restart, and it takes over as
/// soon as it is healthy.
#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_never_opens_its_port_leaves_the_old_one_active() {
    for limit in ["", TWO] {
        let mut user = with_things(&[]).await;
        let (one, missing) = (saying("one").await, nowhere().await);
        user.apply(&version("v1", one, "", limit)).await;
        user.apply(&calling("default", &json!({}), &json!({}))).await;
        user.apply(&thing("default", "default")).await;
        until_says(&user, "default", "one").await;
        user.apply(&version("v2", missing, "release-channel: alpha", limit)).await;
        let old = revision("v1", one);
        let words = format!("package revision {old:?} is called instead");
        let unreachable = format!("cannot reach {missing}");
        let says_so = |f: &Value| {
            let message = message_of(f, "Healthy");
            message.contains(&unreachable) && message.ends_with(&words)
        };
        let ill = user.until(FUNCTION, NAME, says_so).await;
        assert_eq!((status_of(&ill, "Healthy"), status_of(&ill, "Installed")), ("False", "True"));
        for _ in 0..2 {
            assert_eq!(states(&user).await, in_order(&["Active", "Active"]));
            poke(&user, "default").await;
            user.until_idle().await;
            until_says(&user, "default", "one").await;
            user.restart(&[]).await;
        }
        // One that chooses it gets its error, and no other revision.
        user.apply(&calling("alpha", &json!({}), &by_label("alpha"))).await;
        user.apply(&thing("alpha", "alpha")).await;
        let failed = user.until(THING, "alpha", |o| message_of(o, "Synced").contains("Unavailable")).await;
        assert!(message_of(&failed, "Synced").contains(&missing.to_string()), "{failed:#}");
        // It opens its port: it takes over, and the old one is deactivated if the limit says so.
        let options = transom_function::ServeOptions {
            insecure: true,
            address: missing.to_string(),
            ..transom_function::ServeOptions::default()
        };
        let _served =
            transom_function::testing::serve_with(Scripted(|r| Ok(answer(r, "two"))), options).await;
        until_current(&user, &revision("v2", missing)).await;
        until_states(&user, &[if limit.is_empty() { "Inactive" } else { "Active" }, "Active"]).await;
        poke(&user, "default").await;
        until_says(&user, "default", "two").await;
        until_says(&user, "alpha", "two").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_hangs_concerns_only_those_that_choose_it() {
    let (user, _) = with_stable(&["--function-call-timeout", "2s"]).await;
    let may = Arc::new(Semaphore::new(0));
    let hanging = serve(Hanging(may.clone())).await;
    user.apply(&version("v2", hanging, "release-channel: alpha", TWO)).await;
    user.until_true(FUNCTION_REVISION, &revision("v2", hanging), "RuntimeHealthy").await;
    user.apply(&thing("alpha", "alpha")).await;
    let words = format!("function {NAME:?} did not answer within 2 s");
    user.until(THING, "alpha", |o| message_of(o, "Synced").contains(&words)).await;
    poke(&user, "stable").await;
    until_says(&user, "stable", "one").await;
    may.add_permits(Semaphore::MAX_PERMITS / 2);
    until_says(&user, "alpha", "late").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_answers_garbage_or_another_request_fails_and_deletes_nothing() {
    let (user, _) = with_stable(&[]).await;
    let good = saying("good").await;
    user.apply(&version("v2", good, "release-channel: alpha", TWO)).await;
    user.apply(&thing("alpha", "alpha")).await;
    until_says(&user, "alpha", "good").await;
    let stale = serve_verbatim(|request| {
        let mut response = answer(request, "stale");
        response.meta.get_or_insert_default().tag = "of another request".to_owned();
        response
    })
    .await;
    for (tag, server, words) in [
        ("v3", garbage().await, "cannot run function"),
        ("v4", stale, "answered another request: the tag of its response is \"of another request\""),
    ] {
        user.apply(&version(tag, server, "release-channel: alpha", TWO)).await;
        let name = revision(tag, server);
        user.until(FUNCTION, NAME, |f| f["status"]["currentRevision"] == *name).await;
        let failed = user.until(THING, "alpha", |o| message_of(o, "Synced").contains(words)).await;
        let message = message_of(&failed, "Synced");
        assert!(message.contains("step \"words\"") && message.contains(NAME), "{message}");
        assert_eq!(
            user.composed(MAP, "alpha").await[0]["data"]["says"],
            "good",
            "nothing is deleted or changed"
        );
    }
    // A function that leaves the tag out is answered as before.
    let untagged = serve_verbatim(|request| {
        let mut response = answer(request, "untagged");
        response.meta.get_or_insert_default().tag.clear();
        response
    })
    .await;
    user.apply(&version("v5", untagged, "release-channel: alpha", TWO)).await;
    until_says(&user, "alpha", "untagged").await;
}

/// A revision that a user deactivates or deletes is not called any longer.
#[tokio::test(flavor = "multi_thread")]
async fn revisions_that_are_deactivated_or_deleted_are_not_called() {
    let user = with_things(&[]).await;
    let manual = ", revisionActivationPolicy: Manual";
    let (one, two) = (saying("one").await, saying("two").await);
    let names = [revision("v1", one), revision("v2", two)];
    for ((tag, server), name) in [("v1", one), ("v2", two)].into_iter().zip(&names) {
        user.apply(&version(tag, server, &format!("tag: {tag}"), manual)).await;
        user.until(FUNCTION_REVISION, name, |_| true).await;
        user.patch(FUNCTION_REVISION, name, json!({"spec": {"desiredState": "Active"}})).await;
        user.until_true(FUNCTION_REVISION, name, "RuntimeHealthy").await;
    }
    for (name, revision) in [("one", &names[0]), ("two", &names[1])] {
        user.apply(&calling(name, &json!({}), &json!({"functionRevisionRef": {"name": revision}}))).await;
        user.apply(&thing(name, name)).await;
        until_says(&user, name, name).await;
    }
    user.patch(FUNCTION_REVISION, &names[0], json!({"spec": {"desiredState": "Inactive"}})).await;
    user.until(THING, "one", |o| message_of(o, "Synced").contains("is not active")).await;
    user.delete(FUNCTION_REVISION, &names[1], None).await;
    user.until(THING, "two", |o| status_of(o, "Synced") == "False").await;
    for name in ["one", "two"] {
        assert_eq!(user.composed(MAP, name).await.len(), 1, "nothing is deleted");
    }
}
