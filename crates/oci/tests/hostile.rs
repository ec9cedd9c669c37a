//! Hostile registries and packages: refused within bounded time and memory, with the reason.

use crate::images::{CONFIG, INDEX, MANIFEST, gzip, image, index, package_layer, tar};
use bytes::Bytes;
use std::time::Duration;
use tokio::time::Instant;
use transom_oci::remote::{RemoteOptions, RemoteRegistry};
use transom_oci::testing::{Access, Fault, Image, Server, client, hasty, options};
use transom_packages::{Digest, Registry, RegistryErrorKind};

/// Fetching an image with one fault fails: kind, text.
async fn refused(matches: &'static str, fault: Fault, kind: RegistryErrorKind, text: &str) {
    let server = Server::start().await;
    let stored = server.store("v1", &image(CONFIG, &[package_layer("kind: A")], true));
    server.fault(matches, fault.clone(), None);
    let started = Instant::now();
    let error = hasty().fetch(&stored, &[]).await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(30), "{fault:?} took {:?}", started.elapsed());
    assert_eq!(error.kind, kind, "{fault:?}: {error}");
    assert!(error.message.contains(text), "{fault:?}: {error}");
    assert!(error.message.contains("acme/package"), "{fault:?}: {error}");
}

#[tokio::test]
async fn wrong_content_is_refused() {
    use RegistryErrorKind::{Invalid, Unavailable};
    let other = Bytes::from_static(b"other content");
    refused("/manifests/", Fault::Replace(other.clone()), Invalid, "damaged or replaced").await;
    let layer = package_layer("kind: A");
    let mut flipped = layer.clone();
    flipped[layer.len() - 9] ^= 1;
    // The length is right, the digest is not.
    let same_length = package_layer("kind: B");
    assert_eq!(same_length.len(), layer.len());
    refused("/blobs/", Fault::Replace(same_length.into()), Invalid, "damaged or replaced").await;
    refused("/blobs/", Fault::Replace(flipped.into()), Invalid, "").await;
    refused("/blobs/", Fault::Replace(layer[..50].to_vec().into()), Invalid, "has 50 bytes, not").await;
    refused("/blobs/", Fault::Replace([&layer[..], b"more"].concat().into()), Invalid, "bytes, not").await;
    // Without a length in the header, the stream itself is counted.
    refused("/blobs/", Fault::Endless(1 << 30), Invalid, "has more than the").await;
    refused("/blobs/", Fault::Truncate, Unavailable, "did not send a whole response").await;
    refused("/manifests/", Fault::Truncate, Unavailable, ": 127.0.0.1:").await;
    refused("/manifests/", Fault::Endless(100 << 20), Invalid, "more than 4194304 bytes").await;
    let claimed = Bytes::from(vec![b' '; 100 << 20]);
    refused("/manifests/", Fault::Replace(claimed), Invalid, "more than 4194304 bytes").await;
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    use RegistryErrorKind::Unavailable;
    refused("/manifests/", Fault::HangBeforeHeaders, Unavailable, "no response within 0.4 s").await;
    refused("/manifests/", Fault::HangAfterHeaders, Unavailable, "paused for 0.4 s").await;
    refused("/manifests/", Fault::HangWithinBody, Unavailable, "paused for 0.4 s").await;
    refused("/blobs/", Fault::HangBeforeHeaders, Unavailable, "no response within 0.4 s").await;
    refused("/blobs/", Fault::HangAfterHeaders, Unavailable, "paused for 0.4 s").await;
    refused("/blobs/", Fault::HangWithinBody, Unavailable, "paused for 0.4 s").await;
}

#[tokio::test]
async fn a_token_realm_that_hangs_or_never_ends_is_given_up() {
    use RegistryErrorKind::{Invalid, Unavailable};
    let cases = [
        (Fault::HangBeforeHeaders, Unavailable, "no response within 0.4 s"),
        (Fault::HangAfterHeaders, Unavailable, "paused for 0.4 s"),
        (Fault::HangWithinBody, Unavailable, "paused for 0.4 s"),
        (Fault::Endless(100 << 20), Invalid, "more than"),
        (Fault::RedirectToItself, Invalid, "redirects more than 10 times"),
        (Fault::Replace(Bytes::from_static(b"[]")), Invalid, "token"),
    ];
    for (fault, kind, text) in cases {
        let server = Server::start().await;
        let stored = server.store("v1", &image(CONFIG, &[package_layer("a")], true));
        server.require(Access::Bearer { realm: format!("http://{}/token", server.host) });
        server.fault("/token", fault.clone(), None);
        let started = Instant::now();
        let with = [server.credentials("user", "password")];
        let error = hasty().fetch(&stored, &with).await.unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(30), "{fault:?} took {:?}", started.elapsed());
        assert_eq!(error.kind, kind, "{fault:?}: {error}");
        assert!(error.message.contains(text), "{fault:?}: {error}");
        assert!(!error.message.contains("password"), "{fault:?}: {error}");
    }
}

#[tokio::test]
async fn a_slow_server_is_given_up_at_the_deadline() {
    let server = Server::start().await;
    server.fault("HEAD", Fault::HangBeforeHeaders, None);
    let patient = RemoteOptions {
        response_timeout: Duration::from_secs(600),
        deadline: Duration::from_millis(300),
        ..options()
    };
    let error =
        RemoteRegistry::new(patient).unwrap().resolve(&server.reference("v1"), &[]).await.unwrap_err();
    assert_eq!(error.kind, RegistryErrorKind::Unavailable);
    assert!(error.message.contains("not complete within 0.3 s"), "{error}");
}

#[tokio::test]
async fn a_closed_port_is_unavailable() {
    let server = Server::start().await;
    let reference = server.reference("v1");
    let state = std::sync::Arc::clone(&server.state);
    drop(server);
    // The listener closes when its task has ended.
    while std::sync::Arc::strong_count(&state) > 1 {
        tokio::task::yield_now().await;
    }
    let error = client().resolve(&reference, &[]).await.unwrap_err();
    assert_eq!(error.kind, RegistryErrorKind::Unavailable);
    assert!(error.message.contains("cannot be reached"), "{error}");
}

#[tokio::test]
async fn redirects_end() {
    let server = Server::start().await;
    server.fault("/manifests/", Fault::RedirectToItself, None);
    let registry = client();
    let error = registry.resolve(&server.reference("v1"), &[]).await.unwrap_err();
    assert!(error.message.contains("redirects more than 10 times"), "{error}");
    assert_eq!((error.kind, registry.requests()), (RegistryErrorKind::Invalid, 11));
    use RegistryErrorKind::Invalid;
    refused("/blobs/", Fault::Redirect("http://storage.invalid/x".to_owned()), Invalid, "without TLS").await;
    refused("/blobs/", Fault::Redirect("file:///etc/passwd".to_owned()), Invalid, "").await;
    refused("/blobs/", Fault::Redirect("https://u:p@storage.invalid/x".to_owned()), Invalid, "has a user")
        .await;
}

#[tokio::test]
async fn a_list_of_tags_stays_with_its_registry_and_ends() {
    let (server, other) = (Server::start().await, Server::start().await);
    let link = |to: String| Fault::Status(200, vec![("link", format!("<{to}>; rel=\"next\""))]);
    server.fault("/tags/list", link(format!("http://{}/v2/acme/package/tags/list", other.host)), None);
    let error = client().tags(&server.reference("x"), &[]).await.unwrap_err();
    assert!(error.message.contains("another host"), "{error}");
    assert_eq!(other.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_digest_that_the_registry_invents_is_refused() {
    let server = Server::start().await;
    server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    server.fault("HEAD", Fault::NamesDigest("sha256:abc".to_owned()), None);
    let error = client().resolve(&server.reference("v1"), &[]).await.unwrap_err();
    assert!(error.message.contains("is not a digest"), "{error}");
    server.fault("GET", Fault::NamesDigest(Digest::of(b"other").to_string()), None);
    let error = client().fetch(&server.reference("v1"), &[]).await.unwrap_err();
    assert!(error.message.contains("damaged or replaced"), "{error}");
}

/// Fetching this image fails with this text, which names the layer.
async fn layer_refused(layer: Vec<u8>, annotate: bool, text: &str) {
    let server = Server::start().await;
    let digest = Digest::of(&layer);
    let stored = server.store("v1", &image(CONFIG, &[layer], annotate));
    let started = Instant::now();
    let error = client().fetch(&stored, &[]).await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(error.kind, RegistryErrorKind::Invalid, "{error}");
    assert!(error.message.contains(text) && error.message.contains(digest.as_str()), "{text}: {error}");
}

#[tokio::test]
async fn unsound_layers_are_refused() {
    let entry = |name, flag| gzip(&tar(&[(name, flag, b"")]));
    for annotate in [true, false] {
        layer_refused(entry("../package.yaml", b'0'), annotate, "leaves the image").await;
        layer_refused(entry("/package.yaml", b'0'), annotate, "absolute path").await;
        layer_refused(entry("package.yaml", b'1'), annotate, "is a link").await;
        layer_refused(entry("package.yaml", b'2'), annotate, "is a link").await;
        layer_refused(entry("package.yaml", b'3'), annotate, "is a device").await;
        layer_refused(b"\x1f\x8bnot gzip at all".to_vec(), annotate, "").await;
    }
    layer_refused(entry("other.yaml", b'0'), true, "has no package.yaml").await;
    layer_refused(gzip(&tar(&[("a", b'0', &vec![0; 64 << 20])])), true, "bomb").await;
}

#[tokio::test]
async fn a_huge_package_is_refused_by_its_header() {
    // The header claims 8 GiB; the layer is small.
    let mut header = tar(&[("package.yaml", b'0', b"")])[..512].to_vec();
    header[124..136].copy_from_slice(b"77777777777\0");
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    layer_refused(gzip(&header), true, "at most 209715200 are allowed").await;
}

#[tokio::test]
async fn unsound_manifests_are_refused() {
    let server = Server::start().await;
    let inner = index(&[("linux/amd64", MANIFEST, b"x")]);
    server.store_manifest("inner", INDEX, &inner);
    let package = image(CONFIG, &[package_layer("a")], true);
    server.store("sound", &package);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (index(&[("linux/amd64", INDEX, &inner)]), "index of indexes"),
        // It claims to be a manifest, and is an index.
        (index(&[("linux/amd64", MANIFEST, &inner)]), "index within an index"),
        (index(&[]), "has no images"),
        (b"not json".to_vec(), "not a manifest in JSON"),
        (b"[]".to_vec(), "not a manifest"),
        (br#"{"schemaVersion":1,"layers":[]}"#.to_vec(), "schemaVersion 2"),
        (br#"{"schemaVersion":2,"layers":[],"manifests":[]}"#.to_vec(), "ambiguous"),
        (br#"{"schemaVersion":2,"mediaType":"text/html","layers":[]}"#.to_vec(), "text/html"),
        (
            format!(r#"{{"schemaVersion":2,"mediaType":"{INDEX}","layers":[]}}"#).into_bytes(),
            "not the fields",
        ),
        ("[".repeat(100_000).into_bytes(), "not a manifest"),
        (with_size(&package, |size| size + 1), "bytes, not"),
        (with_digest(&package), "is not a digest"),
        (with_layers(&package, 1001), "has 1001 layers"),
    ];
    for (bytes, text) in cases {
        let reference = server.store_manifest("v1", MANIFEST, &bytes);
        let error = client().fetch(&reference, &[]).await.unwrap_err();
        assert_eq!(error.kind, RegistryErrorKind::Invalid, "{error}");
        assert!(error.message.contains(text), "{text}: {error}");
    }
    // Except for what the cases changed, the image is sound.
    let reference = server.store("v1", &package);
    client().fetch(&reference, &[]).await.unwrap();
}

fn with_size(package: &Image, change: impl Fn(u64) -> u64) -> Vec<u8> {
    let mut manifest: serde_json::Value = serde_json::from_slice(&package.manifest).unwrap();
    let size = manifest["layers"][0]["size"].as_u64().unwrap();
    manifest["layers"][0]["size"] = change(size).into();
    manifest.to_string().into_bytes()
}

fn with_layers(package: &Image, count: usize) -> Vec<u8> {
    let mut manifest: serde_json::Value = serde_json::from_slice(&package.manifest).unwrap();
    let mut layer = manifest["layers"][0].clone();
    layer["annotations"] = serde_json::json!({});
    manifest["layers"] = vec![layer; count].into();
    manifest.to_string().into_bytes()
}

fn with_digest(package: &Image) -> Vec<u8> {
    let mut manifest: serde_json::Value = serde_json::from_slice(&package.manifest).unwrap();
    manifest["layers"][0]["digest"] = "sha256:../../x".into();
    manifest.to_string().into_bytes()
}

#[tokio::test]
async fn a_tag_that_moves_does_not_change_what_was_resolved() {
    let server = Server::start().await;
    server.store("v1", &image(CONFIG, &[package_layer("verified")], true));
    let registry = client();
    let digest = registry.resolve(&server.reference("v1"), &[]).await.unwrap();
    server.store("v1", &image(CONFIG, &[package_layer("moved")], true));
    let fetched = registry.fetch(&server.reference("v1").at(digest.clone()), &[]).await.unwrap();
    assert_eq!((&fetched.content[..], fetched.digest), (&b"verified"[..], digest));
}
