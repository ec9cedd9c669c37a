//! Families of providers.

use super::{Folder, META};
use serde_json::{Value, json};
use transom_oci::testing::{Fault, Rule, Server};

const TEMPLATE: &str = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: {{ .Name }}\n  \
    annotations: {a: {{ .Service }}-{{ .channel }}}\n";

/// What `docker save` writes for an image of an architecture, near enough: a package is an image. Its package comes before
/// that of the family's member, so that contents cannot be looked at here.
pub(super) fn family() -> Folder {
    let folder = Folder::new();
    folder.build("base", &[("crossplane.yaml", META)]);
    std::fs::copy(folder.path("base.xpkg"), folder.path("base-amd64.tar")).unwrap();
    folder.build("other", &[("crossplane.yaml", &META.replace("platform", "other"))]);
    std::fs::copy(folder.path("other.xpkg"), folder.path("base-arm64.tar")).unwrap();
    folder.write("package/crossplane.yaml.tmpl", TEMPLATE);
    for (group, kind) in [("db", "table"), ("net", "route")] {
        let crd = format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
             metadata: {{name: {kind}s.{group}.example.org}}\n"
        );
        folder.write(&format!("package/crds/{group}.example.org_{kind}s.yaml"), &crd);
        for platform in ["linux_amd64", "linux_arm64"] {
            folder.write(&format!("bin/{platform}/{group}"), &format!("{group} on {platform}"));
        }
    }
    folder.write("examples/db/table.yaml", "kind: Table\n");
    folder
}

pub(super) fn batch<'a>(format: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let common = ["batch", "--family-base-image", "base", "--provider-name", "provider-acme", "-p", "bin"];
    let members = ["--smaller-providers", "db,net", "--family-package-url-format", format];
    [&common[..], &members, more].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_family_is_built_and_pushed() {
    let server = Server::start().await;
    let folder = family();
    let format = format!("{}/acme/%s:v1.0.0", server.host);
    // The first attempt to store an index fails.
    let rule = Rule {
        matches: "PUT /v2/acme/provider-acme-db/manifests/v1.0.0",
        fault: Fault::Status(403, Vec::new()),
        times: Some(1),
    };
    server.state.lock().unwrap().rules.push(rule);
    let printed = folder.ok(&batch(&format, &["--template-var", "channel=stable", "--concurrency", "1"]));
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 2, "{printed}");
    for (line, member) in lines.iter().zip(["db", "net"]) {
        let (reference, digest) = line.split_once(' ').unwrap();
        assert_eq!(reference, format!("{}/acme/provider-acme-{member}:v1.0.0", server.host));
        let shown: Value = serde_json::from_str(&folder.ok(&["inspect", reference, "-o", "json"])).unwrap();
        assert_eq!(shown["digest"], digest);
        let contents: Vec<&str> = shown["layers"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|layer| layer["content"].as_str())
            .collect();
        let own: &[&str] =
            if member == "db" { &["package", "examples", "runtime"] } else { &["package", "runtime"] };
        assert!(contents.ends_with(own), "{contents:?}");
    }
    let again = folder.ok(&batch(&format, &["--template-var", "channel=stable", "--format", "yaml"]));
    for line in lines {
        let (reference, digest) = line.split_once(' ').unwrap();
        assert!(again.contains(reference) && again.contains(digest), "{again}");
    }
}

#[test]
fn packages_are_stored_and_mistakes_explained() {
    let folder = family();
    let format = "registry.example.org/acme/%s:v1.0.0";
    let stored = ["--build-only", "--store-packages", "net", "-o", "out", "--template-var", "channel=x"];
    assert_eq!(folder.ok(&batch(format, &stored)), "");
    for platform in ["linux_amd64", "linux_arm64"] {
        assert!(folder.path(&format!("out/{platform}/provider-acme-net-v1.0.0.xpkg")).exists());
        assert!(!folder.path(&format!("out/{platform}/provider-acme-db-v1.0.0.xpkg")).exists());
    }
    let shown = folder.ok(&batch(format, &[&stored[..], &["--format", "json"]].concat()));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let files = ["linux_amd64", "linux_arm64"].map(|p| format!("out/{p}/provider-acme-net-v1.0.0.xpkg"));
    let [db, net] = [json!([]), json!(files)];
    let expected = [
        json!({"name": "provider-acme-db", "files": db}),
        json!({"name": "provider-acme-net", "files": net}),
    ];
    assert_eq!(shown, json!({"packages": expected}));
    let names = std::fs::read_dir(folder.path("out")).unwrap().flatten().map(|item| item.file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with('.')), "nothing else remains");
    folder.write("vars.yaml", "db: {channel: fast}\nnet: {channel: slow}\n");
    folder.ok(&batch(format, &["--build-only", "--service-metadata", "vars.yaml"]));
    let unset = folder.error(&batch(format, &["--build-only"]), 1);
    assert!(unset.contains("a variable that is not set") && unset.contains("--template-var"), "{unset}");
    let platform = folder.error(&batch(format, &["--platform", "linux"]), 80);
    assert!(platform.contains("linux_amd64"), "{platform}");
    let base = folder.error(&batch(format, &["--platform", "linux_s390x"]), 1);
    assert!(base.contains("base-s390x.tar") && base.contains("docker save"), "{base}");
    let plain = folder.error(&batch("registry.example.org/acme:v1", &["--template-var", "channel=x"]), 1);
    assert!(plain.contains("has no %s"), "{plain}");
}
