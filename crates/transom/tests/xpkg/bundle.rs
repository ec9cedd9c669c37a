//! Bundles: a package with all that it depends on, read without a network.

use super::{Folder, definition, meta};
use serde_json::{Value, json};
use transom_oci::testing::Server;

/// A package: repository, tag, and what it depends on in the same registry.
pub(super) type Pushed<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// Builds and pushes packages.
pub(super) fn push(folder: &Folder, host: &str, packages: &[Pushed<'_>]) {
    for (repository, tag, dependencies) in packages {
        let dependencies: Vec<(String, &str)> =
            dependencies.iter().map(|(name, version)| (format!("{host}/{name}"), *version)).collect();
        let dependencies: Vec<(&str, &str)> =
            dependencies.iter().map(|(name, v)| (name.as_str(), *v)).collect();
        let name = format!("{}-{tag}", repository.replace('/', "-"));
        folder.build(&name, &[("crossplane.yaml", &meta(&name.replace('.', "-"), &dependencies))]);
        folder.ok(&["push", &format!("{host}/{repository}:{tag}"), "-f", &format!("{name}.xpkg")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_stands_in_for_the_registry() {
    let server = Server::start().await;
    let folder = Folder::new();
    let host = server.host.clone();
    push(
        &folder,
        &host,
        &[
            ("team/platform", "v1.0.0", &[("team/base", ">=v1.0.0"), ("team/net", "^1.0.0")]),
            ("team/net", "v1.4.0", &[("team/base", "<v2.0.0")]),
            ("team/net", "v2.0.0", &[]),
            ("team/base", "v1.0.0", &[]),
            ("team/base", "v1.1.0", &[]),
            ("team/base", "v2.0.0", &[]),
        ],
    );
    let platform = format!("{host}/team/platform:v1.0.0");
    let bundled = folder.run(&["bundle", &platform, "-o", "all.tar"]);
    let said = String::from_utf8_lossy(&bundled.stderr).into_owned();
    assert_eq!(bundled.status.code(), Some(0), "{said}");
    assert_eq!(bundled.stdout, b"all.tar\n");
    for (name, taken) in
        [("platform:v1.0.0", true), ("net:v1.4.0", true), ("base:v1.1.0", true), ("base:v2.0.0", false)]
    {
        assert_eq!(said.contains(&format!("/team/{name} sha256:")), taken, "{name}: {said}");
    }
    let remote = folder.ok(&["inspect", &platform, "-o", "json"]);
    folder.ok(&["extract", &platform, "-o", "remote.gz"]);
    drop(server);
    let here = ["--packages", "all.tar"];
    let read = folder.ok(&[&["inspect", &platform, "-o", "json"], &here[..]].concat());
    assert_eq!(read, remote);
    folder.ok(&[&["extract", &platform, "-o", "local.gz"], &here[..]].concat());
    assert_eq!(folder.read("remote.gz"), folder.read("local.gz"));
    // A bundle can be made of a bundle; a folder of packages serves as well.
    folder.ok(&[&["bundle", &platform, "-o", "again.tar"], &here[..]].concat());
    assert_eq!(folder.read("again.tar"), folder.read("all.tar"));
    let from_files = folder.ok(&["inspect", &platform, "-o", "json", "--packages", "."]);
    let (from_files, remote): (Value, Value) =
        (serde_json::from_str(&from_files).unwrap(), serde_json::from_str(&remote).unwrap());
    assert_eq!(from_files["digest"], remote["digest"]);
    let absent = folder.error(&[&["inspect", &format!("{host}/team/other:v1")], &here[..]].concat(), 1);
    assert!(absent.contains("--packages holds"), "{absent}");
    assert!(folder.error(&["inspect", &platform, "--packages", "nowhere"], 1).contains("an OCI layout"));
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_that_cannot_be_together_are_named() {
    let server = Server::start().await;
    let folder = Folder::new();
    let host = server.host.clone();
    push(
        &folder,
        &host,
        &[
            ("team/platform", "v1.0.0", &[("team/base", ">=v2.0.0"), ("team/net", "*")]),
            ("team/net", "v1.0.0", &[("team/base", "<v2.0.0")]),
            ("team/base", "v1.0.0", &[]),
            ("team/base", "v2.0.0", &[]),
        ],
    );
    let platform = format!("{host}/team/platform:v1.0.0");
    let error = folder.error(&["bundle", &platform, "-o", "all.tar"], 1);
    for expected in ["team/base", "team/platform:v1.0.0 needs >=v2.0.0", "team/net:v1.0.0 needs <v2.0.0"] {
        assert!(error.contains(expected), "{expected}: {error}");
    }
    assert!(!folder.path("all.tar").exists());
    let fixed = folder.error(&["bundle", &platform, &format!("{host}/team/base:v1.0.0"), "-o", "all.tar"], 1);
    assert!(fixed.contains("needs") && fixed.contains("in version >=v2.0.0"), "{fixed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_that_are_built_in_can_be_left_out() {
    let server = Server::start().await;
    let folder = Folder::new();
    let host = server.host.clone();
    let dependencies = [("team/function-auto-ready", ">=v0.2.0"), ("team/base", "*")];
    push(&folder, &host, &[("team/platform", "v1.0.0", &dependencies), ("team/base", "v1.0.0", &[])]);
    let platform = format!("{host}/team/platform:v1.0.0");
    let error = folder.error(&["bundle", &platform, "-o", "all.tar"], 1);
    assert!(error.contains("function-auto-ready") && error.contains("--without-builtins"), "{error}");
    folder.ok(&["bundle", &platform, "-o", "all.tar", "--without-builtins"]);
    drop(server);
    let listed = folder.ok(&["inspect", &format!("{host}/team/base:v1.0.0"), "--packages", "all.tar"]);
    assert!(listed.contains("sha256:"), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_printed_for_programs() {
    let server = Server::start().await;
    let folder = Folder::new();
    let json = |arguments: &[&str]| -> Value {
        let printed = folder.ok(&[arguments, &["--format", "json"]].concat());
        serde_json::from_str(&printed).unwrap_or_else(|e| panic!("{e}: {printed}"))
    };
    folder.write("p/crossplane.yaml", &meta("p", &[])).write("p/d.yaml", &definition(&["size"]));
    let built = json(&["build", "-f", "p", "-o", "p.xpkg"]);
    let reference = format!("{}/team/p:v1.0.0", server.host);
    let digest = folder.ok(&["push", &reference, "-f", "p.xpkg"]);
    let expected = json!({"path": "p.xpkg", "kind": "Configuration", "name": "p", "digest": digest.as_str()});
    assert_eq!(built, expected);
    let bundled = json(&["bundle", &reference, "-o", "all.tar"]);
    let package = json!({"package": reference, "digest": digest, "signatures": 0, "requested": true});
    assert_eq!(bundled, json!({"path": "all.tar", "packages": [package]}));
    for from in [&[reference.as_str()][..], &["--from-xpkg", "p.xpkg"]] {
        let extracted = json(&[&["extract"], from, &["-o", "p.gz"]].concat());
        assert_eq!(extracted, json!({"path": "p.gz", "digest": digest}), "{from:?}");
    }
    let crds = json(&["get-crds", "p.xpkg", "-o", "crds"]);
    assert_eq!(crds, json!({"directory": "crds", "files": ["crds/example.org/v1/app.yaml"]}));
    let yaml = folder.ok(&["build", "-f", "p", "-o", "p.xpkg", "--format", "yaml"]);
    assert!(yaml.lines().any(|line| line == "path: p.xpkg"), "{yaml}");
    let both = folder.error(&["extract", "--from-xpkg", "p.xpkg", "-o", "-", "--format", "json"], 1);
    assert!(both.contains("leave out --format"), "{both}");
    folder.error(&["build", "-f", "p", "--format", "table"], 80);
}
