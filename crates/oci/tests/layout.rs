//! Folders and files in place of registries.

use crate::images::{CONFIG, INDEX, MANIFEST, image, index, package_layer, tar};
use std::path::Path;
use std::sync::Arc;
use transom_oci::layer::LayerLimits;
use transom_oci::layout::{BundleWriter, LocalRegistry};
use transom_oci::mounts::Mounts;
use transom_oci::tarball::{Package, build, write};
use transom_oci::testing::{Server, client};
use transom_packages::{Digest, Reference, Registry, RegistryErrorKind};

fn reference(repository: &str, tag: &str) -> Reference {
    Reference {
        registry: "r.example".to_owned(),
        repository: repository.to_owned(),
        tag: Some(tag.to_owned()),
        digest: None,
    }
}

async fn open(path: &Path) -> LocalRegistry {
    LocalRegistry::open(path, LayerLimits::default()).await.unwrap()
}

async fn content(registry: &LocalRegistry, reference: &Reference) -> String {
    String::from_utf8(registry.fetch(reference, &[]).await.unwrap().content.to_vec()).unwrap()
}

#[tokio::test]
async fn a_bundle_stands_in_for_registries() {
    let server = Server::start().await;
    let (amd, arm) =
        (image(CONFIG, &[package_layer("amd")], true), image(CONFIG, &[package_layer("arm")], true));
    server.store("amd", &amd);
    server.store("arm", &arm);
    let both = index(&[("linux/arm64", MANIFEST, &arm.manifest), ("linux/amd64", MANIFEST, &amd.manifest)]);
    server.store_manifest("v1", INDEX, &both);
    let stored = server.store("v2", &image(CONFIG, &[package_layer("two")], true));
    let signature_tag = format!("sha256-{}.sig", stored.digest.as_ref().unwrap().hex());
    server.store(&signature_tag, &image(CONFIG, &[b"payload".to_vec()], false));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bundle.tar");
    let remote = client();
    let mut writer = BundleWriter::create(&path).await.unwrap();
    let digest = writer.add(&remote, &server.reference("v1"), &[]).await.unwrap();
    let second = writer.add(&remote, &server.reference("v2"), &[]).await.unwrap();
    let signatures = writer.add_signatures(&remote, &server.reference("v2"), &second, &[]).await.unwrap();
    assert_eq!(signatures, 1);
    assert!(!path.exists(), "a bundle has its name when it is complete");
    writer.finish().await.unwrap();

    let (tag, host) = (server.reference("v1"), server.host.clone());
    drop(server);
    let bundle = open(&path).await;
    assert_eq!(bundle.resolve(&tag, &[]).await.unwrap(), digest);
    assert_eq!(content(&bundle, &tag).await, "amd");
    assert_eq!(content(&bundle, &tag.at(digest)).await, "amd");
    let mut tags = bundle.tags(&tag, &[]).await.unwrap();
    tags.sort();
    assert_eq!(tags, [signature_tag, "v1".to_owned(), "v2".to_owned()]);
    assert!(bundle.references().contains(&format!("{host}/acme/package:v1")));
    let missing = Reference { tag: Some("v9".to_owned()), ..tag.clone() };
    let error = bundle.resolve(&missing, &[]).await.unwrap_err();
    assert_eq!(error.kind, RegistryErrorKind::NotFound);
    assert!(error.message.contains("bundle.tar"), "{error}");
    assert!(bundle.tags(&reference("other", "x"), &[]).await.is_err());
}

#[tokio::test]
async fn a_damaged_bundle_is_refused() {
    let server = Server::start().await;
    let stored = server.store("v1", &image(CONFIG, &[package_layer("content")], true));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bundle.tar");
    let mut writer = BundleWriter::create(&path).await.unwrap();
    writer.add(&client(), &stored, &[]).await.unwrap();
    writer.finish().await.unwrap();
    let sound = std::fs::read(&path).unwrap();
    assert_eq!(content(&open(&path).await, &stored).await, "content");
    for at in (0..sound.len()).step_by(97) {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x20;
        std::fs::write(&path, damaged).unwrap();
        // Padding does not matter; nothing else may change what is read.
        if let Ok(bundle) = LocalRegistry::open(&path, LayerLimits::default()).await
            && let Ok(fetched) = bundle.fetch(&stored, &[]).await
        {
            assert_eq!(&fetched.content[..], b"content", "byte {at}");
        }
    }
    // Half of it is not a bundle.
    std::fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    let half = LocalRegistry::open(&path, LayerLimits::default()).await;
    assert!(half.is_err() || half.unwrap().fetch(&stored, &[]).await.is_err());
}

#[tokio::test]
async fn an_interrupted_bundle_leaves_nothing() {
    let server = Server::start().await;
    let stored = server.store("v1", &image(CONFIG, &[package_layer("content")], true));
    server.state.lock().unwrap().blobs.clear();
    let folder = tempfile::tempdir().unwrap();
    let mut writer = BundleWriter::create(&folder.path().join("bundle.tar")).await.unwrap();
    let error = writer.add(&client(), &stored, &[]).await.unwrap_err();
    assert_eq!(error.kind, RegistryErrorKind::NotFound);
    drop(writer);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_layout_is_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let package = image(CONFIG, &[package_layer("in a folder")], true);
    let blobs = folder.path().join("blobs/sha256");
    std::fs::create_dir_all(&blobs).unwrap();
    for bytes in package.blobs.iter().chain([&package.manifest]) {
        std::fs::write(blobs.join(Digest::of(bytes).hex()), bytes).unwrap();
    }
    std::fs::write(folder.path().join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    let index = format!(
        r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"{MANIFEST}","size":{},"digest":"{}","annotations":{{"org.opencontainers.image.ref.name":"v1"}}}}]}}"#,
        package.manifest.len(),
        Digest::of(&package.manifest)
    );
    std::fs::write(folder.path().join("index.json"), index).unwrap();
    let layout = open(folder.path()).await;
    // A tag alone counts for every repository.
    for repository in ["a/b", "c"] {
        assert_eq!(content(&layout, &reference(repository, "v1")).await, "in a folder");
        assert_eq!(layout.tags(&reference(repository, "x"), &[]).await.unwrap(), ["v1"]);
    }
    // What is on disk is verified like what comes from the network.
    let layer = blobs.join(Digest::of(&package.blobs[0]).hex());
    std::fs::write(layer, package_layer("in a foldex")).unwrap();
    let error = layout.fetch(&reference("a", "v1"), &[]).await.unwrap_err();
    assert_eq!(error.kind, RegistryErrorKind::Invalid, "{error}");
}

#[tokio::test]
async fn a_folder_of_packages_stands_in_for_registries() {
    let folder = tempfile::tempdir().unwrap();
    let package = |path: &str, content: &str, tags: &[String]| {
        let image =
            build(Package { stream: content.as_bytes(), examples: None, base: None }, folder.path()).unwrap();
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&[(&image, tags)], &path).unwrap();
    };
    package("platform-v1.0.0.xpkg", "one", &[]);
    package("acme-platform-v1.1.0.xpkg", "two", &[]);
    package("platform-aws-v2.0.0.xpkg", "aws", &[]);
    package("r.example/acme/platform/v1.2.0.xpkg", "three", &[]);
    package("any.xpkg", "four", &["r.example/acme/platform:v1.3.0".to_owned()]);
    std::fs::write(folder.path().join("README.md"), "not a package").unwrap();
    let files = open(folder.path()).await;
    for (tag, expected) in [("v1.0.0", "one"), ("v1.1.0", "two"), ("v1.2.0", "three"), ("v1.3.0", "four")] {
        let wanted = reference("acme/platform", tag);
        assert_eq!(content(&files, &wanted).await, expected);
        let digest = files.resolve(&wanted, &[]).await.unwrap();
        assert_eq!(content(&files, &wanted.at(digest)).await, expected);
    }
    let mut tags = files.tags(&reference("acme/platform", "x"), &[]).await.unwrap();
    tags.sort();
    assert_eq!(tags, ["v1.0.0", "v1.1.0", "v1.2.0", "v1.3.0"]);
    assert_eq!(content(&files, &reference("acme/platform-aws", "v2.0.0")).await, "aws");
    let error = files.resolve(&reference("acme/platform", "v2.0.0"), &[]).await.unwrap_err();
    assert_eq!(error.kind, RegistryErrorKind::NotFound);

    let one = open(&folder.path().join("platform-v1.0.0.xpkg")).await;
    assert_eq!(content(&one, &reference("acme/platform", "v1.0.0")).await, "one");
}

#[tokio::test]
async fn what_is_neither_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused =
        async |path: &Path| LocalRegistry::open(path, LayerLimits::default()).await.err().unwrap().message;
    assert!(refused(folder.path()).await.contains("neither *.xpkg files nor an OCI layout"));
    assert!(refused(&folder.path().join("none")).await.contains("none"));
    let file = folder.path().join("file");
    std::fs::write(&file, tar(&[("x", b'0', b"y")])).unwrap();
    assert!(refused(&file).await.contains("no manifest.json"));
    std::fs::write(&file, tar(&[("index.json", b'0', b"[]")])).unwrap();
    assert!(refused(&file).await.contains("index.json"));
}

#[tokio::test]
async fn a_file_stands_in_for_the_registries_below_a_prefix() {
    let server = Server::start().await;
    let stored = server.store("v1", &image(CONFIG, &[package_layer("content")], true));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bundle.tar");
    let mut writer = BundleWriter::create(&path).await.unwrap();
    writer.add(&client(), &server.reference("v1"), &[]).await.unwrap();
    writer.mark_root(&server.reference("v1"));
    writer.finish().await.unwrap();
    let local = Arc::new(open(&path).await);
    let packages = local.packages();
    assert_eq!(packages.len(), 1);
    assert!(packages[0].root && packages[0].reference == Some(server.reference("v1")), "{packages:?}");

    let at = |source: &str, tag: &str| Reference {
        tag: Some(tag.to_owned()),
        ..Reference::parse_source(source).unwrap()
    };
    let mut mounts = Mounts::new();
    mounts.add(Some("mirror.example.org/all/"), local.clone());
    let inside = at("mirror.example.org/all/acme/package", "v1");
    let digest = mounts.resolve(&inside, &[]).await.unwrap();
    assert_eq!(Some(&digest), stored.digest.as_ref());
    assert_eq!(mounts.fetch(&inside.at(digest), &[]).await.unwrap().content, "content");
    assert_eq!(mounts.tags(&inside, &[]).await.unwrap(), ["v1"]);
    for outside in ["mirror.example.org/aller/acme/package", "other.example.org/acme/package"] {
        let error = mounts.resolve(&at(outside, "v1"), &[]).await.unwrap_err();
        assert_eq!(error.kind, RegistryErrorKind::NotFound, "{error}");
        assert!(error.message.contains("registries are not used"), "{error}");
    }
    let missing = mounts.resolve(&at("mirror.example.org/all/acme/other", "v1"), &[]).await.unwrap_err();
    assert!(missing.message.contains("bundle.tar"), "{missing}");

    // Other references are read from registries, and mounted ones are not.
    let mounts = mounts.over(Arc::new(client()));
    assert!(mounts.resolve(&server.reference("v1"), &[]).await.is_ok());
    drop(server);
    assert!(mounts.resolve(&inside, &[]).await.is_ok());
    let mut all = Mounts::new().over(Arc::new(client()));
    all.add(None, local);
    assert!(all.tags(&at("any.example.org/acme/package", "v1"), &[]).await.is_err());
    assert_eq!(all.tags(&packages[0].reference.clone().unwrap(), &[]).await.unwrap(), ["v1"]);
}
