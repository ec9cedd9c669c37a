//! Pushing to a registry, and reading from it.

use super::{COMPOSITION, Folder, META, gunzip};
use serde_json::Value;
use transom_oci::testing::images::{INDEX, MANIFEST};
use transom_oci::testing::{Access, Server};
use transom_packages::Digest;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pushed_is_what_was_built() {
    let server = Server::start().await;
    let folder = Folder::new();
    let depends = "spec:\n  dependsOn:\n  - function: xpkg.example.org/acme/f\n    version: '>=v1.0.0'\n";
    folder.build("p", &[("crossplane.yaml", &format!("{META}{depends}")), ("c.yaml", COMPOSITION)]);
    let reference = format!("{}/team/platform:v1.0.0", server.host);
    let pushed = folder.ok(&["push", &reference, "-f", "p.xpkg"]);
    assert!(pushed.starts_with("sha256:") && pushed.len() == 71, "{pushed}");
    let remote = json(&folder.ok(&["inspect", &reference, "-o", "json"]));
    let local = json(&folder.ok(&["inspect", "p.xpkg", "-o", "json"]));
    assert_eq!(remote["digest"], pushed);
    assert_eq!(remote["package"], reference);
    for same in ["digest", "layers", "objects", "dependencies", "contentDigest", "kind", "name"] {
        assert_eq!(remote[same], local[same], "{same}");
    }
    assert_eq!(remote["objects"][0]["name"], "apps");
    assert_eq!(remote["dependencies"][0]["version"], ">=v1.0.0");
    assert_eq!(remote["layers"][0]["content"], "package");
    assert_eq!(remote["signatures"], 0);
    folder.ok(&["extract", &reference, "-o", "remote.gz"]);
    folder.ok(&["extract", "--from-xpkg", "p.xpkg", "-o", "local.gz"]);
    assert_eq!(folder.read("remote.gz"), folder.read("local.gz"));
    assert!(gunzip(&folder.read("remote.gz")).contains("kind: Composition"));
    // Without a tag it is pushed by its digest alone; so is an index.
    let repository = format!("{}/team/untagged", server.host);
    assert_eq!(folder.ok(&["push", &repository, "-f", "p.xpkg"]), pushed);
    let both = json(&folder.ok(&["push", &repository, "-f", "p.xpkg,p.xpkg", "-o", "json"]));
    let stored: Vec<String> = {
        let state = server.state.lock().unwrap();
        state.manifests.keys().filter_map(|at| at.strip_prefix("team/untagged:")).map(str::to_owned).collect()
    };
    assert!(stored.iter().all(|at| at.starts_with("sha256:")), "{stored:?}");
    assert!(stored.contains(&pushed) && stored.iter().any(|at| both["digest"] == **at), "{stored:?}");
    assert_eq!(both["package"], format!("{repository}@{}", both["digest"].as_str().unwrap()));
    // What refers to it is listed.
    assert_eq!(remote["referrers"].as_array().map(Vec::len), Some(0));
    let sbom = serde_json::json!({
        "schemaVersion": 2, "mediaType": INDEX, "manifests": [{
            "mediaType": MANIFEST, "artifactType": "application/spdx+json", "size": 2, "digest": Digest::of(b"{}").as_str(),
        }],
    });
    server.push_manifest("team/platform", &pushed.replace(':', "-"), INDEX, sbom.to_string().as_bytes());
    let remote = json(&folder.ok(&["inspect", &reference, "-o", "json"]));
    assert_eq!(remote["referrers"][0]["artifactType"], "application/spdx+json");
    // By digest, and for people.
    let by_digest = format!("{}/team/platform@{pushed}", server.host);
    let text = folder.ok(&["inspect", &by_digest]);
    assert!(text.starts_with("Configuration platform\n") && text.contains(&pushed), "{text}");
    assert!(folder.ok(&["inspect", &by_digest, "-o", "yaml"]).contains("kind: Configuration\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_only_package_of_the_folder_is_pushed() {
    let server = Server::start().await;
    let folder = Folder::new();
    let reference = format!("{}/team/platform:v1", server.host);
    assert!(folder.error(&["push", &reference], 1).contains("transom xpkg build"));
    folder.build("p", &[("crossplane.yaml", META)]);
    let plain = folder.ok(&["push", &reference]);
    let annotated = folder.ok(&["push", &reference, "-a", "org.example.team=platform"]);
    assert_ne!(plain, annotated);
    assert_eq!(json(&folder.ok(&["inspect", &reference, "-o", "json"]))["digest"], annotated);
    // Several files are one package.
    folder.build("q", &[("crossplane.yaml", META), ("c.yaml", COMPOSITION)]);
    assert!(folder.error(&["push", &reference], 1).contains("name the one that is meant"));
    let index = folder.ok(&["push", &reference, "-f", "p.xpkg,q.xpkg"]);
    let state = server.state.lock().unwrap();
    let stored = String::from_utf8_lossy(&state.manifests[&format!("team/platform:{index}")].1).into_owned();
    assert_eq!(json(&stored)["manifests"].as_array().map(Vec::len), Some(2), "{stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_those_of_docker_login() {
    let server = Server::start().await;
    server.require(Access::Basic);
    let folder = Folder::new();
    folder.build("p", &[("crossplane.yaml", META)]);
    let reference = format!("{}/acme/package:v1", server.host);
    let error = folder.error(&["push", &reference], 1);
    assert!(error.contains("docker login"), "{error}");
    // user:password
    let auths = format!(r#"{{"auths": {{"{}": {{"auth": "dXNlcjpwYXNzd29yZA=="}}}}}}"#, server.host);
    folder.write("config.json", &auths);
    folder.ok(&["push", &reference]);
    folder.write("config.json", "{");
    let error = folder.error(&["push", &reference], 1);
    assert!(error.contains("config.json: the Docker configuration is not valid"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_reached_or_read_is_explained() {
    let server = Server::start().await;
    let folder = Folder::new();
    folder.build("p", &[("crossplane.yaml", META)]);
    // Nothing listens on the port of a server that is gone.
    let gone = Server::start().await.host.clone();
    let unreachable = format!("{gone}/team/platform:v1");
    for command in [&["inspect", &unreachable][..], &["push", &unreachable], &["extract", &unreachable]] {
        let error = folder.error(command, 1);
        assert!(error.contains(&gone) && error.contains("check the name of the registry"), "{error}");
        let reason = format!("{gone} cannot be reached: connection refused; ");
        assert!(error.contains(&reason) && !error.contains("client error"), "{error}");
    }
    let absent = format!("{}/team/platform:v9", server.host);
    assert!(folder.error(&["inspect", &absent], 1).contains(&absent));
    for (reference, problem) in [("platform:v1", "host"), ("a.b/c", "tag")] {
        let error = folder.error(&["inspect", reference], 1);
        assert!(error.contains(problem) && error.contains("write it like"), "{error}");
    }
    let pinned = format!("{}/a@sha256:{}", server.host, "0".repeat(64));
    assert!(folder.error(&["push", &pinned], 1).contains("end it in a tag"));
    assert!(folder.error(&["inspect", "gone.xpkg"], 1).contains("gone.xpkg"));
    assert!(folder.error(&["extract", "p.xpkg"], 1).contains("--from-xpkg"));
    for wrong in [
        &["inspect"][..],
        &["inspect", &absent, "-o", "xml"],
        &["push", &absent, "-a", "novalue"],
        &["nothing"],
    ] {
        folder.error(wrong, 80);
    }
}
