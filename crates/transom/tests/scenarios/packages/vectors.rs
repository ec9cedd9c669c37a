//! The behavioural vectors of packages, by their numbers.

use super::*;
use crate::xpkg::Folder;
use serde_json::json;
use std::path::Path;
use transom_function::Resource;
use transom_object::meta;

/// Number and desired state of all revisions of Configurations, by number.
async fn revisions(user: &User) -> Vec<(i64, String)> {
    let revisions = user.list(CONFIGURATION_REVISION).await;
    let mut all: Vec<(i64, String)> = revisions
        .iter()
        .map(|r| {
            (r["spec"]["revision"].as_i64().unwrap(), r["spec"]["desiredState"].as_str().unwrap().to_owned())
        })
        .collect();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn v1_another_tag_of_the_same_digest_keeps_the_revision() {
    let registry = Registry::start().await;
    let digest = registry.push_simple("acme/a:v1.0.0", &[]);
    let user = User::of_packages(&[]).await;
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    user.until_installed("a", &digest).await;
    assert_eq!(registry.push_simple("acme/a:v1.0.1", &[]), digest);
    user.set_package("a", &registry.at("acme/a:v1.0.1")).await;
    user.until(LOCK, "lock", |lock| lock["packages"][0]["version"] == "v1.0.1").await;
    let moved =
        |p: &Value| p["status"]["currentIdentifier"] == *registry.at("acme/a:v1.0.1") && is_healthy(p);
    user.until(CONFIGURATION, "a", moved).await;
    assert_eq!(user.names(CONFIGURATION_REVISION).await, [revision_of("a", &digest)]);
    assert_eq!(revisions(&user).await, [(1, "Active".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn v2_history_keeps_one_more_than_its_limit() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    for n in 1..=4 {
        let image = format!("acme/a:v{n}.0.0");
        let things =
            composition("things", "Thing", &json!({"version": n.to_string()}), &[("nothing", Value::Null)]);
        let digest = registry.push(&image, &registry.configuration("a", &[], &[things]));
        if n == 1 {
            user.apply(&install("a", &registry.at(&image))).await;
        } else {
            user.set_package("a", &registry.at(&image)).await;
        }
        user.until_installed("a", &digest).await;
    }
    user.until_idle().await;
    assert_eq!(revisions(&user).await, [(3, "Inactive".to_owned()), (4, "Active".to_owned())]);
    let things = user.get(COMPOSITION, "things").await.unwrap();
    assert_eq!(meta::label(&things, "version"), Some("4"));
}

#[tokio::test(flavor = "multi_thread")]
async fn v3_a_manual_upgrade_waits_for_its_activation() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    let old = registry.push_simple("acme/a:v1.0.0", &[]);
    let things = composition("a", "Thing", &json!({"new": "yes"}), &[("nothing", Value::Null)]);
    let new = registry.push("acme/a:v2.0.0", &registry.configuration("a", &[], &[things]));
    let manual = ", revisionActivationPolicy: Manual";
    user.apply(&install_with("a", &registry.at("acme/a:v1.0.0"), manual)).await;
    let inactive = |p: &Value| {
        (status_of(p, "Installed"), reason_of(p, "Installed")) == ("False", "InactivePackageRevision")
    };
    user.until(CONFIGURATION, "a", inactive).await;
    user.until_idle().await;
    assert!(user.get(COMPOSITION, "a").await.is_none());
    let activate = json!({"spec": {"desiredState": "Active"}});
    user.patch(CONFIGURATION_REVISION, &revision_of("a", &old), activate.clone()).await;
    user.until_installed("a", &old).await;

    user.set_package("a", &registry.at("acme/a:v2.0.0")).await;
    let moved = |p: &Value| inactive(p) && p["status"]["currentRevision"] == *revision_of("a", &new);
    user.until(CONFIGURATION, "a", moved).await;
    user.until_idle().await;
    assert_eq!(revisions(&user).await, [(1, "Inactive".to_owned()), (2, "Inactive".to_owned())]);
    assert_eq!(meta::label(&user.get(COMPOSITION, "a").await.unwrap(), "new"), None);
    // To activate another than the current one is undone.
    user.patch(CONFIGURATION_REVISION, &revision_of("a", &old), activate.clone()).await;
    let undone = |r: &Value| r["spec"]["desiredState"] == "Inactive";
    user.until(CONFIGURATION_REVISION, &revision_of("a", &old), undone).await;
    user.patch(CONFIGURATION_REVISION, &revision_of("a", &new), activate).await;
    user.until_installed("a", &new).await;
    user.until(COMPOSITION, "a", |c| meta::label(c, "new") == Some("yes")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v4_an_installed_package_of_another_name_satisfies_a_dependency() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    for version in ["v0.2.0", "v0.3.0", "v0.4.0"] {
        registry.push_simple(&format!("acme/b:{version}"), &[]);
    }
    registry.push_simple("acme/a:v1.0.0", &["configuration acme/b >=v0.2.0"]);
    user.apply(&install("my-own-name", &registry.at("acme/b:v0.3.0"))).await;
    user.until_healthy("my-own-name").await;
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    user.until_healthy("a").await;
    user.until_idle().await;
    assert_eq!(user.names(CONFIGURATION).await, ["a", "my-own-name"]);
    let asked = registry.take_requests();
    assert!(!asked.iter().any(|request| request.contains("/tags/")), "{asked:?}");
}

/// Packages that accept some versions of `acme/b`, of which there are four.
fn push_versions(registry: &Registry) {
    for version in ["v1.0.0", "v1.1.0", "v1.2.0", "v2.0.0"] {
        registry.push_simple(&format!("acme/b:{version}"), &[]);
    }
    registry.push_simple("acme/later:v1.0.0", &["configuration acme/b >=v1.1.0"]);
    registry.push_simple("acme/below:v1.0.0", &["configuration acme/b <v2.0.0"]);
    registry.push_simple("acme/early:v1.0.0", &["configuration acme/b <v1.2.0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn v5_an_incompatible_version_is_named_and_left_alone() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    push_versions(&registry);
    user.apply(&install("b", &registry.at("acme/b:v1.0.0"))).await;
    user.until_healthy("b").await;
    user.apply(&install("later", &registry.at("acme/later:v1.0.0"))).await;
    let message = user.until_unhealthy("later", "incompatible dependencies").await;
    let named =
        format!("existing package {}@v1.0.0 is incompatible with constraint >=v1.1.0", registry.at("acme/b"));
    assert!(message.contains(&named), "{message}");
    user.until_idle().await;
    let b = user.get(CONFIGURATION, "b").await.unwrap();
    assert_eq!(b["spec"]["package"], registry.at("acme/b:v1.0.0"));
    assert!(user.get(COMPOSITION, "later").await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn v5_upgrades_choose_the_lowest_and_downgrades_the_highest_that_all_accept() {
    let registry = Registry::start().await;
    push_versions(&registry);
    let mut user = User::of_packages(&["--enable-dependency-version-upgrades"]).await;
    // A first installation takes the highest version that all accept.
    user.apply(&install("below", &registry.at("acme/below:v1.0.0"))).await;
    user.until_healthy("below").await;
    let at = |version: &str| registry.at(&format!("acme/b:{version}"));
    let b = user.until_healthy("acme-b").await;
    assert_eq!(b["spec"]["package"], at("v1.2.0"));
    user.set_package("acme-b", &at("v1.0.0")).await;
    let is_at = |version: &str| {
        let wanted = at(version);
        move |p: &Value| p["spec"]["package"] == *wanted && is_healthy(p)
    };
    user.until(CONFIGURATION, "acme-b", is_at("v1.0.0")).await;
    user.apply(&install("later", &registry.at("acme/later:v1.0.0"))).await;
    user.until_healthy("later").await;
    user.until(CONFIGURATION, "acme-b", is_at("v1.1.0")).await;
    // Only lower versions are accepted: that takes another flag.
    user.set_package("acme-b", &at("v1.2.0")).await;
    user.until(CONFIGURATION, "acme-b", is_at("v1.2.0")).await;
    user.apply(&install("early", &registry.at("acme/early:v1.0.0"))).await;
    user.until(LOCK, "lock", |l| message_of(l, "Resolved").contains("manual intervention is required")).await;
    user.until_unhealthy("early", "is incompatible with constraint <v1.2.0").await;
    user.restart(&["--enable-dependency-version-downgrades"]).await;
    user.until_healthy("early").await;
    user.until(CONFIGURATION, "acme-b", is_at("v1.1.0")).await;
    user.until_true(LOCK, "lock", "Resolved").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v7_an_unsigned_image_that_must_be_signed_is_not_installed() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    registry.push_simple("acme/a:v1.0.0", &[]);
    registry.push_simple("open/b:v1.0.0", &[]);
    user.secret("cosign", "cosign.pub", &rcgen::KeyPair::generate().unwrap().public_key_pem()).await;
    let spec = "verification: {provider: Cosign, cosign: {authorities: [{name: ours, key: {secretRef: {name: cosign, key: \
                cosign.pub}, hashAlgorithm: sha256}}]}}";
    user.apply(&image_config("signed", &registry.at("acme/"), spec)).await;
    user.until_idle().await;
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    let refused = user.until(CONFIGURATION, "a", is_unpacking).await;
    let message = message_of(&refused, "Installed");
    assert!(message.contains(&registry.at("acme/a")) && message.contains("signature"), "{message}");
    user.apply(&install("b", &registry.at("open/b:v1.0.0"))).await;
    user.until_healthy("b").await;
    user.until_idle().await;
    let revisions = user.names(CONFIGURATION_REVISION).await;
    assert!(revisions.iter().all(|name| name.starts_with("b-")), "{revisions:?}");
    assert!(user.get(COMPOSITION, "a").await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn v8_a_rewritten_image_counts_under_its_original_name() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    let digest = registry.push_simple("mirror/acme/a:v1.0.0", &[]);
    let rewrite = format!("rewriteImage: {{prefix: '{}'}}", registry.at("mirror/"));
    user.apply(&image_config("mirror", "upstream.invalid/", &rewrite)).await;
    user.apply(&install("a", "upstream.invalid/acme/a:v1.0.0")).await;
    let package = user.until_installed("a", &digest).await;
    assert_eq!(package["status"]["resolvedPackage"], registry.at("mirror/acme/a:v1.0.0"));
    let applied = json!([{"name": "mirror", "reason": "RewriteImage"}]);
    assert_eq!(package["status"]["appliedImageConfigRefs"], applied);
    let revision = user.get(CONFIGURATION_REVISION, &revision_of("a", &digest)).await.unwrap();
    assert_eq!(revision["spec"]["image"], "upstream.invalid/acme/a:v1.0.0");
    assert_eq!(revision["status"]["resolvedImage"], registry.at("mirror/acme/a:v1.0.0"));
    let lock = user.get(LOCK, "lock").await.unwrap();
    assert_eq!(lock["packages"][0]["source"], "upstream.invalid/acme/a");
}

/// The definition of the composite resource in `examples/render`.
const APPS: &str = "\
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: apps.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: App, plural: apps}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [image]
            properties: {image: {type: string}, replicas: {type: integer}, region: {enum: [eu, us], type: string}}
          status: {type: object, properties: {replicas: {type: integer}}}
";

#[tokio::test(flavor = "multi_thread")]
async fn v12_what_is_rendered_is_valid_for_the_plane() {
    let user = User::of_packages(&[]).await;
    user.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: demo}\n").await;
    user.apply(APPS).await;
    user.until_true(XRD, "apps.example.org", "Established").await;
    let example = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/render").join(name);
        std::fs::read_to_string(path).expect("an example")
    };
    let folder = Folder::new();
    folder.write("xr.yaml", &example("xr.yaml")).write("composition.yaml", &example("composition.yaml"));
    // What the server says about each rendered document, as to `kubectl create --dry-run=server -f -`.
    let verdicts = async |shape: &[&str]| {
        let arguments = [&["render", "xr.yaml", "composition.yaml", "--include-full-xr"], shape].concat();
        let rendered = folder.command(&arguments).output().expect("the binary runs");
        assert_eq!(rendered.status.code(), Some(0), "{}", String::from_utf8_lossy(&rendered.stderr));
        let mut said = Vec::new();
        for mut document in documents(&String::from_utf8(rendered.stdout).expect("text")) {
            // The classic shape has no uids, which only a server gives.
            if !shape.is_empty() {
                document["metadata"].as_object_mut().expect("metadata").remove("ownerReferences");
            }
            let checked = user.cluster.try_create(&document, "kubectl").await;
            said.push((meta::kind(&document).to_owned(), checked.err().map(|e| e.chain().to_string())));
        }
        said
    };
    let kinds = ["App", "Deployment", "Service"];
    for shape in [&[][..], &["--classic-output"]] {
        let said = verdicts(shape).await;
        assert_eq!(said, kinds.map(|kind| (kind.to_owned(), None)), "{shape:?}");
    }
    folder.write("composition.yaml", &example("composition.yaml").replace("port: 80", "port: eighty"));
    let service = verdicts(&[]).await.remove(2).1.expect("it is refused");
    assert!(service.contains("spec.ports.port"), "{service}");
}

#[tokio::test(flavor = "multi_thread")]
async fn v13_more_than_four_megabytes_go_through_a_pipeline() {
    /// Five of them are more than gRPC's libraries take by default.
    const PARTS: usize = 5;
    let user = User::new().await;
    user.function("large", |request, response| {
        let mut seen = 0;
        for number in 0..PARTS {
            let name = format!("part-{number}");
            seen += usize::from(request.observed_composed(&name).is_some());
            let data = json!({"text": number.to_string().repeat(1 << 20)});
            let map = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}, "data": data,
            });
            response.set_composed(&*name, Resource::new(map)?);
        }
        response.composite().set("status.coolerField", format!("observed {seen}"))?;
        Ok(())
    })
    .await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("things", "Thing", &json!({}), &[("large", Value::Null)])).await;
    user.apply(&object("Thing", "one", "")).await;
    // The function was called with all of them, and returned all of them.
    user.until(THING, "one", |thing| thing["status"]["coolerField"] == "observed 5").await;
    assert_eq!(user.composed("v1/ConfigMap", "one").await.len(), PARTS);
}
