//! Packages as files: built, written, read, pushed.

use crate::images::{gzip, tar};
use std::io::Read;
use std::path::Path;
use transom_oci::ImageSource;
use transom_oci::image::Document;
use transom_oci::layer::LayerLimits;
use transom_oci::tarball::{Package, Tarball, build, write};
use transom_oci::testing::{Server, client};
use transom_packages::{Reference, Registry};

fn reference() -> Reference {
    Reference { registry: "r.example".into(), repository: "a/b".into(), tag: Some("v1".into()), digest: None }
}

/// What Docker saves: layers that are not compressed, one of them a link.
fn runtime(path: &Path) {
    let layer = tar(&[("bin/run", b'0', b"binary")]);
    let digest = transom_packages::Digest::of(&layer);
    let config = format!(
        r#"{{"architecture":"arm64","os":"linux","created":"2024-01-01T00:00:00Z","config":{{"Entrypoint":["/bin/run"],"User":"65532"}},"rootfs":{{"type":"layers","diff_ids":["{digest}"]}}}}"#
    );
    let list = r#"[{"Config":"config.json","RepoTags":["runtime:v1"],"Layers":["a/layer.tar"]}]"#;
    std::fs::write(
        path,
        tar(&[
            ("manifest.json", b'0', list.as_bytes()),
            ("a/layer.tar", b'0', &layer),
            ("config.json", b'0', config.as_bytes()),
        ]),
    )
    .unwrap();
}

#[tokio::test]
async fn a_package_is_built_pushed_and_installed() {
    let folder = tempfile::tempdir().unwrap();
    let (base, path) = (folder.path().join("runtime.tar"), folder.path().join("package.xpkg"));
    runtime(&base);
    let base = Tarball::open(&base).unwrap().single().unwrap();
    assert_eq!(
        (base.tags.as_slice(), base.layers[0].is_compressed()),
        (&["runtime:v1".to_owned()][..], false)
    );
    let package = Package { stream: b"kind: A\n", examples: Some(b"kind: Example\n"), base: Some(&base) };
    let image = build(package, folder.path()).unwrap();
    assert_eq!(build(package, folder.path()).unwrap().digest, image.digest, "built twice, the same");
    write(&[(&image, &[])], &path).unwrap();

    let read = Tarball::open(&path).unwrap().single().unwrap();
    assert_eq!((read.layers.len(), &*read.config.architecture), (3, "arm64"));
    let config: serde_json::Value = serde_json::from_slice(&read.config_bytes).unwrap();
    assert_eq!(config["config"]["Entrypoint"][0], "/bin/run");
    assert_eq!(config["rootfs"]["diff_ids"].as_array().unwrap().len(), 3);
    // The diff IDs are the digests of the uncompressed layers.
    for (layer, diff_id) in read.layers.iter().zip(config["rootfs"]["diff_ids"].as_array().unwrap()) {
        let blob =
            layer.part.open(String::new(), &layer.descriptor).await.unwrap().bytes(1 << 20).await.unwrap();
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&blob[..]).read_to_end(&mut plain).unwrap();
        assert_eq!(transom_packages::Digest::of(&plain).as_str(), diff_id);
    }

    let pushed = read.annotated(&[("team".to_owned(), "a".to_owned())].into()).unwrap();
    let Document::Manifest(manifest) = Document::parse(&pushed.manifest).unwrap() else { panic!("an index") };
    assert_eq!(manifest.annotations["team"], "a");
    let marks: Vec<_> =
        manifest.layers.iter().map(|layer| layer.annotations.get("io.crossplane.xpkg")).collect();
    assert_eq!(marks, [None, Some(&"base".to_owned()), Some(&"upbound".to_owned())]);

    let server = Server::start().await;
    let registry = client();
    let digest = registry.push(&server.reference("v1"), &pushed, &[], &|_| {}).await.unwrap();
    assert_eq!(digest, pushed.digest);
    assert_eq!(&registry.fetch(&server.reference("v1"), &[]).await.unwrap().content[..], b"kind: A\n");
    // The file itself is a source as well.
    let fetched =
        transom_oci::package::fetch(&pushed, &reference(), &[], LayerLimits::default()).await.unwrap();
    assert_eq!((&fetched.content[..], fetched.digest), (&b"kind: A\n"[..], digest));
}

#[tokio::test]
async fn a_package_without_runtime_or_examples_has_one_layer() {
    let folder = tempfile::tempdir().unwrap();
    let image = build(Package { stream: b"x", examples: None, base: None }, folder.path()).unwrap();
    assert_eq!(image.blobs.len(), 2);
    let raw = image.manifest(&reference(), &[]).await.unwrap();
    assert_eq!(raw.digest, image.digest);
}

#[test]
fn an_archive_of_several_images_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.xpkg");
    let image = |content: &[u8]| {
        build(Package { stream: content, examples: None, base: None }, folder.path()).unwrap()
    };
    let (one, two) = (image(b"one"), image(b"two"));
    let tags = |name: &str| vec![format!("r.example/{name}:v1")];
    write(&[(&two, &tags("two")), (&one, &tags("one"))], &path).unwrap();
    let archive = Tarball::open(&path).unwrap();
    let images = archive.images().unwrap();
    assert_eq!(images.iter().map(|image| image.tags.clone()).collect::<Vec<_>>(), [tags("one"), tags("two")]);
    assert!(archive.single().unwrap_err().message.contains("has 2 images; exactly one is expected"));
}

#[test]
fn unsound_archives_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.xpkg");
    let list = |text: &'static str| tar(&[("manifest.json", b'0', text.as_bytes())]);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"not an archive".to_vec(), "malformed tar archive"),
        (gzip(b"compressed"), "malformed tar archive"),
        (tar(&[("other", b'0', b"")]), "has no manifest.json"),
        (list("{}"), "manifest.json is malformed"),
        (list(r#"[{"Config":"../../etc/passwd","Layers":[]}]"#), "has no file \"etc/passwd\""),
        (list(r#"[{"Config":"manifest.json","Layers":["missing.tar.gz"]}]"#), "manifest.json"),
        (
            tar(&[("manifest.json", b'0', br#"[{"Config":"loop","Layers":[]}]"#), ("loop", b'2', b"")]),
            "has no file",
        ),
    ];
    for (bytes, text) in cases {
        std::fs::write(&path, bytes).unwrap();
        let error = Tarball::open(&path).and_then(|archive| archive.images().map(drop)).unwrap_err();
        assert!(error.message.contains(text) && error.message.contains("bad.xpkg"), "{text}: {error}");
    }
    assert!(Tarball::open(&folder.path().join("none")).unwrap_err().message.contains("none"));
}

#[test]
fn an_archive_that_cannot_be_written_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut image = build(Package { stream: b"x", examples: None, base: None }, folder.path()).unwrap();
    image.blobs.pop();
    let error = write(&[(&image, &[])], &folder.path().join("a.xpkg")).unwrap_err();
    assert!(error.message.contains("has no blob"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
