//! Complaints about registries, their certificates, and stale conditions. Names begin with the number of the complaint in
//! the tracker of Crossplane.

use super::*;
use crate::xpkg::Folder;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use transom_oci::testing::{Access, Fault};

/// The server's side of TLS for 127.0.0.1, and the private certificate authority of its certificate.
pub(crate) fn private_authority() -> (TlsAcceptor, String) {
    let names = || rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let (key, authority_key) = (rcgen::KeyPair::generate().unwrap(), rcgen::KeyPair::generate().unwrap());
    let mut parameters = names();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = parameters.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::from_params(&parameters, &authority_key);
    let leaf = names().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap());
    (TlsAcceptor::from(Arc::new(config.unwrap())), authority.pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn i6767_a_registry_with_a_private_authority() {
    let (acceptor, pem) = private_authority();
    let registry = Registry(Server::start_with(Some(acceptor)).await);
    registry.push_simple("acme/a:v1.0.0", &["configuration acme/b >=v1.0.0"]);
    registry.push_simple("acme/b:v1.0.0", &[]);
    // Without the authority, the condition says what to do.
    let user = User::of_packages(&[]).await;
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    let refused = user.until(CONFIGURATION, "a", is_unpacking).await;
    let message = message_of(&refused, "Installed");
    for part in [registry.0.host.as_str(), "is not trusted", "certificate authority", "CA bundle"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, pem).unwrap();
    let user = User::without_functions(&[], &[("CA_BUNDLE_PATH", &path.display().to_string())]).await;
    user.until_served().await;
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    user.until_healthy("a").await;
    user.until_healthy("acme-b").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i4299_i6428_one_image_config_leads_several_registries_to_a_mirror() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    registry.push_simple("mirror/acme/a:v1.0.0", &["configuration two.invalid/acme/b >=v1.0.0"]);
    registry.push_simple("mirror/acme/b:v1.0.0", &[]);
    // The package comes first: it is installed when there is a mirror for it.
    user.apply(&install("a", "one.invalid/acme/a:v1.0.0")).await;
    user.until(CONFIGURATION, "a", is_unpacking).await;
    user.apply(&format!(
        "apiVersion: pkg.crossplane.io/v1beta1\nkind: ImageConfig\nmetadata: {{name: mirror}}\nspec:\n  \
         matchImages: [{{prefix: one.invalid/}}, {{prefix: two.invalid/}}]\n  rewriteImage: {{prefix: '{}'}}\n",
        registry.at("mirror/")
    ))
    .await;
    user.until_healthy("a").await;
    let b = user.until_healthy("acme-b").await;
    assert_eq!(b["spec"]["package"], "two.invalid/acme/b:v1.0.0");
    assert_eq!(b["status"]["resolvedPackage"], registry.at("mirror/acme/b:v1.0.0"));
}

/// The pull secret of a registry.
fn pull_secret(registry: &Registry, password: &str) -> String {
    json!({"auths": {&registry.0.host: {"username": "user", "password": password}}}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn i5785_private_registries_by_basic_and_token_authentication() {
    let (basic, bearer, storage) =
        (Registry::start().await, Registry::start().await, Registry::start().await);
    basic.0.require(Access::Basic);
    bearer.0.require(Access::Bearer { realm: format!("http://{}/token", bearer.0.host) });
    // Everything is logged, and no secret is.
    let user = User::without_functions(&[], &LOG_EVERYTHING).await;
    user.until_served().await;
    for (name, registry) in [("basic", &basic), ("bearer", &bearer)] {
        registry.push_simple(&format!("acme/{name}:v1.0.0"), &[]);
        user.apply(&install(name, &registry.at(&format!("acme/{name}:v1.0.0")))).await;
        let refused = user.until(CONFIGURATION, name, is_unpacking).await;
        assert!(
            message_of(&refused, "Installed").contains("no credentials were given; name a Secret"),
            "{refused:#}"
        );
    }
    // One by an ImageConfig, the other by the service account. A wrong password is not repeated in any message.
    user.secret("wrong", ".dockerconfigjson", &pull_secret(&basic, "guess-of-a-password")).await;
    user.secret("basic", ".dockerconfigjson", &pull_secret(&basic, "password")).await;
    user.secret("bearer", ".dockerconfigjson", &pull_secret(&bearer, "password")).await;
    let with = |secret: &str| format!("registry: {{authentication: {{pullSecretRef: {{name: {secret}}}}}}}");
    user.apply(&image_config("auth", &basic.at(""), &with("wrong"))).await;
    let refused = |p: &Value| {
        is_unpacking(p) && message_of(p, "Installed").contains("the given credentials are not sufficient")
    };
    user.until(CONFIGURATION, "basic", refused).await;
    user.apply(&image_config("auth", &basic.at(""), &with("basic"))).await;
    user.until_healthy("basic").await;
    user.apply(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: crossplane, namespace: crossplane-system}\n\
         imagePullSecrets: [{name: bearer}]\n",
    )
    .await;
    user.until_healthy("bearer").await;
    // A blob that is stored elsewhere is fetched without credentials.
    for registry in [&bearer, &storage] {
        registry.push_simple("acme/elsewhere:v1.0.0", &[]);
    }
    let to = format!(
        "http://{}/v2/acme/elsewhere/blobs/{}?signature=of-the-storage",
        storage.0.host,
        layer_of(&storage)
    );
    bearer.0.fault("acme/elsewhere/blobs/", Fault::Redirect(to), None);
    user.apply(&install("elsewhere", &bearer.at("acme/elsewhere:v1.0.0"))).await;
    user.until_healthy("elsewhere").await;
    assert!(storage.0.seen().iter().all(|seen| seen.authorization.is_none()));
    for kind in [CONFIGURATION, CONFIGURATION_REVISION, "v1/Event"] {
        let all = json!(user.list(kind).await).to_string();
        assert!(
            !all.contains("guess-of-a")
                && !all.contains("of-the-storage")
                && !all.contains("token-of-the-realm"),
            "{kind}"
        );
    }
    let log = user.home.log();
    assert!(log.contains("TRACE"), "all of it is logged");
    for secret in ["guess-of-a", "of-the-storage", "token-of-the-realm", "dXNlcjpwYXNzd29yZA"] {
        let found = log.lines().find(|line| line.contains(secret));
        assert!(found.is_none(), "{secret}: {found:?}");
    }
}

/// A program that returns credentials, as those of clouds do: the file `answer`, and it notes in `asked` for what it was run.
fn credential_program(folder: &Folder, host: &str) -> [(&'static str, String); 2] {
    use std::os::unix::fs::PermissionsExt;
    let path = |name: &str| folder.path(name).display().to_string();
    folder.write("config.json", &json!({"credHelpers": {host: "cloud"}}).to_string());
    let (asked, answer) = (path("asked"), path("answer"));
    let script = format!("#!/bin/sh\nread -r host\necho \"$1 $host\" >> {asked}\ncat {answer}\n");
    folder.write("bin/docker-credential-cloud", &script);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path("bin/docker-credential-cloud"), mode).expect("its mode is set");
    let programs = format!("{}:{}", path("bin"), std::env::var("PATH").unwrap_or_default());
    [("DOCKER_CONFIG", path("")), ("PATH", programs)]
}

#[tokio::test(flavor = "multi_thread")]
async fn i6137_credentials_of_the_machine_are_the_last_resort() {
    let (registry, other) = (Registry::start().await, Registry::start().await);
    registry.push_simple("acme/a:v1.0.0", &["configuration acme/b >=v1.0.0"]);
    for name in ["b", "c", "d"] {
        registry.push_simple(&format!("acme/{name}:v1.0.0"), &[]);
    }
    let folder = Folder::new();
    let variables = credential_program(&folder, &registry.0.host);
    let [config, programs] = &variables;
    let variables = [(config.0, &*config.1), (programs.0, &*programs.1), LOG_EVERYTHING[0]];
    let user = User::without_functions(&[], &variables).await;
    user.until_served().await;
    // What anyone may read needs none.
    user.apply(&install("d", &registry.at("acme/d:v1.0.0"))).await;
    user.until_healthy("d").await;
    registry.0.require(Access::Basic);
    let asked = || std::fs::read_to_string(folder.path("asked")).unwrap_or_default();
    assert_eq!(asked(), "");
    // A program that fails is named, with what can be done about it.
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    let failed = format!("docker-credential-cloud for {}: failed", registry.0.host);
    let said = |p: &Value| is_unpacking(p) && message_of(p, "Installed").contains(&failed);
    user.until(CONFIGURATION, "a", said).await;
    folder.write("answer", r#"{"Username": "user", "Secret": "password"}"#);
    user.until_healthy("a").await;
    user.until_healthy("acme-b").await;
    assert!(asked().lines().all(|line| line == format!("get {}", registry.0.host)), "{}", asked());
    // Secrets come first: with one that is right no program runs, after one that is wrong it does.
    other.push_simple("acme/e:v1.0.0", &[]);
    other.0.require(Access::Basic);
    let both = json!({"credHelpers": {&registry.0.host: "cloud", &other.0.host: "cloud"}});
    folder.write("config.json", &both.to_string());
    user.secret("right", ".dockerconfigjson", &pull_secret(&other, "password")).await;
    user.secret("wrong", ".dockerconfigjson", &pull_secret(&registry, "guess-of-a-password")).await;
    for (name, package) in [("right", other.at("acme/e:v1.0.0")), ("wrong", registry.at("acme/c:v1.0.0"))] {
        let secrets = format!(", packagePullSecrets: [{{name: {name}}}]");
        user.apply(&install_with(name, &package, &secrets)).await;
        user.until_healthy(name).await;
    }
    assert!(!asked().contains(&other.0.host), "{}", asked());
    let log = user.home.log();
    assert!(!log.contains("dXNlcjpwYXNzd29yZA") && !log.contains("guess-of-a"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_the_cache_costs_one_request_at_most() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    let things = |n: usize| composition(&format!("c-{n}"), "Thing", &json!({}), &[("nothing", Value::Null)]);
    let all: Vec<String> = (0..20).map(things).collect();
    registry.push("acme/a:v1.0.0", &registry.configuration("a", &[], &all));
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    user.until_healthy("a").await;
    user.delete(CONFIGURATION, "a", None).await;
    user.until_gone(COMPOSITION, "c-19").await;
    user.until_gone(CONFIGURATION, "a").await;
    registry.take_requests();
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    user.until_healthy("a").await;
    user.until_idle().await;
    assert_eq!(user.names(COMPOSITION).await.len(), 20);
    assert_eq!(registry.take_requests(), ["HEAD /v2/acme/a/manifests/v1.0.0"]);
}

/// The digest of the only layer in a registry with one package.
fn layer_of(registry: &Registry) -> String {
    let state = registry.0.state.lock().unwrap();
    let (_, manifest) = state.manifests.values().next().unwrap();
    let manifest: Value = serde_json::from_slice(manifest).unwrap();
    manifest["layers"][0]["digest"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn i3942_inactive_revisions_do_not_pull() {
    let registry = Registry::start().await;
    let mut user = User::of_packages(&[]).await;
    registry.push_simple("acme/a:v1.0.0", &[]);
    registry.push_simple("acme/b:v1.0.0", &[]);
    let things = composition("a", "Thing", &json!({"new": "yes"}), &[("nothing", Value::Null)]);
    let new = registry.push("acme/a:v2.0.0", &registry.configuration("a", &[], &[things]));
    // A revision that was active once, and one that never was.
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    user.until_healthy("a").await;
    user.set_package("a", &registry.at("acme/a:v2.0.0")).await;
    user.until_installed("a", &new).await;
    let manual = ", revisionActivationPolicy: Manual";
    user.apply(&install_with("b", &registry.at("acme/b:v1.0.0"), manual)).await;
    user.until(CONFIGURATION, "b", |p| reason_of(p, "Installed") == "InactivePackageRevision").await;
    user.until_idle().await;
    registry.take_requests();
    registry.0.fault("", Fault::Status(500, vec![]), None);
    for revision in user.list(CONFIGURATION_REVISION).await {
        if revision["spec"]["desiredState"] == "Inactive" {
            let name = transom_object::meta::name(&revision);
            user.patch(CONFIGURATION_REVISION, name, json!({"metadata": {"labels": {"touched": "yes"}}}))
                .await;
        }
    }
    user.until_idle().await;
    user.restart(&[]).await;
    user.until_served().await;
    user.until_idle().await;
    for revision in user.list(CONFIGURATION_REVISION).await {
        assert_eq!(status_of(&revision, "RevisionHealthy"), "True", "{revision:#}");
    }
    assert_eq!(registry.take_requests(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn i2647_docs691_what_is_installed_needs_no_registry() {
    let registry = Registry::start().await;
    let mut user = User::of_packages(&[]).await;
    let old = registry.push_simple("acme/a:v1.0.0", &[]);
    let things = composition("a", "Thing", &json!({"new": "yes"}), &[("nothing", Value::Null)]);
    let new = registry.push("acme/a:v2.0.0", &registry.configuration("a", &[], &[things]));
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    user.until_installed("a", &old).await;
    user.set_package("a", &registry.at("acme/a:v2.0.0")).await;
    user.until_installed("a", &new).await;
    let by_digest = registry.at(&format!("acme/a@{old}"));
    drop(registry);
    // A restart, an object that was deleted, and a roll-back to what is in the cache.
    user.restart(&[]).await;
    user.until_served().await;
    user.delete(COMPOSITION, "a", None).await;
    user.until(COMPOSITION, "a", |c| c["metadata"]["labels"]["new"] == "yes").await;
    user.until_installed("a", &new).await;
    user.set_package("a", &by_digest).await;
    user.until_installed("a", &old).await;
    user.until(COMPOSITION, "a", |c| c["metadata"]["labels"]["new"].is_null()).await;
    // Under another name, too: the cache knows content, not names.
    user.delete(CONFIGURATION, "a", None).await;
    user.until_gone(COMPOSITION, "a").await;
    user.apply(&install("again", &by_digest)).await;
    user.until_installed("again", &old).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i5580_i4980_docs754_a_package_without_annotations_is_read() {
    use transom_oci::testing::images::{gzip, tar};
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    let things = |name: &str| composition(name, "Thing", &json!({}), &[("nothing", Value::Null)]);
    // After `docker pull` and `docker push`: a layer of a runtime, and no annotation on that of the package.
    let runtime = gzip(&tar(&[("usr/bin/provider", b'0', b"binary"), ("other/package.yml", b'0', b"no")]));
    let package = package_layer(&registry.configuration("scanned", &[], &[things("scanned")]));
    registry.0.push("acme/scanned", "v1.0.0", &image(CONFIG, &[runtime.clone(), package], false));
    // The label of the configuration says which layer it is, also where another has such a file.
    let package = package_layer(&registry.configuration("labelled", &[], &[things("labelled")]));
    let decoy = package_layer("kind: Nonsense\n");
    let label = format!("io.crossplane.xpkg:{}", Digest::of(&package));
    let config = json!({"architecture": "amd64", "os": "linux", "config": {"Labels": {label: "base"}}});
    let labelled = image(&config.to_string(), &[runtime, package, decoy], false);
    registry.0.push("acme/labelled", "v1.0.0", &labelled);
    for name in ["scanned", "labelled"] {
        user.apply(&install(name, &registry.at(&format!("acme/{name}:v1.0.0")))).await;
        user.until_healthy(name).await;
        assert!(user.get(COMPOSITION, name).await.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_does_not_grow_with_the_layers_that_are_searched() {
    use transom_oci::testing::images::tar;
    const LAYER_MIB: usize = 96;
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    // Without annotations, the last layer that is searched is the one with the package.
    let push = |name: &str, mib: usize| {
        let runtime = tar(&[("usr/bin/provider", b'0', &vec![b'x'; mib << 20])]);
        let package = package_layer(&registry.configuration(name, &[], &[]));
        let layers = [package, runtime];
        registry.0.push(&format!("acme/{name}"), "v1.0.0", &image(CONFIG, &layers, false))
    };
    let mut peaks = Vec::new();
    for (name, mib) in [("small", 1), ("large", LAYER_MIB)] {
        push(name, mib);
        user.apply(&install(name, &registry.at(&format!("acme/{name}:v1.0.0")))).await;
        user.until_healthy(name).await;
        peaks.push(user.plane.peak_mib());
    }
    let asked = registry.take_requests();
    let layers = asked.iter().filter(|request| request.contains("acme/large/blobs/")).count();
    assert!(layers >= 2, "both layers are fetched: {asked:?}");
    assert!(peaks[1] - peaks[0] < LAYER_MIB as u64 / 4, "{peaks:?} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn docs1091_health_follows_what_happens_later() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    registry.push_simple("acme/a:v1.0.0", &["configuration acme/b >=v1.0.0"]);
    registry.push_simple("acme/b:v1.0.0", &[]);
    user.apply(&install("b", &registry.at("acme/b:v1.0.0"))).await;
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    user.until_healthy("a").await;
    // What it depends on is pinned elsewhere, then removed while nothing can bring it back.
    registry.0.fault("/tags/list", Fault::Status(503, vec![]), None);
    user.delete(CONFIGURATION, "b", None).await;
    let message = user.until_unhealthy("a", "missing dependencies").await;
    assert!(message.contains("acme/b"), "{message}");
    user.apply(&install("b", &registry.at("acme/b:v1.0.0"))).await;
    user.until_healthy("a").await;
    // A tag that does not exist makes both conditions false, and what is there again makes both true.
    user.set_package("a", &registry.at("acme/a:v9.0.0")).await;
    user.until(CONFIGURATION, "a", is_unpacking).await;
    user.set_package("a", &registry.at("acme/a:v1.0.0")).await;
    user.until_healthy("a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_used_and_plain_http_only_where_it_is_allowed() {
    // The registry is its own proxy: a proxy is asked for whole addresses, of which it looks at the path.
    let registry = Registry::start().await;
    let digest = registry.push_simple("acme/a:v1.0.0", &[]);
    registry.push_simple("acme/other:v1.0.0", &[]);
    let proxy = format!("http://{}", registry.0.host);
    let variables = [("HTTP_PROXY", &*proxy), ("HTTPS_PROXY", &*proxy)];
    let user = User::without_functions(&["--plain-http", "registry.example.org"], &variables).await;
    user.until_served().await;
    user.apply(&install("a", "registry.example.org/acme/a:v1.0.0")).await;
    user.until_installed("a", &digest).await;
    registry.take_requests();
    // Of any other host TLS is demanded, for which the proxy would have to make a tunnel.
    user.apply(&install("other", "elsewhere.example.org/acme/other:v1.0.0")).await;
    let package = user.until(CONFIGURATION, "other", is_unpacking).await;
    assert!(
        message_of(&package, "Installed").contains("elsewhere.example.org/acme/other:v1.0.0"),
        "{package:#}"
    );
    let asked = registry.take_requests();
    assert!(!asked.iter().any(|request| request.contains("/v2/acme/other")), "{asked:?}");
}
