//! Pushing.

use crate::images::{CONFIG, MANIFEST, image, package_layer};
use bytes::Bytes;
use std::sync::Mutex;
use std::time::Duration;
use transom_oci::image::{Descriptor, ImageConfig};
use transom_oci::remote::Progress;
use transom_oci::testing::{Access, Fault, Server, client, options};
use transom_oci::{ImageParts, Part, index_of, references};
use transom_packages::{Digest, Reference, Registry};

pub(crate) fn parts(content: &str) -> ImageParts {
    let image = image(CONFIG, &[package_layer(content)], true);
    let descriptors: Vec<Descriptor> = references(&image.manifest).unwrap();
    let find = |d: &Descriptor| image.blobs.iter().find(|blob| Digest::of(blob) == d.digest).unwrap().clone();
    let blobs = descriptors.iter().map(|d| (d.clone(), Part::Bytes(Bytes::from(find(d))))).collect();
    ImageParts::new(MANIFEST, image.manifest.into(), blobs)
}

#[tokio::test]
async fn an_image_is_pushed_and_pulled() {
    let server = Server::start().await;
    server.require(Access::Bearer { realm: format!("http://{}/token", server.host) });
    let with = [server.credentials("user", "password")];
    let (registry, progress) = (client(), Mutex::new(Vec::new()));
    let tag = server.reference("v1");
    let pushed =
        registry.push(&tag, &parts("pushed"), &with, &|p| progress.lock().unwrap().push(p)).await.unwrap();
    assert_eq!(progress.lock().unwrap().len(), 3);
    let token = server.seen().into_iter().find(|seen| seen.request == "GET /token").unwrap();
    assert!(token.query.ends_with("%3Apull%2Cpush"), "{}", token.query);
    let fetched = registry.fetch(&tag, &with).await.unwrap();
    assert_eq!((fetched.digest, &fetched.content[..]), (pushed, &b"pushed"[..]));

    // What is there is not sent again.
    let before = server.requests().len();
    progress.lock().unwrap().clear();
    registry.push(&tag, &parts("pushed"), &with, &|p| progress.lock().unwrap().push(p)).await.unwrap();
    let sent: Vec<String> = server.requests().split_off(before);
    assert!(sent.iter().all(|line| line.starts_with("HEAD") || line.contains("/manifests/")), "{sent:?}");
    assert!(matches!(progress.lock().unwrap()[0], Progress::BlobExists { .. }));
}

#[tokio::test]
async fn a_large_blob_is_streamed_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..5_000_000u32).map(|n| (n >> 3) as u8).collect();
    let path = folder.path().join("blob");
    std::fs::write(&path, [b"before", &content[..], b"after"].concat()).unwrap();
    let layer = Descriptor::of("application/vnd.oci.image.layer.v1.tar", &content);
    let mut image = parts("x");
    image.blobs.push((layer.clone(), Part::File { path: path.clone(), offset: 6, length: layer.size }));
    let server = Server::start().await;
    client().push(&server.reference("v1"), &image, &[], &|_| {}).await.unwrap();
    assert_eq!(server.state.lock().unwrap().blobs[layer.digest.as_str()], content);

    // A file that changed meanwhile is not pushed.
    std::fs::write(&path, vec![0; content.len() + 11]).unwrap();
    let server = Server::start().await;
    let error = client().push(&server.reference("v1"), &image, &[], &|_| {}).await.unwrap_err();
    assert!(error.message.contains(layer.digest.as_str()), "{error}");
    assert!(!server.state.lock().unwrap().manifests.contains_key("v1"));
}

#[tokio::test]
async fn an_upload_is_begun_again_after_an_overload() {
    let server = Server::start().await;
    let asked = vec![("retry-after", "1".to_owned())];
    server.fault("PUT /v2/acme/package/blobs/uploads/1", Fault::Status(503, asked), Some(1));
    let started = tokio::time::Instant::now();
    client().push(&server.reference("v1"), &parts("x"), &[], &|_| {}).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1), "Retry-After was not respected");
    assert!(server.state.lock().unwrap().manifests.contains_key("v1"));
}

#[tokio::test]
async fn an_upload_is_not_begun_again_before_the_registry_wants_it() {
    let server = Server::start().await;
    let asked = vec![("retry-after", "3600".to_owned())];
    server.fault("PUT /v2/acme/package/blobs/uploads/", Fault::Status(429, asked), None);
    let error = client().push(&server.reference("v1"), &parts("x"), &[], &|_| {}).await.unwrap_err();
    assert_eq!(error.retry_after, Some(Duration::from_secs(3600)), "{error}");
    let uploads = server.requests().iter().filter(|line| line.starts_with("PUT")).count();
    assert_eq!(uploads, 1);
}

#[tokio::test]
async fn a_request_that_begins_an_upload_is_sent_no_more_often_than_others() {
    let server = Server::start().await;
    server.fault("POST /v2/acme/package/blobs/uploads/", Fault::Status(503, vec![]), None);
    client().push(&server.reference("v1"), &parts("x"), &[], &|_| {}).await.unwrap_err();
    let sent = server.requests().iter().filter(|line| line.starts_with("POST")).count();
    assert_eq!(u32::try_from(sent).unwrap(), options().attempts);
}

#[tokio::test]
async fn images_are_pushed_as_an_index() {
    let server = Server::start().await;
    let config = |architecture: &str| ImageConfig {
        architecture: architecture.to_owned(),
        os: "linux".to_owned(),
        ..ImageConfig::default()
    };
    let images = [(parts("amd64"), config("amd64")), (parts("arm64"), config("arm64"))];
    let index = index_of(&images, [("k".to_owned(), "v".to_owned())].into());
    let images = images.map(|(image, _)| image);
    let registry = client();
    let reference: Reference = server.reference("v1");
    let digest = registry.push_index(&reference, &images, &index, &[], &|_| {}).await.unwrap();
    assert_eq!(registry.resolve(&reference, &[]).await.unwrap(), digest);
    assert_eq!(&registry.fetch(&reference, &[]).await.unwrap().content[..], b"amd64");
}

#[tokio::test]
async fn an_upload_elsewhere_gets_no_authorization() {
    let (server, elsewhere) = (Server::start().await, Server::start().await);
    server.require(Access::Basic);
    let location = format!("http://{}/v2/acme/package/blobs/uploads/1?state=x", elsewhere.host);
    server.fault("POST", Fault::Status(202, vec![("location", location)]), None);
    let with = [server.credentials("user", "password")];
    client().push(&server.reference("v1"), &parts("x"), &with, &|_| {}).await.unwrap();
    assert!(elsewhere.seen().len() >= 2);
    assert!(elsewhere.seen().iter().all(|seen| seen.authorization.is_none()));
}
