//! Complaints about the identity of dependencies: which installed package is the one that another package depends on. Names
//! begin with the number of the complaint in the tracker of Crossplane.

use super::*;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn i6779_a_package_from_a_mirror_satisfies_dependencies_on_the_original() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    registry.push_simple("mirror/b:v1.0.0", &[]);
    registry.push_simple("mirror/b:v1.1.0", &[]);
    registry.push_simple("acme/a:v1.0.0", &["configuration upstream.invalid/b >=v1.0.0"]);
    let rewrite = format!("rewriteImage: {{prefix: '{}'}}", registry.at("mirror/"));
    user.apply(&image_config("mirror", "upstream.invalid/", &rewrite)).await;
    // Installed under a name of its own, and by the address of the mirror.
    user.apply(&install("mine", &registry.at("mirror/b:v1.0.0"))).await;
    user.until_healthy("mine").await;
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    user.until_healthy("a").await;
    user.until_idle().await;
    assert_eq!(user.names(CONFIGURATION).await, ["a", "mine"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn i4023_i6213_generated_names_do_not_collide() {
    let registry = Registry::start().await;
    let other = Registry::start().await;
    let user = User::of_packages(&[]).await;
    // Two registries have a repository of the same name, so the same name would be generated for both.
    registry.push_simple("acme/b:v1.0.0", &[]);
    let things = composition("other-b", "Thing", &json!({}), &[("nothing", Value::Null)]);
    other.push("acme/b:v1.0.0", &other.configuration("b", &[], &[things]));
    let both = [
        format!("configuration {} >=v1.0.0", registry.at("acme/b")),
        format!("configuration {} >=v1.0.0", other.at("acme/b")),
    ];
    registry.push_simple("acme/a:v1.0.0", &both.each_ref().map(String::as_str));
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    user.until_healthy("a").await;
    let mut installed: Vec<String> = user
        .list(CONFIGURATION)
        .await
        .iter()
        .map(|package| package["spec"]["package"].as_str().unwrap().to_owned())
        .collect();
    installed.sort();
    let mut expected =
        vec![registry.at("acme/a:v1.0.0"), registry.at("acme/b:v1.0.0"), other.at("acme/b:v1.0.0")];
    expected.sort();
    assert_eq!(installed, expected);
    for name in user.names(CONFIGURATION).await {
        user.until_healthy(&name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i6659_behind_a_mirror_nothing_asks_for_the_original() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    // Names under `.invalid` never resolve: a request to them fails.
    registry.push_simple("mirror/acme/a:v1.0.0", &["configuration upstream.invalid/acme/b >=v1.0.0"]);
    registry.push_simple("mirror/acme/b:v1.0.0", &["configuration upstream.invalid/acme/c ^1.0.0"]);
    registry.push_simple("mirror/acme/c:v1.4.0", &[]);
    let rewrite = format!("rewriteImage: {{prefix: '{}'}}", registry.at("mirror/"));
    user.apply(&image_config("mirror", "upstream.invalid/", &rewrite)).await;
    user.apply(&install("a", "upstream.invalid/acme/a:v1.0.0")).await;
    for name in ["a", "acme-b", "acme-c"] {
        user.until_healthy(name).await;
    }
    let lock = user.until_true(LOCK, "lock", "Resolved").await;
    let sources: Vec<&str> =
        lock["packages"].as_array().unwrap().iter().map(|p| p["source"].as_str().unwrap()).collect();
    assert!(sources.iter().all(|source| source.starts_with("upstream.invalid/")), "{sources:?}");
    let c = user.get(CONFIGURATION, "acme-c").await.unwrap();
    assert_eq!(c["spec"]["package"], "upstream.invalid/acme/c:v1.4.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn i6411_i6076_dependencies_follow_their_dependents_up_and_down() {
    let registry = Registry::start().await;
    for version in ["v1.0.0", "v1.5.0", "v2.0.0"] {
        registry.push_simple(&format!("acme/b:{version}"), &[]);
    }
    registry.push_simple("acme/a:v1.0.0", &["configuration acme/b ^1.0.0"]);
    registry.push_simple("acme/a:v2.0.0", &["configuration acme/b ^2.0.0"]);
    let user = User::of_packages(&["--enable-dependency-version-downgrades"]).await;
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    let at = |version: &str| registry.at(&format!("acme/b:{version}"));
    // The platform is upgraded and rolled back; what it depends on goes with it both times.
    for (platform, expected) in [("v1.0.0", "v1.5.0"), ("v2.0.0", "v2.0.0"), ("v1.0.0", "v1.5.0")] {
        user.set_package("a", &registry.at(&format!("acme/a:{platform}"))).await;
        let moved = |p: &Value| p["spec"]["package"] == *at(expected) && is_healthy(p);
        user.until(CONFIGURATION, "acme-b", moved).await;
        user.until_healthy("a").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i5279_i6275_i6360_i4588_a_package_that_skips_resolution_is_not_installed_twice() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    registry.push_simple("acme/b:v1.0.0", &["configuration acme/nowhere >=v1.0.0"]);
    registry.push_simple("acme/a:v1.0.0", &["configuration acme/b >=v1.0.0"]);
    let skip = ", skipDependencyResolution: true";
    user.apply(&install_with("mine", &registry.at("acme/b:v1.0.0"), skip)).await;
    user.until_healthy("mine").await;
    // As in the original, it does not count for others. Unlike there, it is not installed a second time.
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    let message = user.until_unhealthy("a", "missing dependencies").await;
    assert!(message.contains("acme/b"), "{message}");
    user.until_idle().await;
    assert_eq!(user.names(CONFIGURATION).await, ["a", "mine"]);
    let lock = user.get(LOCK, "lock").await.unwrap();
    assert!(!lock["packages"].to_string().contains("nowhere"), "{lock:#}");
    // The one that depends on it can skip, too; and what skips no longer counts, also for what is installed already.
    user.patch(CONFIGURATION, "a", json!({"spec": {"skipDependencyResolution": true}})).await;
    user.until_healthy("a").await;
    user.patch(CONFIGURATION, "a", json!({"spec": {"skipDependencyResolution": false}})).await;
    user.until_unhealthy("a", "missing dependencies").await;
    registry.push_simple("acme/nowhere:v1.0.0", &[]);
    user.patch(CONFIGURATION, "mine", json!({"spec": {"skipDependencyResolution": false}})).await;
    for name in ["mine", "a", "acme-nowhere"] {
        user.until_healthy(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i6382_docs789_what_a_package_is_pulled_and_run_with_reaches_its_dependencies() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    registry.0.require(transom_oci::testing::Access::Basic);
    registry.push_simple("acme/b:v1.0.0", &[]);
    registry.push_simple("acme/a:v1.0.0", &["configuration acme/b >=v1.0.0"]);
    let provider = |name: &str, depends: &str| {
        format!(
            "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {{name: {name}}}\nspec: {{{depends}}}\n"
        )
    };
    let family = format!("dependsOn: [{{provider: '{}', version: '>=v1.0.0'}}]", registry.at("acme/family"));
    registry.push("acme/family:v1.0.0", &provider("family", ""));
    registry.push("acme/provider:v1.0.0", &provider("provider", &family));
    let config = json!({"auths": {&registry.0.host: {"username": "user", "password": "password"}}});
    user.secret("pull", ".dockerconfigjson", &config.to_string()).await;
    let secrets = ", packagePullSecrets: [{name: pull}]";
    user.apply(&install_with("a", &registry.at("acme/a:v1.0.0"), secrets)).await;
    user.until_healthy("a").await;
    let b = user.until_healthy("acme-b").await;
    assert_eq!(b["spec"]["packagePullSecrets"], json!([{"name": "pull"}]));

    let run = format!("{secrets}, runtimeConfigRef: {{name: small}}");
    let provider = install_with("p", &registry.at("acme/provider:v1.0.0"), &run);
    user.apply(&provider.replace("kind: Configuration", "kind: Provider")).await;
    let family = user.until_true(PROVIDER, "acme-family", "Installed").await;
    assert_eq!(family["spec"]["runtimeConfigRef"]["name"], "small");
    assert_eq!(family["spec"]["packagePullSecrets"], json!([{"name": "pull"}]));
}
