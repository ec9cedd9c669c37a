//! "Composition Changes": which revision answers for a step.

use super::*;

const THREE: &str = ", activeRevisionLimit: 3";

/// A plane with three active revisions of a function: a stable one, and two with the label alpha.
async fn with_three() -> (User, [String; 3]) {
    let user = with_things(&[]).await;
    let mut names = Vec::new();
    for (tag, word, channel) in [("v1", "one", "stable"), ("v2", "two", "alpha"), ("v3", "three", "alpha")] {
        let server = saying(word).await;
        user.apply(&version(tag, server, &format!("release-channel: {channel}"), THREE)).await;
        names.push(revision(tag, server));
        until_current(&user, &revision(tag, server)).await;
    }
    until_states(&user, &["Active", "Active", "Active"]).await;
    (user, names.try_into().expect("three"))
}

/// "1. If functionRevisionRef is specified, the revision will be fetched directly by name. 2. If functionRevisionSelector is
/// specified, the relevant matchLabels will be used … 3. When iterating over multiple returned revisions …, the highest
/// numbered active revision will be used."
#[tokio::test(flavor = "multi_thread")]
async fn by_name_by_labels_or_the_highest_number() {
    let (user, [one, two, three]) = with_three().await;
    let named = |name: &str| json!({"functionRevisionRef": {"name": name}});
    let both = json!({"functionRevisionRef": {"name": one}, "functionRevisionSelector": by_label("alpha")["functionRevisionSelector"]});
    for (name, fields, word, composer) in [
        ("default", json!({}), "three", None),
        ("named", named(&two), "two", Some(&two)),
        ("labelled", by_label("stable"), "one", Some(&one)),
        ("several", by_label("alpha"), "three", Some(&three)),
        ("both", both, "one", Some(&one)),
    ] {
        user.apply(&calling(name, &json!({}), &fields)).await;
        user.apply(&thing(name, name)).await;
        let thing = until_says(&user, name, word).await;
        assert_eq!(composed_by(&thing), composer.into_iter().collect::<Vec<_>>(), "{name}");
        // The fields are in the CompositionRevision.
        let reference = &thing["spec"]["crossplane"]["compositionRevisionRef"]["name"];
        let revision = user.get(REVISION, reference.as_str().expect("a name")).await.expect("it is there");
        for (field, value) in fields.as_object().expect("fields") {
            assert_eq!(&revision["spec"]["pipeline"][0][field], value, "{name}");
        }
        assert_eq!(message_of(&revision, "ValidPipeline"), "");
        let events = user.events_of(name).await;
        assert!(
            events.iter().filter(|e| e.contains("SelectComposition") || e.contains("Compose")).count() <= 3,
            "{events:?}"
        );
    }
    // A newer revision with the labels, and another without: those that choose follow at once.
    let four = saying("four").await;
    user.apply(&version("v4", four, "release-channel: alpha", ", activeRevisionLimit: 4")).await;
    until_says(&user, "several", "four").await;
    until_current(&user, &revision("v4", four)).await;
    user.until_idle().await;
    for (name, word) in [("named", "two"), ("labelled", "one"), ("both", "one")] {
        poke(&user, name).await;
        until_says(&user, name, word).await;
    }
    poke(&user, "default").await;
    until_says(&user, "default", "four").await;
    // Labels move to another revision.
    user.apply(&version("v4", four, "release-channel: stable", ", activeRevisionLimit: 4")).await;
    until_says(&user, "labelled", "four").await;
    until_says(&user, "several", "three").await;
}

/// "If no active function revision is found for a pipeline step, the composition pipeline will fail. In this case, the
/// composition controller should set an error condition on the XR and raise an event."
#[tokio::test(flavor = "multi_thread")]
async fn without_an_active_revision_the_pipeline_fails_and_nothing_is_deleted() {
    let (user, [one, ..]) = with_three().await;
    user.apply(&calling("named", &json!({}), &json!({"functionRevisionRef": {"name": one}}))).await;
    user.apply(&calling("labelled", &json!({}), &by_label("stable"))).await;
    for name in ["named", "labelled"] {
        user.apply(&thing(name, name)).await;
        until_says(&user, name, "one").await;
    }
    // A fourth revision deactivates the first.
    let four = saying("four").await;
    user.apply(&version("v4", four, "release-channel: alpha", THREE)).await;
    until_states(&user, &["Inactive", "Active", "Active", "Active"]).await;
    let by_name = format!("FunctionRevision {one:?}, which functionRevisionRef names, is not active");
    let by_labels = "it has no active revision with the labels release-channel=stable";
    for (name, words) in [("named", by_name.as_str()), ("labelled", by_labels)] {
        let failed = user.until(THING, name, |o| message_of(o, "Synced").contains(words)).await;
        let message = message_of(&failed, "Synced").to_owned();
        assert!(message.contains("cannot run Composition pipeline step \"words\""), "{message}");
        assert!(
            message.contains(&format!("function {NAME:?}")) && message.contains("active are "),
            "{message}"
        );
        assert_eq!(reason_of(&failed, "Synced"), "ReconcileError");
        user.until_event(name, "Warning ComposeResources cannot compose resources: cannot run").await;
        user.until_event(name, words).await;
        assert_eq!(user.composed(MAP, name).await.len(), 1, "nothing is deleted");
    }
    // What it looks for is there again.
    user.apply(&version("v4", four, "release-channel: alpha", ", activeRevisionLimit: 4")).await;
    until_says(&user, "named", "one").await;
    until_says(&user, "labelled", "one").await;
    // A revision that does not exist, a function that does not exist.
    user.apply(&calling("typo", &json!({}), &json!({"functionRevisionRef": {"name": "nothing"}}))).await;
    user.apply(&thing("typo", "typo")).await;
    user.until(THING, "typo", |o| message_of(o, "Synced").contains("FunctionRevision \"nothing\"")).await;
    user.apply(&composition("unknown", "Thing", &json!({}), &[("function-unknown", Value::Null)])).await;
    user.apply(&thing("unknown", "unknown")).await;
    user.until(THING, "unknown", |o| message_of(o, "Synced").contains("no such Function is installed")).await;
    // A built-in that has no Function object.
    user.apply(&composition("builtin", "Thing", &json!({}), &[("function-auto-ready", Value::Null)])).await;
    user.apply(&thing("builtin", "builtin")).await;
    let words = "function-auto-ready is built in: apply a Function of that name";
    user.until(THING, "builtin", |o| message_of(o, "Synced").contains(words)).await;
}

/// Whatever waits for a function is composed as soon as that can be called.
#[tokio::test(flavor = "multi_thread")]
async fn those_that_wait_for_a_revision_are_woken() {
    let user = with_things(&[]).await;
    user.apply(&calling("default", &json!({}), &json!({}))).await;
    user.apply(&calling("alpha", &json!({}), &by_label("alpha"))).await;
    for name in ["default", "alpha"] {
        user.apply(&thing(name, name)).await;
        user.until(THING, name, |o| message_of(o, "Synced").contains("no such Function is installed")).await;
    }
    let one = saying("one").await;
    user.apply(&version("v1", one, "", THREE)).await;
    until_says(&user, "default", "one").await;
    let words = "no active revision with the labels release-channel=alpha";
    user.until(THING, "alpha", |o| message_of(o, "Synced").contains(words)).await;
    user.apply(&version("v1", one, "release-channel: alpha", THREE)).await;
    until_says(&user, "alpha", "one").await;
    // Deleted with its Function.
    user.delete(FUNCTION, NAME, None).await;
    user.until(THING, "alpha", |o| message_of(o, "Synced").contains("no such Function is installed")).await;
    assert_eq!(user.composed(MAP, "alpha").await.len(), 1, "nothing is deleted");
}

/// A step may pin an image, whatever its Function is called.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_can_be_pinned_by_its_digest() {
    let user = with_things(&[]).await;
    let digest = |n: u8| Digest::of(&[n]);
    let image = |n: u8| format!("{PACKAGE}@{}", digest(n));
    let installed = |n: u8, address: SocketAddr| {
        version("v1", address, "", THREE).replace(&format!("{PACKAGE}:v1"), &image(n))
    };
    let (one, two) = (saying("one").await, saying("two").await);
    user.apply(&calling("pinned", &json!({}), &json!({"function": image(1)}))).await;
    user.apply(&thing("pinned", "pinned")).await;
    let words = format!(
        "there is no active FunctionRevision with the image {0}: install a Function with spec.package: {0}",
        image(1)
    );
    user.until(THING, "pinned", |o| message_of(o, "Synced").contains(&words)).await;
    user.apply(&installed(1, one)).await;
    until_says(&user, "pinned", "one").await;
    user.apply(&installed(2, two)).await;
    until_states(&user, &["Active", "Active"]).await;
    user.apply(&calling("newest", &json!({}), &json!({}))).await;
    user.apply(&thing("newest", "newest")).await;
    until_says(&user, "newest", "two").await;
    user.until_idle().await;
    poke(&user, "pinned").await;
    let pinned = until_says(&user, "pinned", "one").await;
    assert_eq!(composed_by(&pinned).len(), 1);
    for (fields, words) in [
        (json!({"function": PACKAGE}), "spec.pipeline[0].function"),
        (json!({"function": format!("{PACKAGE}:v1")}), "spec.pipeline[0].function"),
        (json!({"function": image(1), "functionRevisionRef": {"name": "x"}}), "need functionRef"),
    ] {
        let refusal = user.refusal(&calling("refused", &json!({}), &fields)).await;
        assert!(refusal.contains(words), "{refusal}");
    }
}

/// The log has the results of functions, with function and revision.
#[tokio::test(flavor = "multi_thread")]
async fn the_debug_log_names_revisions_and_results() {
    let user = with_things(&["-v"]).await;
    let server = serve(Scripted(|request| {
        let mut response = answer(request, "one");
        response.normal("all is well");
        Ok(response)
    }))
    .await;
    user.apply(&version("v1", server, "", THREE)).await;
    user.apply(&calling("default", &json!({}), &json!({}))).await;
    user.apply(&thing("default", "default")).await;
    until_says(&user, "default", "one").await;
    let log = user.home.log();
    let name = revision("v1", server);
    let says = |line: &&str| line.contains("all is well") && line.contains(&name) && line.contains(NAME);
    assert!(log.lines().any(|line| says(&line)), "{log}");
}
