//! Complaints about the Lock: what is wrong with one package is its own problem. Names begin with the number of the
//! complaint in the tracker of Crossplane.

use super::*;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn i3423_an_unresolvable_dependency_delays_no_other_package() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    registry.push_simple("acme/shared:v1.0.0", &[]);
    let both = ["configuration acme/nowhere >=v1.0.0", "configuration acme/shared >=v1.0.0"];
    registry.push_simple("acme/unlucky:v1.0.0", &both);
    registry.push_simple("acme/fine:v1.0.0", &["configuration acme/shared >=v1.0.0"]);
    user.apply(&install("unlucky", &registry.at("acme/unlucky:v1.0.0"))).await;
    // What can be installed is installed also for the package that has to wait.
    user.until_healthy("acme-shared").await;
    user.apply(&install("fine", &registry.at("acme/fine:v1.0.0"))).await;
    user.until_healthy("fine").await;
    let message = user.until_unhealthy("unlucky", "missing dependencies").await;
    assert!(message.contains("acme/nowhere") && !message.contains("acme/shared"), "{message}");
    // It is found when it is pushed, without a change of the package.
    registry.push_simple("acme/nowhere:v1.0.0", &[]);
    user.until_healthy("unlucky").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v6_i7454_i5988_i5564_two_packages_of_one_source_are_their_own_problem() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    registry.push_simple("acme/base:v1.0.0", &[]);
    registry.push_simple("acme/twice:v1.0.0", &[]);
    registry.push_simple("acme/twice:v1.1.0", &["configuration acme/base >=v1.0.0"]);
    let installed: Vec<String> = (0..10).map(|n| format!("fine-{n}")).collect();
    for (n, name) in installed.iter().enumerate() {
        registry.push_simple(&format!("acme/{name}:v1.0.0"), &["configuration acme/base >=v1.0.0"]);
        if n < 5 {
            user.apply(&install(name, &registry.at(&format!("acme/{name}:v1.0.0")))).await;
        }
    }
    user.apply(&install("first", &registry.at("acme/twice:v1.0.0"))).await;
    user.until_healthy("first").await;
    user.apply(&install("second", &registry.at("acme/twice:v1.1.0"))).await;
    for name in ["first", "second"] {
        let message = user.until_unhealthy(name, "is installed more than once").await;
        for part in ["acme/twice", "first-", "second-", "delete all but one"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    // Those that are there stay healthy, and others can be installed.
    for name in &installed[5..] {
        user.apply(&install(name, &registry.at(&format!("acme/{name}:v1.0.0")))).await;
    }
    for name in installed.iter().map(String::as_str).chain(["acme-base"]) {
        user.until_healthy(name).await;
    }
    user.delete(CONFIGURATION, "second", None).await;
    user.until_healthy("first").await;
    user.until_true(LOCK, "lock", "Resolved").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i6676_entries_of_the_lock_without_names_affect_no_package() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    registry.push_simple("acme/a:v1.0.0", &["configuration acme/b >=v1.0.0"]);
    registry.push_simple("acme/b:v1.0.0", &[]);
    let lock = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "Lock", "metadata": {"name": "lock"},
        "packages": [
            {"name": "", "source": "", "version": "", "dependencies": []},
            {"name": "", "apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration", "source": "nowhere.invalid/x",
             "version": "v1.0.0", "dependencies": [{"package": "", "constraints": ""}]},
        ],
    });
    user.apply(&lock.to_string()).await;
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    user.until_healthy("a").await;
    user.until_healthy("acme-b").await;
    let lock = user.until(LOCK, "lock", |l| !status_of(l, "Resolved").is_empty()).await;
    assert!(!message_of(&lock, "Resolved").contains("acme/"), "{lock:#}");
}

/// What the condition of the Lock has to say about three packages that want different versions.
const ALL: [&str; 6] =
    ["late-", "requires >=v2.0.0", "early-", "requires <v2.0.0", "any-", "requires >=v1.0.0"];

/// Whether the Lock names all of this as what cannot be resolved.
fn named(parts: &[&str]) -> impl Fn(&Value) -> bool {
    move |lock: &Value| {
        let message = message_of(lock, "Resolved");
        status_of(lock, "Resolved") == "False" && parts.iter().all(|part| message.contains(part))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i6074_a_conflict_names_every_parent_and_its_constraint() {
    let registry = Registry::start().await;
    registry.push_simple("acme/b:v1.0.0", &[]);
    registry.push_simple("acme/b:v2.0.0", &[]);
    let parents = [
        ("seven", ">=v7.0.0"),
        ("eight", ">=v8.0.0"),
        ("late", ">=v2.0.0"),
        ("early", "<v2.0.0"),
        ("any", ">=v1.0.0"),
    ];
    for (name, constraint) in parents {
        registry
            .push_simple(&format!("acme/{name}:v1.0.0"), &[&format!("configuration acme/b {constraint}")]);
    }
    let user = User::of_packages(&[]).await;
    for name in ["seven", "eight"] {
        user.apply(&install(name, &registry.at(&format!("acme/{name}:v1.0.0")))).await;
    }
    let both = ["seven-", "requires >=v7.0.0", "eight-", "requires >=v8.0.0"];
    let lock = user.until(LOCK, "lock", named(&both)).await;
    assert_eq!(reason_of(&lock, "Resolved"), "DependencyResolutionFailed");
    // With upgrades, all that want an installed package are considered together.
    let user = User::of_packages(&["--enable-dependency-version-upgrades"]).await;
    user.apply(&install("b", &registry.at("acme/b:v1.0.0"))).await;
    user.until_healthy("b").await;
    // What is installed fits these two; alone, the last one would have it upgraded.
    for name in ["early", "any"] {
        user.apply(&install(name, &registry.at(&format!("acme/{name}:v1.0.0")))).await;
        user.until_healthy(name).await;
    }
    user.apply(&install("late", &registry.at("acme/late:v1.0.0"))).await;
    let lock = user.until(LOCK, "lock", named(&ALL)).await;
    assert!(message_of(&lock, "Resolved").contains(&registry.at("acme/b")), "{lock:#}");
    let message = user.until_unhealthy("late", "incompatible").await;
    assert!(message.contains(">=v2.0.0"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn i6555_a_lock_of_another_version_is_carried_over() {
    let registry = Registry::start().await;
    let mut user = User::of_packages(&[]).await;
    registry.push_simple("acme/base:v1.0.0", &[]);
    registry.push_simple("acme/app:v1.0.0", &["configuration acme/base >=v1.0.0"]);
    user.apply(&install("app", &registry.at("acme/app:v1.0.0"))).await;
    user.until_healthy("app").await;
    // As another release might have left it: the Lock is stored in a version that this one does not have.
    let name = "locks.pkg.crossplane.io";
    let mut crd = user.get(CRD, name).await.expect("the definition of the Lock");
    let mut other = crd["spec"]["versions"][0].clone();
    crd["spec"]["versions"][0]["storage"] = false.into();
    other["name"] = "v1alpha1".into();
    crd["spec"]["versions"].as_array_mut().expect("versions").push(other);
    user.patch(CRD, name, json!({"spec": {"versions": crd["spec"]["versions"]}})).await;
    let stored = |crd: &Value| crd["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    user.until(CRD, name, |crd| stored(crd).contains(&json!("v1alpha1"))).await;
    user.patch(LOCK, "lock", json!({"metadata": {"labels": {"stored": "elsewhere"}}})).await;
    let before = user.get(LOCK, "lock").await.expect("the Lock")["packages"].clone();
    user.restart(&[]).await;
    let versions = |crd: &Value| crd["spec"]["versions"].as_array().map(Vec::len);
    let crd = user.until(CRD, name, |crd| versions(crd) == Some(1)).await;
    assert_eq!(stored(&crd), ["v1beta1"]);
    assert_eq!(user.get(LOCK, "lock").await.expect("the Lock")["packages"], before);
    registry.push_simple("acme/more:v1.0.0", &["configuration acme/base >=v1.0.0"]);
    user.apply(&install("more", &registry.at("acme/more:v1.0.0"))).await;
    user.until_healthy("more").await;
    user.until_healthy("app").await;
}
