//! Which Composition and which of its revisions a composite resource takes.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use transom_object::meta;

const OTHER: &str = "example.org/v1/Other";
const CHOSEN: &str = "Normal SelectComposition Successfully selected composition: ";
const DEFAULT: &str = "Normal CompositionSelection Default composition has been selected";
const ENFORCED: &str = "Normal CompositionSelection Enforced composition has been selected";
const DEFAULT_SELECTOR: &str = "Normal CompositionSelection Default revision selector has been selected";

async fn with(definition: &str) -> User {
    let user = User::new().await;
    user.apply(definition).await;
    user
}

/// A Composition of things that says this.
fn says(name: &str, labels: &Value, words: &str) -> String {
    composition(name, "Thing", labels, &[one_map("Thing", words)])
}

fn thing(name: &str, machinery: &str) -> String {
    object("Thing", name, &format!("crossplane: {{{machinery}}}"))
}

async fn until_says(user: &User, name: &str, words: &str) -> Value {
    user.until(THING, name, |o| o["status"]["coolerField"] == words && status_of(o, "Ready") == "True").await
}

/// The name of the revision with this number.
async fn revision(user: &User, composition: &str, number: i64) -> String {
    let of = |r: &Value| meta::label(r, "crossplane.io/composition-name") == Some(composition);
    let found = user.until_any(REVISION, |r| of(r) && r["spec"]["revision"] == number).await;
    meta::name(&found).to_owned()
}

/// Everything that was said of a choice, once it is said which revision was chosen: that comes last.
async fn choices(user: &User, name: &str) -> Vec<String> {
    user.until_event(name, "Normal SelectComposition Selected composition revision: ").await;
    let mut events = user.events_of(name).await;
    events.retain(|e| e.contains("CompositionSelection") || e.contains("SelectComposition"));
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn case_42_manual_pins_and_automatic_follows() {
    let user = with(&definition("Thing", "Cluster", "")).await;
    user.apply(&says("a", &json!({"channel": "stable"}), "first")).await;
    user.apply(&says("b", &json!({}), "other")).await;
    let first = revision(&user, "a", 1).await;
    let named = "compositionRef: {name: a}";
    user.apply(&thing("auto", named)).await;
    user.apply(&thing("latched", &format!("{named}, compositionUpdatePolicy: Manual"))).await;
    let none_yet = until_says(&user, "auto", "first").await;
    assert_eq!(none_yet["spec"]["crossplane"]["compositionRevisionRef"]["name"], first);
    user.until_event("auto", &format!("Normal SelectComposition Selected composition revision: {first}"))
        .await;
    until_says(&user, "latched", "first").await;
    user.apply(&says("a", &json!({"channel": "edge"}), "second")).await;
    let second = revision(&user, "a", 2).await;
    let outdated = until_says(&user, "auto", "second").await;
    assert_eq!(outdated["spec"]["crossplane"]["compositionRevisionRef"]["name"], second);

    // The pinned revision counts, whatever the Composition is said to be.
    let pin = format!("compositionRevisionRef: {{name: {first}}}, compositionUpdatePolicy: Manual");
    user.apply(&thing("pinned", &format!("compositionRef: {{name: b}}, {pin}"))).await;
    let pinned = until_says(&user, "pinned", "first").await;
    assert_eq!(pinned["spec"]["crossplane"]["compositionRef"]["name"], "b");
    user.until_idle().await;
    let latched = user.get(THING, "latched").await.unwrap();
    assert_eq!(
        (&latched["status"]["coolerField"], &latched["spec"]["crossplane"]["compositionRevisionRef"]["name"]),
        (&json!("first"), &json!(first))
    );

    // At the latest already: looked at, composed, and not written.
    user.until_idle().await;
    let before = user.get(THING, "auto").await.unwrap();
    let map = format!("default/{}", meta::name(&user.composed(MAP, "auto").await[0]));
    user.patch(MAP, &map, json!({"data": {"says": "drifted"}})).await;
    user.until(MAP, &map, |o| o["data"]["says"] == "second").await;
    user.until_idle().await;
    assert_eq!(user.get(THING, "auto").await.unwrap(), before);

    let select = |channel: &str| {
        format!(
            "{named}, compositionUpdatePolicy: Automatic, compositionRevisionSelector: {{matchLabels: {{channel: {channel}}}}}"
        )
    };
    user.apply(&thing("stable", &select("stable"))).await;
    until_says(&user, "stable", "first").await;
    user.apply(&thing("none", &select("none"))).await;
    let words = "cannot fetch Composition: no compatible CompositionRevisions found";
    let wrong = user.until(THING, "none", |o| message_of(o, "Synced") == words).await;
    assert_eq!(reason_of(&wrong, "Synced"), "ReconcileError");
    user.until_event("none", &format!("Warning ComposeResources {words}")).await;
    assert_eq!(user.composed(MAP, "none").await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn case_42_a_choice_that_cannot_be_written_is_an_error() {
    let kept = "self.spec.coolField != 'kept' || !has(oldSelf.spec.crossplane.compositionRevisionRef) \
                || self.spec.crossplane.compositionRevisionRef == oldSelf.spec.crossplane.compositionRevisionRef";
    let user = with(&ruled(&definition("Thing", "Cluster", ""), kept)).await;
    user.apply(&says("a", &json!({}), "first")).await;
    user.apply(&object("Thing", "one", "coolField: kept, crossplane: {compositionRef: {name: a}}")).await;
    until_says(&user, "one", "first").await;
    user.until_idle().await;
    user.apply(&says("a", &json!({}), "second")).await;
    let words = "cannot update composite resource: ";
    let wrong = user.until(THING, "one", |o| message_of(o, "Synced").starts_with(words)).await;
    assert_eq!((status_of(&wrong, "Synced"), reason_of(&wrong, "Synced")), ("False", "ReconcileError"));
    assert!(message_of(&wrong, "Synced").contains("it is against the rules"), "{wrong:#}");
    user.until_event("one", words).await;
    let first = revision(&user, "a", 1).await;
    assert_eq!(wrong["spec"]["crossplane"]["compositionRevisionRef"]["name"], first);
    assert_eq!(wrong["status"]["coolerField"], "first", "nothing is composed by what is not chosen");
    user.patch(THING, "one", json!({"spec": {"coolField": "free"}})).await;
    let well = until_says(&user, "one", "second").await;
    assert_eq!((status_of(&well, "Synced"), message_of(&well, "Synced")), ("True", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn case_43_only_what_fits_is_selected_and_only_once() {
    let user = with(&definition("Thing", "Cluster", "")).await;
    let gold = json!({"tier": "gold"});
    user.apply(&composition("kind", "Other", &gold, &[one_map("Other", "kind")])).await;
    let version = says("version", &gold, "version")
        .replace("\"example.org/v1\",\"kind\":\"Thing\"", "\"example.org/v2\",\"kind\":\"Thing\"");
    assert!(version.contains("example.org/v2"));
    user.apply(&version).await;
    user.apply(&says("tin", &json!({"tier": "tin"}), "tin")).await;
    user.apply(&thing("lost", "compositionSelector: {matchLabels: {tier: gold}}")).await;
    let words = "cannot select Composition: no compatible Compositions found";
    let lost = user.until(THING, "lost", |o| message_of(o, "Synced") == words).await;
    assert_eq!(reason_of(&lost, "Synced"), "ReconcileError");
    assert_eq!(lost["spec"]["crossplane"].get("compositionRef"), None);
    user.until_event("lost", &format!("Warning SelectComposition {words}")).await;
    user.apply(&says("gold", &gold, "gold")).await;
    until_says(&user, "lost", "gold").await;
    // Chance may be kind once, but not that often.
    for i in 0..12 {
        user.apply(&thing(&format!("gold-{i}"), "compositionSelector: {matchLabels: {tier: gold}}")).await;
    }
    for i in 0..12 {
        let name = format!("gold-{i}");
        let one = until_says(&user, &name, "gold").await;
        assert_eq!(one["spec"]["crossplane"]["compositionRef"]["name"], "gold");
        user.until_event(&name, &format!("{CHOSEN}gold")).await;
    }
    let other = json!({"spec": {"coolField": "x", "crossplane": {"compositionSelector": {"matchLabels": {"tier": "tin"}}}}});
    let changed = user.patch(THING, "gold-0", other).await;
    user.until(THING, "gold-0", |o| {
        condition(o, "Synced")["observedGeneration"] == changed["metadata"]["generation"]
    })
    .await;
    user.until_idle().await;
    let one = user.get(THING, "gold-0").await.unwrap();
    assert_eq!(one["spec"]["crossplane"]["compositionRef"]["name"], "gold", "a choice is never questioned");
    assert!(!user.events_of("gold-0").await.contains(&format!("{CHOSEN}tin")));
}

#[tokio::test(flavor = "multi_thread")]
async fn case_44_the_default_applies_only_where_nothing_is_selected() {
    let user = with(&definition("Thing", "Cluster", "defaultCompositionRef: {name: b}")).await;
    user.apply(&definition("Other", "Cluster", "")).await;
    user.apply(&says("a", &json!({"tier": "gold"}), "from-a")).await;
    user.apply(&says("b", &json!({}), "from-b")).await;
    user.apply(&composition("others", "Other", &json!({}), &[one_map("Other", "x")])).await;
    user.apply(&object("Thing", "bare", "")).await;
    let bare = until_says(&user, "bare", "from-b").await;
    assert_eq!(bare["spec"]["crossplane"]["compositionRef"]["name"], "b");
    let events = choices(&user, "bare").await;
    assert!(events.contains(&DEFAULT.to_owned()) && events.contains(&format!("{CHOSEN}b")), "{events:#?}");
    for (name, machinery) in [
        ("refers", "compositionRef: {name: a}"),
        ("selects", "compositionSelector: {matchLabels: {tier: gold}}"),
    ] {
        user.apply(&thing(name, machinery)).await;
        until_says(&user, name, "from-a").await;
        let events = choices(&user, name).await;
        assert!(!events.contains(&DEFAULT.to_owned()), "{name}: {events:#?}");
    }
    user.apply(&object("Other", "free", "")).await;
    user.until_ready(OTHER, "free").await;
    let events = choices(&user, "free").await;
    assert!(!events.iter().any(|e| e.contains("CompositionSelection")), "there is no default: {events:#?}");
    assert!(events.contains(&format!("{CHOSEN}others")), "{events:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_45_the_default_revision_selector_never_overwrites() {
    let more = "defaultCompositionRevisionSelector: {matchLabels: {channel: stable}}";
    let user = with(&definition("Thing", "Cluster", more)).await;
    user.apply(&says("a", &json!({"channel": "stable"}), "stable")).await;
    revision(&user, "a", 1).await;
    user.apply(&says("a", &json!({"channel": "edge"}), "edge")).await;
    let edge = revision(&user, "a", 2).await;
    let named = "compositionRef: {name: a}, compositionUpdatePolicy: Automatic";
    let selector = |o: &Value| o["spec"]["crossplane"].get("compositionRevisionSelector").cloned();
    user.apply(&thing("silent", named)).await;
    let silent = until_says(&user, "silent", "stable").await;
    assert_eq!(selector(&silent), Some(json!({"matchLabels": {"channel": "stable"}})));
    let events = choices(&user, "silent").await;
    assert!(events.contains(&DEFAULT_SELECTOR.to_owned()), "{events:#?}");
    user.apply(&thing(
        "own",
        &format!("{named}, compositionRevisionSelector: {{matchLabels: {{channel: edge}}}}"),
    ))
    .await;
    user.apply(&thing("refers", &format!("{named}, compositionRevisionRef: {{name: {edge}}}"))).await;
    for (name, wanted) in [("own", Some(json!({"matchLabels": {"channel": "edge"}}))), ("refers", None)] {
        until_says(&user, name, "edge").await;
        user.until_idle().await;
        assert_eq!(selector(&user.get(THING, name).await.unwrap()), wanted, "{name}");
        let events = user.events_of(name).await;
        assert!(!events.contains(&DEFAULT_SELECTOR.to_owned()), "{name}: {events:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_46_an_enforced_composition_overrides_every_other() {
    let user = with(&definition("Thing", "Cluster", "enforcedCompositionRef: {name: law}")).await;
    user.apply(&says("law", &json!({}), "law")).await;
    user.apply(&says("a", &json!({"tier": "gold"}), "from-a")).await;
    for (name, machinery) in [
        ("refers", "compositionRef: {name: a}"),
        ("selects", "compositionSelector: {matchLabels: {tier: gold}}"),
    ] {
        user.apply(&thing(name, machinery)).await;
        let one = until_says(&user, name, "law").await;
        assert_eq!(one["spec"]["crossplane"]["compositionRef"]["name"], "law");
        let events = choices(&user, name).await;
        assert!(events.contains(&ENFORCED.to_owned()), "{name}: {events:#?}");
    }
    user.apply(&thing("same", "compositionRef: {name: law}")).await;
    until_says(&user, "same", "law").await;
    let events = choices(&user, "same").await;
    assert!(!events.iter().any(|e| e == ENFORCED || e.starts_with(CHOSEN)), "{events:#?}");
    // A user's other choice is replaced.
    let a = json!({"spec": {"crossplane": {"compositionRef": {"name": "a"}}}});
    user.patch(THING, "same", a).await;
    user.until(THING, "same", |o| o["spec"]["crossplane"]["compositionRef"]["name"] == "law").await;
    user.until_event("same", ENFORCED).await;
    until_says(&user, "same", "law").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_47_a_revision_of_another_type_cannot_be_used() {
    let user = with(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("others", "Other", &json!({}), &[one_map("Other", "x")])).await;
    user.apply(&says("a", &json!({}), "from-a")).await;
    let other = revision(&user, "others", 1).await;
    let pin = format!("compositionRevisionRef: {{name: {other}}}, compositionUpdatePolicy: Manual");
    user.apply(&thing("one", &format!("compositionRef: {{name: a}}, {pin}"))).await;
    let words = "cannot configure composite resource: \
                 referenced composition is not compatible with this composite resource";
    let wrong = user.until(THING, "one", |o| message_of(o, "Synced") == words).await;
    assert_eq!((status_of(&wrong, "Synced"), reason_of(&wrong, "Synced")), ("False", "ReconcileError"));
    user.until_event("one", &format!("Warning ComposeResources {words}")).await;
    assert_eq!(user.composed(MAP, "one").await, Vec::<Value>::new());
    let own = revision(&user, "a", 1).await;
    user.patch(THING, "one", json!({"spec": {"crossplane": {"compositionRevisionRef": {"name": own}}}}))
        .await;
    until_says(&user, "one", "from-a").await;
}
