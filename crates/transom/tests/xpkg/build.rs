//! Building: the same files are the same package, and mistakes are shown where they are.

use super::{COMPOSITION, Folder, META, gunzip};
use std::path::Path;

#[test]
fn the_same_files_are_the_same_package() {
    let folder = Folder::new();
    folder.write("a/crossplane.yaml", META).write("a/apis/composition.yaml", COMPOSITION);
    folder.write("b/crossplane.yml", META).write("b/composition.yaml", &format!("# why\n---\n{COMPOSITION}"));
    let first = folder.ok(&["build", "-f", "a", "-o", "first.xpkg"]);
    assert_eq!(first, "first.xpkg");
    folder.ok(&["build", "-f", "a", "-o", "second.xpkg"]);
    folder.ok(&["build", "--package-root=b", "--package-file=third.xpkg"]);
    assert_eq!(folder.read("first.xpkg"), folder.read("second.xpkg"));
    assert_eq!(folder.read("first.xpkg"), folder.read("third.xpkg"), "comments and places do not count");
    // By default, the name is made of the content.
    let named = folder.ok(&["build", "-f", "a"]);
    assert!(named.starts_with("a/platform-") && named.ends_with(".xpkg"), "{named}");
    assert_eq!(named.len(), "a/platform-123456789012.xpkg".len(), "{named}");
    assert_eq!(folder.read(&named), folder.read("first.xpkg"));
    assert_eq!(folder.ok(&["build", "-f", "a"]), named, "a package in the folder is not part of the package");
}

#[test]
fn the_stream_is_in_the_order_of_names_with_the_meta_object_first() {
    let folder = Folder::new();
    folder.build(
        "p",
        &[("z/crossplane.yaml", META), ("a.yaml", COMPOSITION), ("ci/x.yaml", "a: b"), ("e.yaml", "")]
            .map(|(name, text)| (name, if name.starts_with("ci") { COMPOSITION } else { text })),
    );
    folder.ok(&["extract", "--from-xpkg", "p.xpkg", "-o", "p.gz"]);
    let both = gunzip(&folder.read("p.gz"));
    assert!(both.starts_with("---\napiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\n"), "{both}");
    assert_eq!(both.matches("kind: Composition\n").count(), 2, "{both}");
    folder.ok(&["build", "-f", "p-files", "--ignore", "ci,nothing", "-o", "q.xpkg"]);
    folder.ok(&["extract", "--from-xpkg", "q.xpkg", "-o", "q.gz"]);
    assert_eq!(gunzip(&folder.read("q.gz")).matches("kind: Composition\n").count(), 1);
}

#[test]
fn mistakes_are_shown_in_the_file_with_a_remedy() {
    let secret = "# hidden\napiVersion: v1\nkind: Secret\n";
    let function = META.replace("Configuration", "Function");
    let depends = format!("{META}spec:\n  dependsOn:\n  - function: a.b/c\n    version: nonsense\n");
    for (files, expected) in [
        (&[("crossplane.yaml", META), ("s.yaml", secret)][..], &["root/s.yaml:2:1", "--ignore"][..]),
        (&[("crossplane.yaml", META), ("s.yaml", "a: b\nc: [\n")], &["root/s.yaml:", "not YAML"]),
        (&[("crossplane.yaml", &function), ("c.yaml", COMPOSITION)], &["root/c.yaml:1:1", "--ignore"]),
        (&[("crossplane.yaml", &depends)], &["root/crossplane.yaml:8:5", "nonsense"]),
        (&[("a.yaml", META), ("b.yaml", META)], &["root/b.yaml:1:1", "root/a.yaml:1 is the first"]),
        (&[("c.yaml", COMPOSITION)], &["no file in root says", "add crossplane.yaml"]),
        (&[("readme.md", "hello")], &["root holds no YAML files"]),
    ] {
        let folder = Folder::new();
        for (name, text) in files {
            folder.write(&format!("root/{name}"), text);
        }
        let error = folder.error(&["build", "-f", "root"], 1);
        assert!(error.starts_with("error: "), "{error}");
        for expected in expected {
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}

#[test]
fn what_cannot_be_done_is_refused_with_a_remedy() {
    let folder = Folder::new();
    folder.write("crossplane.yaml", META);
    assert!(folder.error(&["build", "-f", "nowhere"], 1).contains("nowhere is not a folder"));
    assert!(folder.error(&["build", "-o", "no/where.xpkg"], 1).contains("-o names another file"));
    let both = ["build", "--embed-runtime-image", "acme/f:v1", "--embed-runtime-image-tarball", "no.tar"];
    folder.error(&both, 80);
    folder.write("no.tar", "nothing");
    let runtime = folder.error(&["build", "--embed-runtime-image-tarball", "no.tar"], 1);
    assert!(runtime.contains("docker save IMAGE"), "{runtime}");
    assert!(folder.error(&["build", "--package-rot", "."], 80).contains("--package-root"));
    assert!(!folder.path(".xpkg-build").exists());
}

#[test]
fn examples_beside_the_package_are_not_objects_of_it() {
    let folder = Folder::new();
    folder.write("p/crossplane.yaml", META).write("p/examples/e.yaml", "kind: App\n");
    let layers = |arguments: &[&str]| {
        folder.ok(&[&["build", "-f", "p", "-o", "p.xpkg"], arguments].concat());
        let shown: serde_json::Value =
            serde_json::from_str(&folder.ok(&["inspect", "p.xpkg", "-o", "json"])).unwrap();
        shown["layers"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(layers(&[]), 2);
    // The folder of the original's default comes first: then the others are objects, and no good ones.
    folder.write("examples/e.yaml", "kind: App\n");
    let error = folder.error(&["build", "-f", "p", "-o", "p.xpkg"], 1);
    assert!(error.contains("p/examples/e.yaml"), "{error}");
    assert_eq!(layers(&["-e", "p/examples"]), 2);
}

#[test]
fn a_runtime_image_is_kept_below_the_package() {
    let folder = Folder::new();
    // A package is an image: it can be the runtime of another.
    folder.build("runtime", &[("crossplane.yaml", META)]);
    let function = META.replace("Configuration", "Function");
    folder.write("f/crossplane.yaml", &function);
    let build = ["build", "-f", "f", "--embed-runtime-image-tarball", "runtime.xpkg", "-o"];
    folder.ok(&[&build[..], &["one.xpkg"]].concat());
    folder.ok(&[&build[..], &["two.xpkg"]].concat());
    assert_eq!(folder.read("one.xpkg"), folder.read("two.xpkg"));
    let shown: serde_json::Value =
        serde_json::from_str(&folder.ok(&["inspect", "one.xpkg", "-o", "json"])).unwrap();
    assert_eq!(shown["layers"].as_array().map(Vec::len), Some(2), "{shown}");
    let left = std::fs::read_dir(folder.path(".")).unwrap().flatten().map(|item| item.file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with(".xpkg-build")));
}

#[test]
fn the_documented_commands_work() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = Folder::new();
    for name in ["crossplane.yaml", "definition.yaml", "composition.yaml", "examples/note.yaml"] {
        let name = format!("examples/package/{name}");
        folder.write(&name, &std::fs::read_to_string(root.join(&name)).expect("the example"));
    }
    let page = std::fs::read_to_string(root.join("docs/xpkg.md")).expect("the page");
    let commands: Vec<Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("transom xpkg "))
        .filter(|command| !command.contains("registry.example.org"))
        .map(|command| command.split('#').next().unwrap_or_default().split_whitespace().collect())
        .collect();
    assert!(commands.iter().any(|command| command[0] == "build"), "{commands:?}");
    for command in &commands {
        folder.ok(command);
    }
    let shown = folder.ok(&["inspect", "notes.xpkg"]);
    for expected in ["Configuration notes", "function-patch-and-transform", "notes.example.org", "examples"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}
