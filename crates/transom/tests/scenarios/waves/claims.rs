//! Claims and legacy composite resources.

use super::*;

const CLAIM: &str = "example.org/v1/Claim";
const XR: &str = "example.org/v1/XClaim";

/// Changes the Composition; returns the name of the new revision.
async fn say(user: &User, says: &str) -> String {
    user.apply(&composition("a", "XClaim", &json!({}), &[one_map("XClaim", says)])).await;
    let has = |r: &Value| r.pointer("/spec/pipeline/0/input").is_some_and(|i| i.to_string().contains(says));
    user.until_any(REVISION, has).await["metadata"]["name"].as_str().unwrap().to_owned()
}

/// What all claims, and then all composite resources, say about their revision.
async fn choices(user: &User) -> Vec<Value> {
    user.until_idle().await;
    let mut choices = Vec::new();
    for kind in [CLAIM, XR] {
        let mut objects = user.list(kind).await;
        objects.sort_by_key(|object| object["metadata"]["name"].as_str().unwrap().to_owned());
        choices.extend(objects.iter().map(|object| choice(&object["spec"])));
    }
    choices
}

/// Three claims with different policies, and a composite resource without one.
async fn with_claims() -> (Platform, String) {
    let user = User::new().await;
    user.apply(&definition("XClaim", "LegacyCluster", "claimNames: {kind: Claim, plural: claims}")).await;
    let first = say(&user, "first").await;
    let manual = format!("compositionUpdatePolicy: Manual, compositionRevisionRef: {{name: {first}}}");
    for (name, spec) in
        [("free", ""), ("following", "compositionUpdatePolicy: Automatic"), ("manual", &manual)]
    {
        user.apply(&object("Claim", &format!("default/{name}"), spec)).await;
        user.until_ready(CLAIM, &format!("default/{name}")).await;
    }
    user.apply(&object("XClaim", "alone", "")).await;
    user.until_ready(XR, "alone").await;
    (Platform { user }, first)
}

#[tokio::test(flavor = "multi_thread")]
async fn composite_resources_with_claims_are_moved_through_them() {
    let (platform, first) = with_claims().await;
    let user = &platform.user;
    let free = choices(user).await;
    platform.json(0, &["pin", "a"]);
    let second = say(user, "second").await;
    assert_eq!(choices(user).await, vec![pinned(&first); 7]);
    let plan = platform.json(0, &["plan", "a"]);
    let claims = plan["resources"].as_array().unwrap().iter().filter(|one| one["claim"].is_string());
    assert_eq!((claims.count(), &plan["summary"]["change"]), (3, &json!(4)), "{plan:#}");
    let done = platform.json(0, &["start", "a", "--yes"]);
    assert_eq!(done["phase"], "Done", "{done:#}");
    assert_eq!(choices(user).await, vec![pinned(&second); 7]);
    platform.json(0, &["rollback", "a"]);
    assert_eq!(choices(user).await, vec![pinned(&first); 7]);
    platform.json(0, &["start", "a", "--yes", "--waves", "100%", "-n", "default"]);
    assert_eq!(choices(user).await.iter().filter(|choice| **choice == pinned(&second)).count(), 6);
    platform.json(0, &["start", "a", "--yes"]);
    // Unpinned, they choose as they did at first, and the newest is what they choose.
    assert_eq!(platform.json(0, &["unpin", "a"])["unpinned"], 3);
    let all = choices(user).await;
    let policies = |all: &[Value]| -> Vec<Value> {
        all.iter().map(|choice| choice["compositionUpdatePolicy"].clone()).collect()
    };
    assert_eq!(policies(&all), policies(&free));
    assert!(all.iter().all(|choice| choice["compositionRevisionRef"]["name"] == second), "{all:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_follows_by_itself_gets_back_what_it_had() {
    let (platform, first) = with_claims().await;
    let user = &platform.user;
    say(user, "second").await;
    for name in ["free", "following"] {
        user.until(CLAIM, &format!("default/{name}"), |o| o["status"]["coolerField"] == "second").await;
    }
    let before = choices(user).await;
    // The claim that is at the first revision is there already.
    let done = platform.json(0, &["start", "a", "--yes", "--to", &first]);
    assert_eq!(
        (&done["phase"], done["resources"].as_array().map(Vec::len)),
        (&json!("Done"), Some(3)),
        "{done:#}"
    );
    assert_eq!(choices(user).await, vec![pinned(&first); 7]);
    platform.json(0, &["rollback", "a"]);
    assert_eq!(choices(user).await, before);
}
