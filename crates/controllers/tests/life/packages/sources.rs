//! Mirrors and pull secrets.

use super::install::platform;
use super::*;
use crate::life::basics::composition;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

pub(super) fn image_config(name: &str, prefix: &str, spec: &str) -> String {
    format!(
        "apiVersion: pkg.crossplane.io/v1beta1\nkind: ImageConfig\nmetadata: {{name: {name}}}\nspec:\n  \
         matchImages: [{{type: Prefix, prefix: {prefix}}}]\n  {spec}\n"
    )
}

/// A pull secret where the controllers look for it.
pub(super) async fn secret(plane: &Plane, name: &str, password: &str) {
    secret_with(plane, name, "password", password).await;
}

/// A Secret with one key where the controllers look for it.
pub(super) async fn secret_with(plane: &Plane, name: &str, key: &str, value: &str) {
    if plane.get("v1/Namespace", "crossplane-system").await.is_none() {
        plane.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: crossplane-system}\n").await;
    }
    let value = STANDARD.encode(value);
    let manifest = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: crossplane-system}}\ndata: {{{key}: {value}}}\n"
    );
    plane.apply(&manifest).await;
}

#[tokio::test]
async fn a_mirror_is_used_and_the_original_is_what_counts() {
    let plane = Plane::new().await;
    let digest = plane.registry.push("mirror.io/acme/platform:v1.0.0", &platform());
    plane.apply(&image_config("mirror", "r.io/", "rewriteImage: {prefix: mirror.io/}")).await;
    plane.apply(&install("platform", "r.io/acme/platform:v1.0.0")).await;
    let package = until_installed(&plane, "platform", &digest).await;
    assert_eq!(package["status"]["resolvedPackage"], "mirror.io/acme/platform:v1.0.0");
    assert_eq!(
        package["status"]["appliedImageConfigRefs"],
        json!([{"name": "mirror", "reason": "RewriteImage"}])
    );
    let revision = plane.get(CONFIGURATION_REVISION, &revision_of("platform", &digest)).await.unwrap();
    assert_eq!(revision["spec"]["image"], "r.io/acme/platform:v1.0.0");
    assert_eq!(revision["status"]["resolvedImage"], "mirror.io/acme/platform:v1.0.0");
    let lock = plane.get(LOCK, "lock").await.unwrap();
    assert_eq!(lock["packages"][0]["source"], "r.io/acme/platform");
}

#[tokio::test]
async fn an_image_config_that_comes_later_heals_the_package() {
    let plane = Plane::new().await;
    let digest = plane.registry.push("mirror.io/acme/platform:v1.0.0", &platform());
    plane.apply(&install("platform", "r.io/acme/platform:v1.0.0")).await;
    plane.until(CONFIGURATION, "platform", |p| reason_of(p, "Installed") == "UnpackingPackage").await;
    plane.apply(&image_config("mirror", "r.io/", "rewriteImage: {prefix: mirror.io/}")).await;
    until_installed(&plane, "platform", &digest).await;
}

#[tokio::test]
async fn pull_secrets_reach_the_registry_and_dependencies_but_no_message() {
    let plane = Plane::new().await;
    plane.registry.require_password("hunter2");
    let spec = depends_on(&[("r.io/acme/b", ">=v1.0.0")]);
    plane.registry.push("r.io/acme/a:v1.0.0", &configuration("a", &spec, &[composition("a", &["sizer"])]));
    plane.registry.push("r.io/acme/b:v1.0.0", &configuration("b", "", &[composition("b", &["sizer"])]));
    secret(&plane, "wrong", "guess-4711").await;
    let manifest =
        install("a", "r.io/acme/a:v1.0.0").replace("spec: {", "spec: {packagePullSecrets: [{name: pull}], ");
    plane.apply(&manifest).await;
    let missing =
        plane.until(CONFIGURATION, "a", |p| message_of(p, "Installed").contains("pull secret")).await;
    let message = message_of(&missing, "Installed");
    assert!(message.contains("there is no such Secret in namespace \"crossplane-system\""), "{message}");
    secret(&plane, "pull", "guess-4711").await;
    let refused =
        plane.until(CONFIGURATION, "a", |p| message_of(p, "Installed").contains("unauthorized")).await;
    assert!(!refused.to_string().contains("guess-4711"));
    secret(&plane, "pull", "hunter2").await;
    plane.until(CONFIGURATION, "a", is_healthy).await;
    let b = plane.until(CONFIGURATION, "acme-b", is_healthy).await;
    assert_eq!(b["spec"]["packagePullSecrets"], json!([{"name": "pull"}]));
    for kind in [CONFIGURATION, CONFIGURATION_REVISION, LOCK, "v1/Event"] {
        assert!(!json!(plane.list(kind).await).to_string().contains("hunter2"), "{kind}");
    }
}

#[tokio::test]
async fn secrets_of_image_configs_and_of_the_service_account_are_used() {
    for configured in [true, false] {
        let plane = Plane::new().await;
        plane.registry.require_password("hunter2");
        secret(&plane, "pull", "hunter2").await;
        if configured {
            let spec = "registry: {authentication: {pullSecretRef: {name: pull}}}";
            plane.apply(&image_config("auth", "r.io/", spec)).await;
        } else {
            plane
                .apply(
                    "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: crossplane, namespace: crossplane-system}\n\
                     imagePullSecrets: [{name: absent}, {name: pull}]\n",
                )
                .await;
        }
        let digest = plane.registry.push("r.io/acme/platform:v1.0.0", &platform());
        plane.apply(&install("platform", "r.io/acme/platform:v1.0.0")).await;
        until_installed(&plane, "platform", &digest).await;
    }
}

fn runtime_config(name: &str) -> String {
    format!(
        "apiVersion: pkg.crossplane.io/v1beta1\nkind: DeploymentRuntimeConfig\nmetadata: {{name: {name}}}\nspec:\n  \
         deploymentTemplate:\n    spec:\n      selector: {{}}\n      template:\n        spec:\n          \
         containers: [{{name: package-runtime, args: [--{name}]}}]\n"
    )
}

#[tokio::test]
async fn an_image_config_chooses_the_runtime_config_of_a_package() {
    const CONFIG: &str = "pkg.crossplane.io/v1beta1/DeploymentRuntimeConfig";
    let plane = Plane::new().await;
    plane.apply(&runtime_config("own")).await;
    plane.apply(&runtime_config("chosen")).await;
    plane.function("sizer", |mut request| Ok(request.start_response())).await;
    plane.patch(FUNCTION, "sizer", json!({"spec": {"runtimeConfigRef": {"name": "own"}}})).await;
    plane.until_function_runs_with("sizer", "--own").await;
    // One for another image, and one for this one.
    let spec = |name: &str| format!("runtime: {{configRef: {{name: {name}}}}}");
    plane.apply(&image_config("other", "example.org/sizers/", &spec("own"))).await;
    plane.apply(&image_config("runtime", "example.org/sizer", &spec("chosen"))).await;
    plane.until_function_runs_with("sizer", "--chosen").await;
    let function = plane.until(FUNCTION, "sizer", is_healthy).await;
    assert_eq!(function["spec"]["runtimeConfigRef"]["name"], "own");

    plane.delete(CONFIG, "chosen").await;
    let missing =
        |f: &Value| message_of(f, "Healthy").contains("there is no DeploymentRuntimeConfig \"chosen\"");
    plane.until(FUNCTION, "sizer", missing).await;
    plane.delete("pkg.crossplane.io/v1beta1/ImageConfig", "runtime").await;
    plane.until_function_runs_with("sizer", "--own").await;
    plane.until(FUNCTION, "sizer", is_healthy).await;
}

#[tokio::test]
async fn a_provider_brings_its_kinds_and_says_that_it_does_not_run() {
    let plane = Plane::new().await;
    let package = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: p, labels: {pkg.crossplane.io/provider-family: f}}\n---\n\
        apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: buckets.p.io}\nspec:\n  group: p.io\n  \
        scope: Cluster\n  names: {kind: Bucket, plural: buckets}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    \
        schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n---\n\
        apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: v}\nwebhooks: []\n";
    let digest = plane.registry.push("r.io/acme/p:v1.0.0", package);
    plane.apply(&install("p", "r.io/acme/p:v1.0.0").replace("kind: Configuration", "kind: Provider")).await;
    let name = revision_of("p", &digest);
    let revision = plane.until_true("pkg.crossplane.io/v1/ProviderRevision", &name, "RevisionHealthy").await;
    assert_eq!(status_of(&revision, "RuntimeHealthy"), "False");
    assert_eq!(revision["metadata"]["labels"]["pkg.crossplane.io/provider-family"], "f");
    assert_eq!(revision["spec"]["tlsServerSecretName"], "p-tls-server");
    let provider = plane.until(PROVIDER, "p", |p| message_of(p, "Healthy").contains("not run here")).await;
    assert_eq!(reason_of(&provider, "Installed"), "ActivePackageRevision");
    let crd = plane.until("apiextensions.k8s.io/v1/CustomResourceDefinition", "buckets.p.io", |_| true).await;
    assert_eq!(transom_object::meta::controller_of(&crd).unwrap().name, name);
    // Its webhooks would have every write of its kinds refused.
    let kind = "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration";
    assert!(plane.list(kind).await.is_empty());
}
