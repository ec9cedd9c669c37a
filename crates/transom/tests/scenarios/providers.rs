//! Providers that run from their packages, in namespaces without an OCI runtime. `conformance/runtimes` does the same with the genuine
//! provider-kubernetes, and with OCI runtimes.

use super::containers::{CHROOT, MESSAGE, below, logs_of, names, shell, until};
use super::packages::{PROVIDER, Registry, revision_of};
use super::user::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use transom_packages::Digest;

const REVISION: &str = "pkg.crossplane.io/v1/ProviderRevision";
const NAME: &str = "provider-shell";

/// A provider that prints what it was given, and a CRD whose versions it converts.
const PACKAGE: &str = "\
apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: provider-shell}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shells.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {kind: Shell, plural: shells, categories: [managed]}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: x, namespace: y, path: /convert}}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";

/// An admission webhook of the same provider.
const WEBHOOK: &str = "\
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mutating-webhook-configuration}
webhooks:
- name: hooks.example.org
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: x, namespace: y, path: /mutate}}
  rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}
";

const SCRIPT: &str = "\
in=/var/run/secrets/kubernetes.io/serviceaccount
read -r token < $in/token; echo \"token $token.\"
echo \"server $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT\"
for file in $in/ca.crt $in/namespace /tls/server/tls.crt /tls/server/tls.key /tls/server/ca.crt /tls/client/tls.crt; do
  test -s $file && echo has $file
done
echo x > $in/token && echo WRITES
echo names $PROVIDER_NAME $REVISION_NAME $POD_NAMESPACE $EXTRA
echo arguments $*
exec sleep 100000";

fn push(registry: &Registry, version: &str) -> Digest {
    let program = ["/bin/sh", "-c", SCRIPT, NAME];
    let variable = format!("VERSION={version}");
    registry.push_program(&format!("acme/{NAME}:{version}"), PACKAGE, &shell(), &program, &variable)
}

fn install(registry: &Registry, version: &str, more: &str) -> String {
    let package = registry.at(&format!("acme/{NAME}:{version}"));
    format!(
        "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {{name: {NAME}}}\nspec: {{package: '{package}'{more}}}\n"
    )
}

fn log(user: &User) -> String {
    logs_of(user, "provider", NAME)
}

/// The status of a request with a token.
async fn answer(user: &User, token: &str) -> u16 {
    let access = user.plane.access.with_token(token);
    let client = transom_testkit::process::Client::connect(&access).await.expect("a connection");
    client.get("/api/v1/namespaces/default/configmaps").await.expect("an answer").status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_runs_from_its_package_as_a_client_of_the_plane() {
    let registry = Registry::start().await;
    let digests = ["v1", "v2"].map(|version| push(&registry, version));
    let mut user = User::of_packages(&CHROOT).await;
    user.apply(&install(&registry, "v1", "")).await;
    user.until_true(PROVIDER, NAME, "Healthy").await;
    let [first, second] = digests.map(|digest| revision_of(NAME, &digest));
    let revision = user.until_true(REVISION, &first, "RuntimeHealthy").await;
    assert_eq!(message_of(&revision, "RuntimeHealthy"), MESSAGE);
    until("it has printed", || log(&user).contains("arguments")).await;
    let printed = log(&user);
    for words in [
        "has /var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
        "has /var/run/secrets/kubernetes.io/serviceaccount/namespace",
        "has /tls/server/tls.crt",
        "has /tls/server/tls.key",
        "has /tls/client/tls.crt",
        "server 127.0.0.1 ",
        &format!("names provider-shell {first} crossplane-system"),
    ] {
        assert!(printed.contains(words), "{words} is not in {printed}");
    }
    assert!(!printed.contains("WRITES"), "{printed}");
    // Its conversion leads to it, with the authority of its certificate.
    let crd =
        user.until("apiextensions.k8s.io/v1/CustomResourceDefinition", "shells.example.org", |_| true).await;
    let config = &crd["spec"]["conversion"]["webhook"]["clientConfig"];
    assert_eq!(
        config["service"],
        json!({"name": NAME, "namespace": "crossplane-system", "port": 9443, "path": "/convert"})
    );
    assert!(config["caBundle"].as_str().is_some_and(|bundle| !bundle.is_empty()));
    // Its token is good for everything, until it is stopped.
    let token = printed
        .split("token ")
        .nth(1)
        .and_then(|rest| rest.split('.').collect::<Vec<_>>().get(..3).map(|p| p.join(".")));
    let token = token.expect("a token");
    assert_eq!(answer(&user, &token).await, 200);

    // A new version takes over; a killed plane leaves nothing, and the next one runs it again.
    user.apply(&install(&registry, "v2", "")).await;
    user.until_true(REVISION, &second, "RuntimeHealthy").await;
    let old = user.until(REVISION, &first, |r| status_of(r, "RuntimeHealthy") == "Unknown").await;
    assert_eq!(message_of(&old, "RuntimeHealthy"), "the revision is not active and does not run");
    until("the old one is stopped", || below(user.plane.pid()).len() == 3).await;
    let was = below(user.plane.pid());
    user.plane.kill();
    until("nothing of it runs", || {
        was.keys().all(|id| !std::path::Path::new(&format!("/proc/{id}")).exists())
    })
    .await;
    user.restart(&CHROOT).await;
    until("it runs again", || below(user.plane.pid()).len() == 3).await;
    assert_eq!(names(&user, "run").len(), 1);
    assert_eq!(answer(&user, &token).await, 403, "the account of the first revision has no rights any more");
    user.delete(PROVIDER, NAME, None).await;
    until("it is stopped", || below(user.plane.pid()).is_empty()).await;
}

/// The webhooks of a provider are called on this machine, whose network it has. Here the test answers in its place, with the
/// certificate that the provider was given, and on another port, because there is only one 9443.
#[tokio::test(flavor = "multi_thread")]
async fn the_webhooks_of_a_provider_are_called() {
    let registry = Registry::start().await;
    let program = ["/bin/sh", "-c", SCRIPT, NAME];
    let package = format!("{PACKAGE}{WEBHOOK}");
    registry.push_program(&format!("acme/{NAME}:v1"), &package, &shell(), &program, "VERSION=v1");
    let user = User::of_packages(&CHROOT).await;
    user.apply(&install(&registry, "v1", "")).await;
    user.until_true(PROVIDER, NAME, "Healthy").await;
    let map = |name: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\n")
    };
    let refusal = user.refusal(&map("early")).await;
    assert!(refusal.contains("https://provider-shell.crossplane-system.svc:9443/mutate"), "{refusal}");
    let secret =
        user.get("v1/Secret", "crossplane-system/provider-shell-tls-server").await.expect("a Secret");
    let part = |key: &str| {
        let encoded = secret["data"][key].as_str().expect("a part of the certificate");
        String::from_utf8(STANDARD.decode(encoded).expect("base64")).expect("PEM")
    };
    let port = super::webhooks::serve_at("127.0.0.1:0", &part("tls.crt"), &part("tls.key")).await;
    let configuration = "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration";
    let name = format!("crossplane-provider-{NAME}");
    let mut webhooks = user.get(configuration, &name).await.expect("a configuration")["webhooks"].clone();
    webhooks[0]["clientConfig"]["service"]["port"] = port.into();
    user.patch(configuration, &name, json!({"webhooks": webhooks})).await;
    user.apply(&map("good")).await;
    let made = user.get(MAP, "default/good").await.expect("a ConfigMap");
    assert_eq!(made["metadata"]["annotations"]["seen"], "yes");
    let refusal = user.refusal(&map("bad")).await;
    assert!(refusal.contains("no name begins with bad"), "{refusal}");
    // They go with the provider.
    user.delete(PROVIDER, NAME, None).await;
    user.until_gone("v1/Service", "crossplane-system/provider-shell").await;
    user.until_gone(configuration, &name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_config_changes_what_runs_and_what_has_no_effect_is_named() {
    let registry = Registry::start().await;
    let revision = revision_of(NAME, &push(&registry, "v1"));
    let user = User::of_packages(&CHROOT).await;
    user.apply(&install(&registry, "v1", ", runtimeConfigRef: {name: special}")).await;
    let said = |words: &'static str| move |r: &Value| message_of(r, "RuntimeHealthy").contains(words);
    user.until(REVISION, &revision, said("there is no DeploymentRuntimeConfig \"special\"")).await;
    let config = |argument: &str| {
        format!(
            "apiVersion: pkg.crossplane.io/v1beta1\nkind: DeploymentRuntimeConfig\nmetadata: {{name: special}}\nspec:\n  \
             deploymentTemplate:\n    spec:\n      replicas: 2\n      selector: {{}}\n      template:\n        spec:\n          \
             containers:\n          - {{name: package-runtime, args: [{argument}], env: [{{name: EXTRA, value: more}}]}}\n"
        )
    };
    user.apply(&config("--one")).await;
    let healthy = user.until(
        REVISION,
        &revision,
        said("without effect on this machine: deploymentTemplate.spec.replicas"),
    );
    assert_eq!(status_of(&healthy.await, "RuntimeHealthy"), "True");
    until("it has its argument", || log(&user).contains("arguments --one") && log(&user).contains(" more"))
        .await;
    // A change starts it again.
    user.apply(&config("--two")).await;
    until("it has its other argument", || log(&user).contains("arguments --two")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_ends_says_why() {
    let registry = Registry::start().await;
    let program = ["/bin/sh", "-c", "echo no cloud today >&2; exit 4"];
    let digest = registry.push_program(&format!("acme/{NAME}:v1"), PACKAGE, &shell(), &program, "A=b");
    let user = User::of_packages(&CHROOT).await;
    user.apply(&install(&registry, "v1", "")).await;
    let words = "ended with exit code 4; it printed last: no cloud today";
    let said = |object: &Value, condition: &str| message_of(object, condition).contains(words);
    user.until(REVISION, &revision_of(NAME, &digest), |r| said(r, "RuntimeHealthy")).await;
    user.until(PROVIDER, NAME, |p| said(p, "Healthy")).await;
}
