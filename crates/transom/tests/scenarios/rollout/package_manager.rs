//! "Package Manager Changes".

use super::*;

const TWO: &str = ", activeRevisionLimit: 2";

/// The words by which the server refuses something.
async fn refusal(user: &User, kind: &str, limits: &str) -> String {
    let manifest = format!(
        "apiVersion: pkg.crossplane.io/v1\nkind: {kind}\nmetadata: {{name: refused}}\n\
         spec: {{package: 'registry.example.org/a/b:v1', {limits}}}\n"
    );
    user.refusal(&manifest).await
}

/// "Its name mirrors the revisionHistoryLimit setting and its value must be no greater than the revisionHistoryLimit." "For all
/// package types other than Function, 1 will be the only valid value".
#[tokio::test(flavor = "multi_thread")]
async fn the_limit_is_no_greater_than_the_history_and_one_for_other_packages() {
    let user = User::without_functions(&[], &[]).await;
    let words = refusal(&user, "Function", "activeRevisionLimit: 3, revisionHistoryLimit: 2").await;
    assert!(words.contains("activeRevisionLimit must not exceed revisionHistoryLimit"), "{words}");
    let words = refusal(&user, "Function", "activeRevisionLimit: 2").await;
    assert!(words.contains("activeRevisionLimit must not exceed"), "the default history is 1: {words}");
    for kind in ["Provider", "Configuration"] {
        let words = refusal(&user, kind, "activeRevisionLimit: 2, revisionHistoryLimit: 4").await;
        assert!(words.contains("spec.activeRevisionLimit"), "{kind}: {words}");
    }
}

/// "By default, the activeRevisionLimit will be 1, maintaining today's behavior."
#[tokio::test(flavor = "multi_thread")]
async fn by_default_one_revision_is_active() {
    let user = with_things(&[]).await;
    let (one, two) = (saying("one").await, saying("two").await);
    user.apply(&version("v1", one, "", "")).await;
    user.apply(&calling("things", &json!({}), &json!({}))).await;
    user.apply(&thing("one", "things")).await;
    until_says(&user, "one", "one").await;
    let event = |tag: &str, server| format!("Composed by FunctionRevisions {}", revision(tag, server));
    user.until_event("one", &event("v1", one)).await;
    user.apply(&version("v2", two, "", "")).await;
    until_current(&user, &revision("v2", two)).await;
    until_states(&user, &["Inactive", "Active"]).await;
    poke(&user, "one").await;
    let thing = until_says(&user, "one", "two").await;
    assert_eq!(
        composed_by(&thing),
        [""; 0],
        "it does not choose, so its status does not change with every revision"
    );
    user.until_event("one", &event("v2", two)).await;
}

/// Which revision composed a composite resource is in an event when it changes, and nothing is written otherwise. After a restart there
/// is one with the first change of anything.
#[tokio::test(flavor = "multi_thread")]
async fn the_revision_that_composed_is_in_an_event_when_it_changes() {
    let mut user = with_things(&[]).await;
    let (one, two) = (saying("same").await, saying("same").await);
    user.apply(&version("v1", one, "", "")).await;
    user.apply(&calling("things", &json!({}), &json!({}))).await;
    user.apply(&thing("one", "things")).await;
    until_says(&user, "one", "same").await;
    let events = async |user: &User| -> Vec<Value> {
        let all = user.list("v1/Event").await;
        all.into_iter()
            .filter(|e| e["message"].as_str().is_some_and(|m| m.starts_with("Composed by")))
            .collect()
    };
    user.until_event("one", &revision("v1", one)).await;
    user.until_idle().await;
    let before = events(&user).await;
    assert_eq!(before.len(), 1, "{before:#?}");
    poke(&user, "one").await;
    user.until_idle().await;
    user.restart(&[]).await;
    poke(&user, "one").await;
    user.until_idle().await;
    assert_eq!(events(&user).await, before, "the same revision composes it");
    // A change of the composite resource: something of it has to be made again.
    let lost = user.composed(MAP, "one").await.remove(0);
    user.delete(MAP, &format!("default/{}", meta::name(&lost)), None).await;
    let is_again = |event: &Value| event["count"] == 2;
    let again = user.until_any("v1/Event", |e| e["message"] == before[0]["message"] && is_again(e)).await;
    for _ in 0..2 {
        poke(&user, "one").await;
        user.until_idle().await;
        assert_eq!(events(&user).await, *std::slice::from_ref(&again), "it is reported now");
    }
    // Another revision that composes the same.
    user.apply(&version("v2", two, "", "")).await;
    until_current(&user, &revision("v2", two)).await;
    poke(&user, "one").await;
    user.until_event("one", &revision("v2", two)).await;
    user.until_idle().await;
    assert_eq!(events(&user).await.len(), 2);
}

/// "When revisionActivationPolicy is Automatic, the revisions with the highest revision numbers (up to the limit) will be
/// active. If a new revision is created and activeRevisionLimit revisions are already active, the active one with the lowest
/// revision number will be deactivated." "each active function revision will now have a distinct endpoint"
#[tokio::test(flavor = "multi_thread")]
async fn the_highest_numbers_are_active_and_each_has_its_endpoint() {
    let user = with_things(&[]).await;
    let servers = [saying("one").await, saying("two").await, saying("three").await];
    let tags = ["v1", "v2", "v3"];
    for (tag, server) in tags.iter().zip(servers) {
        user.apply(&version(tag, server, "", TWO)).await;
        until_current(&user, &revision(tag, server)).await;
    }
    until_states(&user, &["Inactive", "Active", "Active"]).await;
    for (tag, server) in tags.iter().zip(servers).skip(1) {
        let active = user.until_true(FUNCTION_REVISION, &revision(tag, server), "RuntimeHealthy").await;
        assert_eq!(active["status"]["endpoint"], server.to_string(), "{tag}");
        assert_eq!(status_of(&active, "RevisionHealthy"), "True");
    }
    let first = revision("v1", servers[0]);
    let inactive = user.until(FUNCTION_REVISION, &first, |r| r["status"].get("endpoint").is_none()).await;
    assert_eq!(status_of(&inactive, "RuntimeHealthy"), "Unknown");
    // The newest is in the Lock.
    let newest = revision("v3", servers[2]);
    let is_newest =
        |l: &Value| l["packages"].as_array().is_some_and(|p| p.len() == 1 && p[0]["name"] == *newest);
    user.until(LOCK, "lock", is_newest).await;

    // The first becomes the highest again; a lower limit deactivates, a higher one activates.
    user.apply(&version("v1", servers[0], "", TWO)).await;
    until_current(&user, &first).await;
    until_states(&user, &["Inactive", "Active", "Active"]).await;
    user.apply(&version("v1", servers[0], "", ", activeRevisionLimit: 1")).await;
    until_states(&user, &["Inactive", "Inactive", "Active"]).await;
    user.apply(&version("v1", servers[0], "", ", activeRevisionLimit: 3")).await;
    until_states(&user, &["Active", "Active", "Active"]).await;
    user.until_idle().await;
    let is_first =
        |l: &Value| l["packages"].as_array().is_some_and(|p| p.len() == 1 && p[0]["name"] == *first);
    user.until(LOCK, "lock", is_first).await;
}

/// "When revisionActivationPolicy is Manual, activeRevisionLimit is ignored by the package manager and it's left to users to
/// activate and deactivate revisions as they wish."
#[tokio::test(flavor = "multi_thread")]
async fn users_activate_and_deactivate_as_they_wish() {
    let user = with_things(&[]).await;
    let manual = ", activeRevisionLimit: 1, revisionActivationPolicy: Manual";
    let servers = [saying("one").await, saying("two").await, saying("three").await];
    user.apply(&calling("things", &json!({}), &json!({}))).await;
    user.apply(&thing("one", "things")).await;
    let set = async |revision: &str, state: &str| {
        user.until(FUNCTION_REVISION, revision, |_| true).await;
        user.patch(FUNCTION_REVISION, revision, json!({"spec": {"desiredState": state}})).await;
    };
    let names: Vec<String> = ["v1", "v2", "v3"].iter().zip(servers).map(|(t, s)| revision(t, s)).collect();
    for (i, (tag, server)) in ["v1", "v2", "v3"].iter().zip(servers).enumerate() {
        user.apply(&version(tag, server, "", manual)).await;
        set(&names[i], "Active").await;
        user.until_true(FUNCTION_REVISION, &names[i], "RuntimeHealthy").await;
    }
    user.until_idle().await;
    assert_eq!(states(&user).await, in_order(&["Active", "Active", "Active"]), "whatever the limit");
    poke(&user, "one").await;
    until_says(&user, "one", "three").await;
    set(&names[2], "Inactive").await;
    user.until(FUNCTION_REVISION, &names[2], |r| status_of(r, "RuntimeHealthy") == "Unknown").await;
    poke(&user, "one").await;
    until_says(&user, "one", "two").await;
    let older =
        |f: &Value| message_of(f, "Installed").ends_with("is active") && status_of(f, "Healthy") == "True";
    user.until(FUNCTION, NAME, older).await;
    user.until_idle().await;
    assert_eq!(states(&user).await, in_order(&["Active", "Active", "Inactive"]));
    let is_second = |l: &Value| l["packages"][0]["name"] == *names[1];
    user.until(LOCK, "lock", is_second).await;
}

/// "The package manager needs to copy labels from packages to their revisions".
#[tokio::test(flavor = "multi_thread")]
async fn labels_of_a_function_are_copied_to_its_revisions() {
    let user = with_things(&[]).await;
    let (one, two) = (saying("one").await, saying("two").await);
    user.apply(&version("v1", one, "release-channel: stable", TWO)).await;
    until_current(&user, &revision("v1", one)).await;
    user.apply(&version("v2", two, "release-channel: alpha", TWO)).await;
    until_current(&user, &revision("v2", two)).await;
    user.until_idle().await;
    let channel = async |name: &str| {
        let revision = user.get(FUNCTION_REVISION, name).await.expect("it is there");
        meta::label(&revision, "release-channel").map(str::to_owned)
    };
    assert_eq!(channel(&revision("v1", one)).await.as_deref(), Some("stable"), "as they were");
    assert_eq!(channel(&revision("v2", two)).await.as_deref(), Some("alpha"));
    // The same version with other labels is the same revision.
    user.apply(&version("v2", two, "release-channel: beta", TWO)).await;
    let name = revision("v2", two);
    user.until(FUNCTION_REVISION, &name, |r| meta::label(r, "release-channel") == Some("beta")).await;
    user.until_idle().await;
    assert_eq!(states(&user).await, in_order(&["Active", "Active"]));
    // A label that the Function loses, the current revision loses too; others keep theirs.
    user.apply(&version("v2", two, "", TWO)).await;
    user.until(FUNCTION_REVISION, &name, |r| meta::label(r, "release-channel").is_none()).await;
    assert_eq!(channel(&revision("v1", one)).await.as_deref(), Some("stable"));
}

/// `kubectl get functionrevisions` shows state, endpoint and health.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_revisions_shows_state_endpoint_and_health() {
    let user = with_things(&[]).await;
    let one = saying("one").await;
    user.apply(&version("v1", one, "", TWO)).await;
    until_current(&user, &revision("v1", one)).await;
    let crd = user.get(CRD, "functionrevisions.pkg.crossplane.io").await.expect("it is served");
    let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"].as_array().expect("columns").clone();
    let shown: Vec<(&str, &str)> = columns
        .iter()
        .filter_map(|column| Some((column["name"].as_str()?, column["jsonPath"].as_str()?)))
        .collect();
    for column in [
        ("RUNTIME-HEALTHY", ".status.conditions[?(@.type=='RuntimeHealthy')].status"),
        ("STATE", ".spec.desiredState"),
        ("ENDPOINT", ".status.endpoint"),
    ] {
        assert!(shown.contains(&column), "{shown:?}");
    }
}
