//! The CRDs that packages bring, as files.

use super::bundle::push;
use super::{Folder, META, definition, meta};
use serde_json::Value;
use transom_oci::testing::Server;

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
    metadata: {name: things.example.com}\nspec:\n  group: example.com\n  scope: Cluster\n  \
    names: {kind: Thing, plural: things}\n  versions:\n  - {name: v1alpha1, served: true, storage: false}\n  - name: v1\n    \
    served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, \
    properties: {a: {type: string}}}}}}\n";

#[tokio::test(flavor = "multi_thread")]
async fn crds_of_files_packages_and_bundles_are_written() {
    let server = Server::start().await;
    let folder = Folder::new();
    let host = server.host.clone();
    let base = format!("{host}/team/base");
    folder.build("base", &[("crossplane.yaml", &meta("base", &[])), ("d.yaml", &definition(&["size"]))]);
    folder.ok(&["push", &format!("{base}:v1.0.0"), "-f", "base.xpkg"]);
    push(&folder, &host, &[("team/platform", "v1.0.0", &[("team/base", ">=v1.0.0")])]);
    folder.write("in/crd.yaml", CRD);
    folder.write("in/crossplane.yaml", &meta("mine", &[(&base, "*")]));
    let said = folder.ok(&["get-crds", "in", "-o", "out"]);
    let expected = [
        "wrote out/example.org/v1/app.yaml",
        "wrote out/example.com/v1/thing.yaml",
        "Total 2 CRDs written to out",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    assert!(
        String::from_utf8(folder.read("out/example.org/v1/app.yaml")).unwrap().contains("compositionRef")
    );
    // A package with its dependencies, a bundle, and a package in a file.
    let platform = format!("{host}/team/platform:v1.0.0");
    folder.ok(&["bundle", &platform, "-o", "all.tar"]);
    for source in [platform.as_str(), "all.tar", "base.xpkg"] {
        let said = folder.ok(&["get-crds", source, "--flat", "-o", "flat"]);
        assert_eq!(said, "wrote flat/apps.example.org.yaml\nTotal 1 CRDs written to flat", "{source}");
    }
    // Packages are kept: without the server, only tags cannot be looked up.
    let digest = folder.ok(&["push", &format!("{base}:v1.0.0"), "-f", "base.xpkg"]);
    folder.ok(&["get-crds", &format!("{base}@{digest}"), "-o", "kept"]);
    drop(server);
    folder.ok(&["get-crds", &format!("{base}@{digest}"), "-o", "kept"]);
    folder.error(&["get-crds", &format!("{base}@{digest}"), "-o", "kept", "--no-cache"], 1);
    folder.error(&["get-crds", &format!("{base}@{digest}"), "-o", "kept", "--clean-cache"], 1);
}

#[test]
fn schemas_are_closed_and_mistakes_have_a_place() {
    let folder = Folder::new();
    folder.write("crd.yaml", CRD);
    let said = folder.ok(&["get-crds", "crd.yaml", "--json-schema", "-o", "s"]);
    assert_eq!(said, "wrote s/example.com/v1/thing.json\nTotal 1 JSON Schemas written to s");
    let schema: Value = serde_json::from_slice(&folder.read("s/example.com/v1/thing.json")).unwrap();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "Thing");
    assert_eq!(schema["properties"]["spec"]["additionalProperties"], false);
    folder.write("bad.yaml", &format!("{META}spec:\n  dependsOn: 3\n"));
    for (source, problem) in
        [("bad.yaml", "bad.yaml:1"), ("crossplane", "host"), ("nothing.yaml", "nothing.yaml")]
    {
        let error = folder.error(&["get-crds", source], 1);
        assert!(error.contains(problem), "{source}: {error}");
    }
    folder.write("other.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n");
    assert!(folder.error(&["get-crds", "other.yaml"], 1).contains("there are no CRDs"));
}
