//! One user and one Configuration with dependencies: installed, used, upgraded, rolled back, broken in every way and
//! repaired, and bundled for a place without a registry.

use super::*;
use crate::xpkg::{Folder, verify};
use serde_json::json;
use transom_object::meta;

const GO_TEMPLATING: &str = "crossplane-contrib-function-go-templating";
const AUTO_READY: &str = "crossplane-contrib-function-auto-ready";
const APP: &str = "example.org/v1/App";
const BUCKETS: &str = "buckets.storage.example.org";

/// What the first version of the platform depends on.
const DEPENDENCIES: [&str; 4] = [
    "configuration acme/network >=v0.1.0",
    "provider acme/provider-storage ^v1.0.0",
    "function crossplane-contrib/function-go-templating >=v0.9.0",
    "function crossplane-contrib/function-auto-ready >=v0.4.0",
];

/// A Composition that says its version in a ConfigMap.
fn apps(version: &str) -> String {
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  namespace: default\n  annotations:\n    \
         {{{{ setResourceNameAnnotation \"map\" }}}}\ndata: {{says: {version}}}\n"
    );
    composition("apps", "App", &json!({}), &[(GO_TEMPLATING, template(&text).1), (AUTO_READY, Value::Null)])
}

fn provider() -> String {
    format!(
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {{name: provider-storage}}\n---\n\
         apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {BUCKETS}}}\nspec:\n  \
         group: storage.example.org\n  scope: Cluster\n  names: {{kind: Bucket, plural: buckets}}\n  versions:\n  \
         - name: v1\n    served: true\n    storage: true\n    \
         schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}\n"
    )
}

fn function(name: &str) -> String {
    format!("apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata: {{name: {name}}}\n")
}

/// Pushes the platform in two versions that work, and all that it depends on.
fn push_platform(registry: &Registry) -> (Digest, Digest) {
    registry.push_simple("acme/network:v0.1.0", &[]);
    registry.push_simple("acme/network:v0.2.0", &[]);
    registry.push("acme/provider-storage:v1.0.0", &provider());
    for name in ["function-go-templating", "function-auto-ready"] {
        registry.push(&format!("crossplane-contrib/{name}:v0.9.0"), &function(name));
    }
    let version = |version: &str| {
        let documents = [definition("App", "Cluster", ""), apps(version)];
        let image = format!("acme/platform:{version}");
        registry.push(&image, &registry.configuration("platform", &DEPENDENCIES, &documents))
    };
    (version("v1.0.0"), version("v1.1.0"))
}

/// Waits until the App is ready and says a version.
async fn until_app_says(user: &User, version: &str) {
    user.until_any(MAP, |map| map["data"]["says"] == version).await;
    user.until_ready(APP, "shop").await;
}

/// A user who installed the first version and uses it.
async fn with_platform(registry: &Registry, first: &Digest) -> User {
    uses_platform(User::of_packages(&[]).await, registry, first).await
}

async fn uses_platform(user: User, registry: &Registry, first: &Digest) -> User {
    user.apply(&install("platform", &registry.at("acme/platform:v1.0.0"))).await;
    user.until_installed("platform", first).await;
    user.until_true(XRD, "apps.example.org", "Established").await;
    user.apply(&object("App", "shop", "coolField: x")).await;
    until_app_says(&user, "v1.0.0").await;
    user
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_is_installed_upgraded_and_rolled_back() {
    let registry = Registry::start().await;
    let (first, second) = push_platform(&registry);
    let user = with_platform(&registry, &first).await;
    let network = user.until_healthy("acme-network").await;
    assert_eq!(network["spec"]["package"], registry.at("acme/network:v0.2.0"), "the highest version");
    user.until_true(CRD, BUCKETS, "Established").await;
    let provider = user.until_true(PROVIDER, "acme-provider-storage", "Installed").await;
    assert_eq!(reason_of(&provider, "Installed"), "ActivePackageRevision");
    for name in [GO_TEMPLATING, AUTO_READY] {
        user.until_true(FUNCTION, name, "Healthy").await;
    }
    let asked = registry.take_requests();
    assert!(!asked.iter().any(|request| request.contains("function-")), "built in: {asked:?}");
    user.until_true(LOCK, "lock", "Resolved").await;
    let xrd = user.get(XRD, "apps.example.org").await.unwrap();

    user.set_package("platform", &registry.at("acme/platform:v1.1.0")).await;
    user.until_installed("platform", &second).await;
    until_app_says(&user, "v1.1.0").await;
    user.set_package("platform", &registry.at("acme/platform:v1.0.0")).await;
    user.until_installed("platform", &first).await;
    until_app_says(&user, "v1.0.0").await;
    let after = user.get(XRD, "apps.example.org").await.unwrap();
    assert_eq!(meta::uid(&after), meta::uid(&xrd), "it was never deleted");
    assert_eq!(user.list(CONFIGURATION_REVISION).await.len(), 3, "two of the platform, one of the network");

    // A user who is done deletes the Configuration: what it brought goes, what it depended on stays.
    user.delete(APP, "shop", None).await;
    user.until_gone(APP, "shop").await;
    user.delete(CONFIGURATION, "platform", None).await;
    user.until_gone(XRD, "apps.example.org").await;
    user.until_gone(COMPOSITION, "apps").await;
    user.until(LOCK, "lock", |lock| !lock["packages"].to_string().contains("acme/platform")).await;
    user.until_healthy("acme-network").await;
}

/// Versions of the platform that cannot be installed, and what the condition of the package says about each.
fn push_broken(registry: &Registry) -> Vec<(&'static str, Vec<&'static str>)> {
    let xrd = definition("App", "Cluster", "");
    let push = |version: &str, dependencies: &[&str], documents: &[String]| {
        let package = registry.configuration("platform", dependencies, documents);
        registry.push(&format!("acme/platform:{version}"), &package);
    };
    push("v2.0.0", &["configuration acme/network >=v9.0.0"], &[xrd.clone(), apps("v2.0.0")]);
    push("v2.1.0", &["configuration acme/nowhere >=v1.0.0"], &[xrd.clone(), apps("v2.1.0")]);
    let taken = composition("taken", "App", &json!({}), &[(AUTO_READY, Value::Null)]);
    push("v2.2.0", &DEPENDENCIES, &[xrd.clone(), apps("v2.2.0"), taken]);
    let invalid = "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: wrong}\nspec: {mode: Pipeline}";
    push("v2.3.0", &DEPENDENCIES, &[xrd.clone(), apps("v2.3.0"), invalid.to_owned()]);
    push("v2.4.0", &DEPENDENCIES, &[xrd, "kind: Composition\nspec: [\n".to_owned()]);
    vec![
        (
            "v1.9.0",
            vec!["cannot unpack package", "acme/platform:v1.9.0", "has no such", "check the reference"],
        ),
        ("v2.0.0", vec!["acme/network@v0.2.0 is incompatible with constraint >=v9.0.0"]),
        ("v2.1.0", vec!["missing dependencies", "acme/nowhere"]),
        ("v2.2.0", vec!["Composition \"taken\"", "already controlled by Namespace default"]),
        ("v2.3.0", vec!["Composition \"wrong\"", "spec.compositeTypeRef"]),
        ("v2.4.0", vec!["cannot unpack package", "package.yaml, document 3 (line "]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_platform_says_why_and_can_be_repaired() {
    let registry = Registry::start().await;
    let (first, second) = push_platform(&registry);
    let user = with_platform(&registry, &first).await;
    let namespace = user.get("v1/Namespace", "default").await.unwrap();
    let mut taken =
        documents(&composition("taken", "App", &json!({}), &[("nothing", Value::Null)])).remove(0);
    taken["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": meta::uid(&namespace),
        "controller": true,
    }]);
    user.cluster.create(&taken, "kubectl").await.unwrap();
    for (version, words) in push_broken(&registry) {
        user.set_package("platform", &registry.at(&format!("acme/platform:{version}"))).await;
        let message = user.until_unhealthy("platform", words[0]).await;
        for part in words {
            assert!(message.contains(part), "{version}: {part}: {message}");
        }
        // What was installed before works as before.
        until_app_says(&user, "v1.0.0").await;
        assert_eq!(user.names(COMPOSITION).await, ["apps", "network", "taken"], "{version}");
    }
    user.set_package("platform", &registry.at("acme/platform:v1.1.0")).await;
    user.until_installed("platform", &second).await;
    until_app_says(&user, "v1.1.0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_is_bundled_for_a_place_without_a_registry() {
    let registry = Registry::start().await;
    push_platform(&registry);
    let folder = Folder::new();
    let platform = registry.at("acme/platform:v1.0.0");
    let bundled = folder.run(&["bundle", &platform, "-o", "platform.tar"]);
    let said = String::from_utf8_lossy(&bundled.stderr).into_owned();
    assert_eq!(bundled.status.code(), Some(0), "{said}");
    let network = registry.at("acme/network:v0.2.0");
    for image in [&platform, &network, &registry.at("acme/provider-storage:v1.0.0")] {
        assert!(said.contains(image.as_str()), "{image}: {said}");
    }
    drop(registry);
    let inspected = folder.ok(&["inspect", &platform, "--packages", "platform.tar", "-o", "json"]);
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["dependencies"].as_array().map(Vec::len), Some(4), "{inspected:#}");
    folder.ok(&["inspect", &network, "--packages", "platform.tar"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_registry_a_platform_is_upgraded_rolled_back_and_broken() {
    let registry = Registry::start().await;
    let (first, second) = push_platform(&registry);
    let folder = Folder::new();
    let versions = ["v1.0.0", "v1.1.0"].map(|version| registry.at(&format!("acme/platform:{version}")));
    folder.ok(&["bundle", &versions[0], &versions[1], "-o", "platform.tar", "--without-builtins"]);
    registry.take_requests();
    let bundle = folder.path("platform.tar");
    let user = User::of_packages(&["--package-source", &bundle.to_string_lossy()]).await;
    let user = uses_platform(user, &registry, &first).await;
    user.until_healthy("acme-network").await;
    user.set_package("platform", &versions[1]).await;
    user.until_installed("platform", &second).await;
    until_app_says(&user, "v1.1.0").await;
    user.set_package("platform", &registry.at("acme/platform:v3.0.0")).await;
    let message = user.until_unhealthy("platform", "acme/platform:v3.0.0").await;
    assert!(message.contains("platform.tar"), "{message}");
    until_app_says(&user, "v1.1.0").await;
    user.set_package("platform", &versions[0]).await;
    user.until_installed("platform", &first).await;
    until_app_says(&user, "v1.0.0").await;
    assert!(registry.take_requests().is_empty(), "the bundle replaces all registries");
}

/// Writes what a registry has as an OCI layout.
fn write_layout(registry: &Registry, folder: &Folder) {
    let state = registry.0.state.lock().unwrap();
    let blobs = folder.path("layout/blobs/sha256");
    std::fs::create_dir_all(&blobs).unwrap();
    let write = |bytes: &[u8]| std::fs::write(blobs.join(Digest::of(bytes).hex()), bytes).unwrap();
    state.blobs.values().for_each(|bytes| write(bytes));
    let mut manifests = Vec::new();
    for (name, (media_type, bytes)) in &state.manifests {
        write(bytes);
        if !name.contains(":sha256:") {
            manifests.push(json!({
                "mediaType": media_type, "size": bytes.len(), "digest": Digest::of(bytes).as_str(),
                "annotations": {"org.opencontainers.image.ref.name": registry.at(name)},
            }));
        }
    }
    folder.write("layout/oci-layout", r#"{"imageLayoutVersion": "1.0.0"}"#);
    let index = json!({"schemaVersion": 2, "manifests": manifests});
    folder.write("layout/index.json", &index.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oci_layout_stands_in_for_a_registry() {
    let registry = Registry::start().await;
    let a = registry.push_simple("acme/a:v1.0.0", &["configuration acme/b >=v1.0.0"]);
    registry.push_simple("acme/b:v1.0.0", &[]);
    let b = registry.push_simple("acme/b:v1.1.0", &[]);
    let damaged = package_layer(&registry.configuration("damaged", &[], &[]));
    registry.0.push("acme/damaged", "v1.0.0", &image(CONFIG, std::slice::from_ref(&damaged), true));
    let folder = Folder::new();
    write_layout(&registry, &folder);
    let mut other = damaged.clone();
    // The time in the head of gzip: all but the digest is as it should be.
    other[4] ^= 0x20;
    let path = folder.path("layout/blobs/sha256").join(Digest::of(&damaged).hex());
    std::fs::write(path, other).unwrap();
    let [reference, of_damaged] = ["a", "damaged"].map(|name| registry.at(&format!("acme/{name}:v1.0.0")));
    drop(registry);
    let inspected = folder.ok(&["inspect", &reference, "--packages", "layout", "-o", "json"]);
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["digest"], a.as_str());
    let layout = folder.path("layout").display().to_string();
    let user = User::of_packages(&["--package-source", &layout]).await;
    user.apply(&install("a", &reference)).await;
    user.until_installed("a", &a).await;
    user.until_installed("acme-b", &b).await;
    // What is on disk is verified like what comes from a registry.
    user.apply(&install("damaged", &of_damaged)).await;
    let refused = user.until(CONFIGURATION, "damaged", is_unpacking).await;
    let message = message_of(&refused, "Installed");
    assert!(message.contains("it was damaged or replaced"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_registry_signatures_of_the_bundle_are_verified() {
    let registry = Registry::start().await;
    let key = rcgen::KeyPair::generate().unwrap();
    let digest = registry.push_simple("acme/package:v1.0.0", &[]);
    verify::sign(&registry.0, digest.as_str(), &key);
    registry.push_simple("acme/unsigned:v1.0.0", &[]);
    let folder = Folder::new();
    let images = ["package", "unsigned"].map(|name| registry.at(&format!("acme/{name}:v1.0.0")));
    let host = registry.at("");
    folder.ok(&["bundle", &images[0], &images[1], "-o", "signed.tar"]);
    drop(registry);
    let bundle = folder.path("signed.tar");
    let user = User::of_packages(&["--package-source", &bundle.to_string_lossy()]).await;
    user.secret("cosign", "cosign.pub", &key.public_key_pem()).await;
    let spec = "verification: {provider: Cosign, cosign: {authorities: [{name: ours, key: {secretRef: {name: cosign, key: \
                cosign.pub}, hashAlgorithm: sha256}}]}}";
    user.apply(&image_config("signed", &host, spec)).await;
    user.until_idle().await;
    for (name, image) in ["signed", "unsigned"].iter().zip(&images) {
        user.apply(&install(name, image)).await;
    }
    user.until_installed("signed", &digest).await;
    let revision = user.get(CONFIGURATION_REVISION, &revision_of("signed", &digest)).await.unwrap();
    assert!(meta::annotation(&revision, "transom.io/verified-by").is_some(), "{revision:#}");
    let refused = user.until(CONFIGURATION, "unsigned", is_unpacking).await;
    let message = message_of(&refused, "Installed");
    assert!(message.contains("no signature of it was found"), "{message}");
    assert!(user.get(COMPOSITION, "unsigned").await.is_none());
}
