//! Hostile registries and packages: each is refused with its reason in the condition, within bounded time and memory;
//! nothing of it is established, and other packages are installed as if it were not there.

use super::*;
use serde_json::json;
use std::time::{Duration, Instant};
use transom_oci::testing::images::{INDEX, MANIFEST, gzip, index, tar};
use transom_oci::testing::{Access, Fault};

/// Far more than the plane needs, and far less than any of the packages could make it need.
const MEMORY_MAX_MIB: u64 = 700;
/// How long a package may take that has nothing to do with the hostile ones, on a busy machine.
const UNAFFECTED: Duration = Duration::from_secs(25);

/// A hostile package: its repository, and what the condition says.
type Case = (&'static str, &'static str);

/// A document of a package that could be established.
fn composition_with(fields: &str) -> String {
    format!(
        "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {{name: hostile}}\nspec:\n  \
         compositeTypeRef: {{apiVersion: example.org/v1, kind: Thing}}\n  mode: Pipeline\n{fields}\n"
    )
}

/// Packages whose layer or `package.yaml` is hostile.
fn push_contents(registry: &Registry) -> Vec<Case> {
    let with = |documents: &[String]| registry.configuration("hostile", &[], documents);
    let layer = |name: &str, layer: Vec<u8>| {
        registry.0.push(&format!("evil/{name}"), "v1.0.0", &image(CONFIG, &[layer], true))
    };
    let text = |name: &str, text: &str| layer(name, package_layer(text));
    let entry = |path, flag| gzip(&tar(&[(path, flag, b"")]));
    layer("bomb", gzip(&tar(&[("a", b'0', &vec![0; 64 << 20])])));
    layer("traversal", entry("../package.yaml", b'0'));
    layer("absolute", entry("/package.yaml", b'0'));
    layer("hard-link", entry("package.yaml", b'1'));
    layer("symbolic-link", entry("package.yaml", b'2'));
    layer("device", entry("package.yaml", b'3'));
    layer("no-file", entry("other.yaml", b'0'));
    layer("no-gzip", b"\x1f\x8bnot gzip at all".to_vec());
    text("deep", &with(&[composition_with(&format!("  a: {}{}", "[".repeat(5_000), "]".repeat(5_000)))]));
    text("documents", &with(&vec![composition_with(""); 10_001]));
    text("separators", &"---\n".repeat(200_000));
    let (mut aliases, mut before) =
        (String::from("  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"), String::from("a0"));
    for n in 1..9 {
        aliases.push_str(&format!("  a{n}: &a{n} [{}]\n", vec![format!("*{before}"); 10].join(", ")));
        before = format!("a{n}");
    }
    text("alias-bomb", &with(&[composition_with(&aliases)]));
    // Each document is within the limits of one.
    let list = vec!["*a"; 1_500].join(",");
    let aliases = composition_with(&format!("  a: &a [{}]\n  b: [{list}]", "0,".repeat(100)));
    text("many-aliases", &with(&vec![aliases; 200]));
    text("large-document", &with(&[composition_with(&format!("  a: {}", "x".repeat(5 << 20)))]));
    text("kind", &format!("apiVersion: v1\nkind: {}\n", "K".repeat(1 << 20)));
    text("nothing", "just text\n");
    text("two-metas", &with(&[with(&[])]));
    text("dependencies", &registry.configuration("hostile", &vec!["configuration a.b/c >=v1.0.0"; 501], &[]));
    vec![
        ("bomb", "bomb"),
        ("traversal", "has the path \"../package.yaml\", which leaves the image"),
        ("absolute", "has the absolute path"),
        ("hard-link", "package.yaml is a link"),
        ("symbolic-link", "package.yaml is a link"),
        ("device", "package.yaml is a device"),
        ("no-file", "has no package.yaml"),
        ("no-gzip", "layer sha256:"),
        ("deep", "document 2 (line 6): line "),
        ("documents", "more than 10000 documents"),
        ("separators", "not exactly one package meta type: there is none"),
        ("alias-bomb", "excessive aliasing"),
        ("many-aliases", "bytes of memory, which is refused"),
        ("large-document", "document 2 (line 6): it has 52"),
        ("kind", "packages cannot hold KKKK"),
        ("nothing", "it has no apiVersion"),
        ("two-metas", "not exactly one package meta type: document 1 (line 1) and document 2"),
        ("dependencies", "spec.dependsOn: it has 501 dependencies; at most 500"),
    ]
}

/// Pushes a package, and returns its layer with another time in the head of gzip: all but the digest is as it should be.
fn push_flipped(registry: &Registry) -> bytes::Bytes {
    let text = registry.configuration("flipped", &[], &[composition_with("  pipeline: []")]);
    let mut layer = package_layer(&text);
    registry.0.push("evil/flipped", "v1.0.0", &image(CONFIG, &[layer.clone()], true));
    layer[4] ^= 0x20;
    layer.into()
}

/// Packages whose manifest is hostile, and a registry that does not return what was stored.
fn push_images(registry: &Registry) -> Vec<Case> {
    let flipped = push_flipped(registry);
    let ordinary = |name: &str| registry.push_simple(&format!("evil/{name}:v1.0.0"), &[]);
    let manifest = |name: &str, bytes: &[u8]| {
        registry.0.push_manifest(&format!("evil/{name}"), "v1.0.0", MANIFEST, bytes)
    };
    let inner = index(&[("linux/amd64", MANIFEST, b"x")]);
    manifest("indexes", &index(&[("linux/amd64", INDEX, &inner)]));
    manifest("no-manifest", b"[[[[");
    let fault = |matches, fault| registry.0.fault(matches, fault, None);
    for name in [
        "manifest-100mb",
        "replaced",
        "shortened",
        "lengthened",
        "truncated",
        "redirects",
        "elsewhere",
        "invented",
        "too-many-requests",
        "error-echo",
    ] {
        ordinary(name);
    }
    fault("evil/manifest-100mb/manifests", Fault::Endless(100 << 20));
    fault("evil/replaced/blobs", Fault::Replace(bytes::Bytes::from(package_layer("other"))));
    fault("evil/flipped/blobs", Fault::Replace(flipped));
    fault("evil/shortened/blobs", Fault::Replace(bytes::Bytes::from_static(b"short")));
    fault("evil/lengthened/blobs", Fault::Endless(1 << 30));
    fault("evil/truncated/blobs", Fault::Truncate);
    fault("evil/redirects/manifests", Fault::RedirectToItself);
    fault("evil/elsewhere/manifests", Fault::Redirect("http://elsewhere.invalid/v2/".to_owned()));
    fault("HEAD /v2/evil/invented/", Fault::NamesDigest("sha256:../../etc/passwd".to_owned()));
    fault("evil/too-many-requests/", Fault::Status(429, vec![("retry-after", "3600".to_owned())]));
    fault("evil/error-echo/", Fault::Status(403, vec![]));
    vec![
        ("indexes", "index of indexes"),
        ("no-manifest", "is not a manifest"),
        ("manifest-100mb", "more than 4194304 bytes"),
        ("replaced", "bytes, not"),
        ("flipped", "it was damaged or replaced"),
        ("shortened", "has 5 bytes, not"),
        ("lengthened", "has more than the"),
        ("truncated", "did not send a whole response"),
        ("redirects", "redirects more than 10 times"),
        ("elsewhere", "without TLS, which is refused"),
        ("invented", "is not a digest"),
        ("too-many-requests", "status 429 and Retry-After 3600 s"),
        (
            "error-echo",
            "no credentials were given; name a Secret with credentials in spec.packagePullSecrets",
        ),
    ]
}

/// Packages of which the registry sends nothing, or not all.
fn push_hanging(registry: &Registry) -> Vec<Case> {
    let cases = [
        ("hang-head", "HEAD /v2/evil/hang-head/", Fault::HangBeforeHeaders),
        ("hang-manifest", "GET /v2/evil/hang-manifest/manifests", Fault::HangBeforeHeaders),
        ("hang-manifest-body", "GET /v2/evil/hang-manifest-body/manifests", Fault::HangWithinBody),
        ("hang-blob", "evil/hang-blob/blobs", Fault::HangBeforeHeaders),
        ("hang-blob-headers", "evil/hang-blob-headers/blobs", Fault::HangAfterHeaders),
        ("hang-blob-body", "evil/hang-blob-body/blobs", Fault::HangWithinBody),
    ];
    for (name, matches, fault) in cases {
        registry.push_simple(&format!("evil/{name}:v1.0.0"), &[]);
        registry.0.fault(matches, fault, None);
    }
    vec![
        ("hang-head", "no response within 0.3 s"),
        ("hang-manifest", "no response within 0.3 s"),
        ("hang-manifest-body", "paused for 0.3 s"),
        ("hang-blob", "no response within 0.3 s"),
        ("hang-blob-headers", "paused for 0.3 s"),
        ("hang-blob-body", "paused for 0.3 s"),
    ]
}

/// Installs hostile packages, and an ordinary one in the middle of it. All of them end as they should.
async fn all_are_refused(user: &User, registry: &Registry, cases: Vec<Case>) {
    for (name, _) in &cases {
        user.apply(&install(name, &registry.at(&format!("evil/{name}:v1.0.0")))).await;
    }
    registry.push_simple("good/base:v1.0.0", &[]);
    registry.push_simple("good/app:v1.0.0", &["configuration good/base >=v1.0.0"]);
    let started = Instant::now();
    user.apply(&install("app", &registry.at("good/app:v1.0.0"))).await;
    user.until_healthy("app").await;
    user.until_healthy("good-base").await;
    assert!(started.elapsed() < UNAFFECTED, "{:?}", started.elapsed());
    for (name, words) in cases {
        let said = |p: &Value| is_unpacking(p) && message_of(p, "Installed").contains(words);
        let package = user.until(CONFIGURATION, name, said).await;
        let message = message_of(&package, "Installed");
        assert!(message.contains(&format!("evil/{name}")), "{message}");
        assert!(message.len() < 9_000, "{name}: {} bytes", message.len());
    }
    user.until_healthy("app").await;
    let revisions = user.names(CONFIGURATION_REVISION).await;
    assert_eq!(revisions.len(), 2, "{revisions:?}");
    assert_eq!(user.names(COMPOSITION).await, ["app", "base"]);
    let peak = user.plane.peak_mib();
    assert!(peak < MEMORY_MAX_MIB, "{peak} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_contents_are_refused() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    let cases = push_contents(&registry);
    all_are_refused(&user, &registry, cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_registries_are_refused() {
    let registry = Registry::start().await;
    let user = User::of_packages(&["--registry-timeout", "300ms"]).await;
    let mut cases = push_images(&registry);
    cases.extend(push_hanging(&registry));
    all_are_refused(&user, &registry, cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_accepts_connections_and_says_nothing_is_given_up() {
    let user = User::of_packages(&["--registry-timeout", "300ms"]).await;
    // Connections wait in the queue of the listener: neither TLS nor HTTP is ever spoken.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address");
    user.apply(&install("silent", &format!("{address}/evil/silent:v1.0.0"))).await;
    let words = "no response within 0.3 s";
    let said = |p: &Value| is_unpacking(p) && message_of(p, "Installed").contains(words);
    user.until(CONFIGURATION, "silent", said).await;
    assert!(user.list(CONFIGURATION_REVISION).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn token_realms_that_are_elsewhere_or_hang_are_refused() {
    let (elsewhere, hanging) = (Registry::start().await, Registry::start().await);
    elsewhere.0.require(Access::Bearer { realm: "http://elsewhere.invalid/token".to_owned() });
    hanging.0.require(Access::Bearer { realm: format!("http://{}/token", hanging.0.host) });
    hanging.0.fault("/token", Fault::HangBeforeHeaders, None);
    let user = User::without_functions(&["--registry-timeout", "300ms"], &LOG_EVERYTHING).await;
    user.until_served().await;
    let auths = json!({"auths": {
        &elsewhere.0.host: {"username": "user", "password": "secret-4711"},
        &hanging.0.host: {"username": "user", "password": "secret-4711"},
    }});
    user.secret("pull", ".dockerconfigjson", &auths.to_string()).await;
    let cases = [("elsewhere", &elsewhere, "realm"), ("hanging", &hanging, "no response within 0.3 s")];
    for (name, registry, words) in cases {
        registry.push_simple("acme/a:v1.0.0", &[]);
        let secrets = ", packagePullSecrets: [{name: pull}]";
        user.apply(&install_with(name, &registry.at("acme/a:v1.0.0"), secrets)).await;
        let said = |p: &Value| is_unpacking(p) && message_of(p, "Installed").contains(words);
        let package = user.until(CONFIGURATION, name, said).await;
        assert!(!package.to_string().contains("4711"), "{package:#}");
    }
    assert!(user.list(CONFIGURATION_REVISION).await.is_empty());
    assert!(!json!(user.list("v1/Event").await).to_string().contains("4711"));
    let log = user.home.log();
    assert!(log.contains("TRACE"), "all of it is logged");
    let (plain, basic) = ("secret-4711", "dXNlcjpzZWNyZXQtNDcxMQ");
    let found = log.lines().find(|line| line.contains(plain) || line.contains(basic));
    assert!(found.is_none(), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overloaded_registry_is_asked_again_when_it_wants() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    registry.push_simple("acme/a:v1.0.0", &[]);
    for status in [503, 429] {
        let busy = Fault::Status(status, vec![("retry-after", "1".to_owned())]);
        registry.0.fault("HEAD /v2/acme/a/", busy, Some(1));
    }
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    user.until_healthy("a").await;
    let heads = registry.take_requests().iter().filter(|request| request.starts_with("HEAD")).count();
    assert_eq!(heads, 3);
    let events = user.events_of("a").await;
    assert!(!events.iter().any(|event| event.starts_with("Warning")), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_that_moves_between_resolution_and_use_changes_nothing() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    let resolved = registry.push_simple("acme/a:v1.0.0", &[]);
    let moved = composition("moved", "Thing", &json!({}), &[("nothing", Value::Null)]);
    registry.push("acme/a:v1.0.0", &registry.configuration("a", &[], &[moved]));
    // The answer to the first question is the one that counts, whatever the tag leads to later.
    registry.0.fault("HEAD /v2/acme/a/manifests/v1.0.0", Fault::NamesDigest(resolved.to_string()), Some(1));
    user.apply(&install("a", &registry.at("acme/a:v1.0.0"))).await;
    user.until_installed("a", &resolved).await;
    assert_eq!(user.names(COMPOSITION).await, ["a"]);
    let asked = registry.take_requests();
    let by_tag = asked.iter().filter(|request| request.contains("/manifests/v1.0.0")).count();
    assert_eq!(by_tag, 1, "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_that_are_never_listed_hold_up_no_other_dependency() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    registry.0.fault("evil/slow/tags", Fault::HangBeforeHeaders, None);
    registry.push_simple("evil/a:v1.0.0", &["configuration evil/slow >=v1.0.0"]);
    registry.push_simple("good/app:v1.0.0", &["configuration good/middle >=v1.0.0"]);
    registry.push_simple("good/middle:v1.0.0", &["configuration good/base >=v1.0.0"]);
    registry.push_simple("good/base:v1.0.0", &[]);
    user.apply(&install("evil", &registry.at("evil/a:v1.0.0"))).await;
    transom_testkit::process::wait_until("the registry is asked", async || {
        registry.0.requests().iter().any(|request| request.contains("evil/slow/tags"))
    })
    .await;
    let started = Instant::now();
    user.apply(&install("app", &registry.at("good/app:v1.0.0"))).await;
    user.until_healthy("app").await;
    assert!(started.elapsed() < UNAFFECTED, "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_that_are_never_listed_are_named_as_the_reason() {
    let registry = Registry::start().await;
    let user = User::of_packages(&["--registry-timeout", "300ms"]).await;
    registry.0.fault("evil/slow/tags", Fault::HangBeforeHeaders, None);
    registry.0.fault("evil/half/tags", Fault::HangWithinBody, None);
    registry.push_simple("evil/slow:v1.0.0", &[]);
    registry.push_simple("evil/half:v1.0.0", &[]);
    for (name, words) in [("slow", "no response within 0.3 s"), ("half", "paused for 0.3 s")] {
        let dependency = format!("configuration evil/{name} >=v1.0.0");
        registry.push_simple(&format!("evil/needs-{name}:v1.0.0"), &[&dependency]);
        user.apply(&install(name, &registry.at(&format!("evil/needs-{name}:v1.0.0")))).await;
        let said = |lock: &Value| {
            let message = message_of(lock, "Resolved");
            status_of(lock, "Resolved") == "False"
                && message.contains(&format!("evil/{name}"))
                && message.contains(words)
        };
        user.until(LOCK, "lock", said).await;
        let message = user.until_unhealthy(name, "missing dependencies").await;
        assert!(message.contains(&format!("evil/{name}")), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_that_never_arrive_keep_a_package_from_being_installed() {
    let registry = Registry::start().await;
    let user = User::of_packages(&["--registry-timeout", "300ms"]).await;
    let key = rcgen::KeyPair::generate().unwrap();
    user.secret("cosign", "cosign.pub", &key.public_key_pem()).await;
    let spec = "verification: {provider: Cosign, cosign: {authorities: [{name: ours, key: {secretRef: {name: cosign, key: \
                cosign.pub}, hashAlgorithm: sha256}}]}}";
    user.apply(&image_config("signed", &registry.at("acme/"), spec)).await;
    let digest = registry.push_simple("acme/package:v1.0.0", &[]);
    crate::xpkg::verify::sign(&registry.0, digest.as_str(), &key);
    let (before, within) = (Fault::HangBeforeHeaders, Fault::HangWithinBody);
    for (name, fault, words) in
        [("before", before, "no response within 0.3 s"), ("within", within, "paused for 0.3 s")]
    {
        registry.0.state.lock().unwrap().rules.clear();
        registry.0.fault(".sig", fault, None);
        user.apply(&install(name, &registry.at("acme/package:v1.0.0"))).await;
        let said = |p: &Value| is_unpacking(p) && message_of(p, "Installed").contains(words);
        user.until(CONFIGURATION, name, said).await;
        assert!(user.list(CONFIGURATION_REVISION).await.is_empty());
        user.delete(CONFIGURATION, name, None).await;
        user.until_gone(CONFIGURATION, name).await;
    }
    // The signature was there all the time.
    registry.0.state.lock().unwrap().rules.clear();
    user.apply(&install("after", &registry.at("acme/package:v1.0.0"))).await;
    user.until_installed("after", &digest).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_rights_installs_nothing() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    registry.push_simple("evil/a:v1.0.0", &[]);
    let package = documents(&install("a", &registry.at("evil/a:v1.0.0"))).remove(0);
    let anonymous = transom_testkit::process::Client::connect(&user.plane.access.anonymous()).await.unwrap();
    let path = "/apis/pkg.crossplane.io/v1/configurations";
    let refused = anonymous.post(path, &package).await.unwrap();
    assert_eq!(refused.status, 403, "{}", refused.text());
    user.until_idle().await;
    assert_eq!(registry.take_requests(), [""; 0]);
    assert!(user.names(CONFIGURATION).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_run_waits_for_a_registry_that_is_no_longer_asked() {
    let registry = Registry::start().await;
    let user = User::of_packages(&[]).await;
    let good = registry.push_simple("good/a:v1.0.0", &[]);
    for name in ["corrected", "deleted"] {
        registry.push_simple(&format!("evil/{name}:v1.0.0"), &[]);
        user.apply(&install(name, &registry.at(&format!("evil/{name}:v1.0.0")))).await;
    }
    registry.0.fault("/evil/", Fault::HangBeforeHeaders, None);
    user.patch(
        CONFIGURATION,
        "corrected",
        json!({"spec": {"package": registry.at("evil/corrected:v2.0.0")}}),
    )
    .await;
    user.apply(&install("deleted", &registry.at("evil/deleted:v2.0.0"))).await;
    transom_testkit::process::wait_until("the registry is asked", async || {
        let asked = registry.0.requests();
        ["corrected", "deleted"]
            .iter()
            .all(|name| asked.iter().any(|r| r.contains(&format!("{name}/manifests/v2"))))
    })
    .await;
    let started = Instant::now();
    user.set_package("corrected", &registry.at("good/a:v1.0.0")).await;
    user.until_installed("corrected", &good).await;
    user.delete(CONFIGURATION, "corrected", None).await;
    user.until_gone(COMPOSITION, "a").await;
    user.delete(CONFIGURATION, "deleted", None).await;
    user.apply(&install("deleted", &registry.at("good/a:v1.0.0"))).await;
    user.until_installed("deleted", &good).await;
    assert!(started.elapsed() < UNAFFECTED, "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_fills_the_memory_with_a_few_packages_at_most() {
    let (registry, other) = (Registry::start().await, Registry::start().await);
    let user = User::of_packages(&[]).await;
    registry.0.fault("/blobs/", Fault::HangWithinBody, None);
    let names: Vec<String> = (0..20).map(|n| format!("large-{n}")).collect();
    for name in &names {
        registry.push_simple(&format!("evil/{name}:v1.0.0"), &[]);
    }
    // One package brings them all.
    let dependencies: Vec<String> =
        names.iter().map(|name| format!("configuration evil/{name} >=v1.0.0")).collect();
    let dependencies: Vec<&str> = dependencies.iter().map(String::as_str).collect();
    other.push("evil/all:v1.0.0", &registry.configuration("all", &dependencies, &[]));
    user.apply(&install("all", &other.at("evil/all:v1.0.0"))).await;
    let asked = |words: &str| {
        let asked = registry.0.requests();
        let found = asked.iter().filter(|request| request.contains(words));
        found.collect::<std::collections::BTreeSet<_>>().len()
    };
    transom_testkit::process::wait_until("all are known, and some are fetched", async || {
        asked("HEAD ") == 20 && asked("/blobs/") >= 8
    })
    .await;
    other.push_simple("good/app:v1.0.0", &[]);
    let started = Instant::now();
    user.apply(&install("app", &other.at("good/app:v1.0.0"))).await;
    user.until_healthy("app").await;
    assert!(started.elapsed() < UNAFFECTED, "{:?}", started.elapsed());
    assert_eq!(asked("/blobs/"), 8);
}
