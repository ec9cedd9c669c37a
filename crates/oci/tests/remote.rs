//! Ordinary registries.

use crate::images::{CONFIG, INDEX, MANIFEST, gzip, image, index, package_layer, tar};
use std::time::Duration;
use transom_oci::remote::{Proxies, RemoteOptions, RemoteRegistry};
use transom_oci::testing::{Fault, Server, client, hasty, options};
use transom_packages::{Digest, Registry, RegistryErrorKind};

#[tokio::test]
async fn a_package_is_resolved_and_fetched() {
    let server = Server::start().await;
    let stored = server.store("v1", &image(CONFIG, &[package_layer("kind: A")], true));
    let registry = client();
    let digest = registry.resolve(&server.reference("v1"), &[]).await.unwrap();
    assert_eq!(Some(&digest), stored.digest.as_ref());
    assert_eq!(server.requests(), ["HEAD /v2/acme/package/manifests/v1"]);
    let fetched = registry.fetch(&stored, &[]).await.unwrap();
    assert_eq!((&fetched.digest, &fetched.content[..]), (&digest, &b"kind: A"[..]));
    // An annotated layer needs no configuration: one manifest and one blob.
    assert_eq!(server.requests().len(), 3);
    assert_eq!(registry.requests(), 3);
    assert!(server.seen().iter().all(|seen| seen.user_agent.as_deref().unwrap().starts_with("transom/")));
}

#[tokio::test]
async fn a_reference_with_a_digest_is_not_looked_up() {
    let server = Server::start().await;
    let digest = Digest::of(b"x");
    let registry = client();
    assert_eq!(registry.resolve(&server.reference("v1").at(digest.clone()), &[]).await.unwrap(), digest);
    assert_eq!(registry.requests(), 0);
}

#[tokio::test]
async fn a_head_that_fails_is_replaced_by_a_get() {
    let server = Server::start().await;
    let stored = server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    server.fault("HEAD /v2/acme/package/manifests", Fault::WithoutDigest, Some(1));
    server.fault("HEAD /v2/acme/package/manifests", Fault::Status(405, vec![]), Some(1));
    for _ in 0..2 {
        let digest = client().resolve(&server.reference("v1"), &[]).await.unwrap();
        assert_eq!(Some(digest), stored.digest);
    }
    assert_eq!(server.requests().iter().filter(|line| line.starts_with("GET")).count(), 2);
}

#[tokio::test]
async fn a_layer_is_found_by_label_and_by_searching() {
    let server = Server::start().await;
    let package = package_layer("by label");
    let label =
        format!(r#"{{"config":{{"Labels":{{"io.crossplane.xpkg:{}":"base"}}}}}}"#, Digest::of(&package));
    let runtime = gzip(&tar(&[("usr/bin/run", b'0', b"binary"), ("package.yaml", b'0', b"not this one")]));
    let labelled = server.store("label", &image(&label, &[package, runtime], false));
    assert_eq!(&client().fetch(&labelled, &[]).await.unwrap().content[..], b"by label");

    let layers = [
        gzip(&tar(&[("package.yaml", b'0', b"lowest")])),
        gzip(&tar(&[("package.yaml", b'0', b"middle"), ("hidden/package.yaml", b'0', b"hidden")])),
        gzip(&tar(&[(".wh.package.yaml", b'0', b""), ("hidden/.wh..wh..opq", b'0', b"")])),
    ];
    let plain = server.store("plain", &image(CONFIG, &layers[..2], false));
    assert_eq!(&client().fetch(&plain, &[]).await.unwrap().content[..], b"middle");
    let hidden = server.store("hidden", &image(CONFIG, &layers, false));
    let error = client().fetch(&hidden, &[]).await.unwrap_err();
    assert!(error.message.contains("no layer has a package.yaml"), "{error}");
}

#[tokio::test]
async fn an_index_leads_to_its_image_and_keeps_its_digest() {
    let server = Server::start().await;
    let amd = image(CONFIG, &[package_layer("amd64")], true);
    let arm = image(CONFIG, &[package_layer("arm64")], true);
    server.store("amd", &amd);
    server.store("arm", &arm);
    let both = index(&[("linux/arm64", MANIFEST, &arm.manifest), ("linux/amd64", MANIFEST, &amd.manifest)]);
    let only =
        index(&[("linux/arm64", MANIFEST, &arm.manifest), ("unknown/unknown", MANIFEST, &amd.manifest)]);
    for (bytes, expected) in [(both, "amd64"), (only, "arm64")] {
        let reference = server.store_manifest("index", INDEX, &bytes);
        let fetched = client().fetch(&reference, &[]).await.unwrap();
        assert_eq!((&fetched.content[..], fetched.digest), (expected.as_bytes(), Digest::of(&bytes)));
    }
    let neither =
        index(&[("linux/arm64", MANIFEST, &arm.manifest), ("windows/amd64", MANIFEST, &amd.manifest)]);
    let reference = server.store_manifest("index", INDEX, &neither);
    let error = client().fetch(&reference, &[]).await.unwrap_err();
    assert!(error.message.contains("only for linux/arm64, windows/amd64"), "{error}");
}

#[tokio::test]
async fn tags_are_listed_page_by_page() {
    let server = Server::start().await;
    let expected: Vec<String> = (0..25).map(|n| format!("v1.0.{n}")).collect();
    server.state.lock().unwrap().tags = expected.clone();
    for (page, requests) in [(0, 1), (10, 3), (1, 25)] {
        server.state.lock().unwrap().page = page;
        let registry = client();
        assert_eq!(registry.tags(&server.reference("x"), &[]).await.unwrap(), expected);
        assert_eq!(registry.requests(), requests, "pages of {page}");
    }
    let few = RemoteRegistry::new(RemoteOptions { tag_pages: 5, ..options() }).unwrap();
    let error = few.tags(&server.reference("x"), &[]).await.unwrap_err();
    assert!(error.message.contains("more than 5 pages"), "{error}");
}

#[tokio::test]
async fn what_is_missing_is_not_found() {
    let server = Server::start().await;
    let error = client().resolve(&server.reference("v9"), &[]).await.unwrap_err();
    assert_eq!(error.kind, RegistryErrorKind::NotFound);
    assert!(error.message.starts_with(&format!("{}/acme/package:v9: ", server.host)), "{error}");
    assert!(error.message.contains("MANIFEST_UNKNOWN"), "{error}");
}

#[tokio::test]
async fn an_overloaded_registry_is_asked_again() {
    let server = Server::start().await;
    let stored = server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    server.fault(
        "GET /v2/acme/package/manifests",
        Fault::Status(429, vec![("retry-after", "1".to_owned())]),
        Some(1),
    );
    server.fault("GET /v2/acme/package/blobs", Fault::Status(503, vec![]), Some(2));
    let registry = client();
    let started = tokio::time::Instant::now();
    registry.fetch(&stored, &[]).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1), "Retry-After was not respected");
    assert_eq!(registry.requests(), 5);
}

#[tokio::test]
async fn an_overloaded_registry_is_given_up() {
    let server = Server::start().await;
    server.fault("HEAD", Fault::Status(503, vec![]), None);
    let registry = client();
    let error = registry.resolve(&server.reference("v1"), &[]).await.unwrap_err();
    assert_eq!((error.kind, registry.requests()), (RegistryErrorKind::Unavailable, 3));

    // It asks for more time than an attempt waits: the error is returned instead.
    let server = Server::start().await;
    server.fault("HEAD", Fault::Status(429, vec![("retry-after", "3600".to_owned())]), None);
    let registry = client();
    let error = registry.resolve(&server.reference("v1"), &[]).await.unwrap_err();
    assert_eq!((error.kind, registry.requests()), (RegistryErrorKind::Unavailable, 1));
    assert_eq!(error.retry_after, Some(Duration::from_secs(3600)));

    // The same as a date, relative to the server's own.
    let server = Server::start().await;
    let headers = vec![
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT".to_owned()),
        ("retry-after", "Sun, 06 Nov 1994 08:51:37 GMT".to_owned()),
    ];
    server.fault("HEAD", Fault::Status(429, headers), None);
    let error = client().resolve(&server.reference("v1"), &[]).await.unwrap_err();
    assert_eq!(error.retry_after, Some(Duration::from_secs(120)));
}

#[tokio::test]
async fn a_response_that_ends_early_is_fetched_again() {
    let server = Server::start().await;
    let stored = server.store("v1", &image(CONFIG, &[package_layer("whole")], true));
    server.fault("/blobs/", Fault::Truncate, Some(1));
    server.fault("/blobs/", Fault::HangWithinBody, Some(1));
    assert_eq!(&hasty().fetch(&stored, &[]).await.unwrap().content[..], b"whole");
}

#[tokio::test]
async fn plain_http_needs_permission_beyond_this_machine() {
    let reference = |host: &str| transom_packages::Reference {
        registry: host.to_owned(),
        repository: "acme/package".to_owned(),
        tag: Some("v1".to_owned()),
        digest: None,
    };
    // The proxy is this server: what reaches it was sent over plain HTTP, or asked it for a tunnel.
    let server = Server::start().await;
    server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    let proxies = || Proxies::new(Some(&server.host), Some(&server.host), None).unwrap();
    let allowed = RemoteOptions {
        proxies: proxies(),
        plain_http_hosts: ["registry.invalid:5000".to_owned()].into(),
        ..options()
    };
    let registry = RemoteRegistry::new(allowed).unwrap();
    registry.resolve(&reference("registry.invalid:5000"), &[]).await.unwrap();
    assert_eq!(server.requests(), ["HEAD /v2/acme/package/manifests/v1"]);

    let registry = RemoteRegistry::new(RemoteOptions { proxies: proxies(), ..options() }).unwrap();
    let error = registry.resolve(&reference("registry.invalid:5000"), &[]).await.unwrap_err();
    // A tunnel for TLS is asked for, which this server refuses.
    assert!(
        error.message.contains("registry.invalid:5000 cannot be reached: the proxy 127.0.0.1:"),
        "{error}"
    );
    assert!(server.requests().iter().all(|line| !line.starts_with("GET")), "{:?}", server.requests());
}

#[tokio::test]
async fn a_reference_cannot_leave_its_path() {
    let server = Server::start().await;
    for (repository, tag) in
        [("../x", "v1"), ("a//b", "v1"), ("a?b", "v1"), ("A", "v1"), ("a", "v1/../../x"), ("a", "?x")]
    {
        let reference =
            transom_packages::Reference { repository: repository.to_owned(), ..server.reference(tag) };
        let error = client().resolve(&reference, &[]).await.unwrap_err();
        assert_eq!(error.kind, RegistryErrorKind::Invalid, "{error}");
    }
    assert_eq!(server.requests(), Vec::<String>::new());
}
