//! The tools of people who write functions: `transom function init`, `build`, `push` and `test`. What needs the toolchain of a
//! language is in `conformance/authoring`.

use crate::xpkg::Folder;
use std::process::Output;

fn run(folder: &Folder, arguments: &[&str]) -> Output {
    folder.command(&[&["function"], arguments].concat()).output().expect("the binary runs")
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", err(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder with a project.
fn project() -> Folder {
    let folder = Folder::new();
    out(&run(&folder, &["init", "function-hello", "--language", "python", "-d", "p"]));
    folder
}

#[test]
fn a_project_is_made_once_and_never_over_files() {
    let folder = Folder::new();
    for language in ["go", "python", "typescript"] {
        let made = run(&folder, &["init", "function-hello", "-l", language, "-d", language]);
        assert_eq!(out(&made), format!("{language}\n"));
        assert!(folder.path(language).join("package/crossplane.yaml").is_file());
    }
    let again = run(&folder, &["init", "function-hello", "-l", "go", "-d", "go"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(err(&again).contains("go is not empty"), "{}", err(&again));
    let name = run(&folder, &["init", "Function", "-l", "rust"]);
    assert!(err(&name).contains("cannot be the name of a function"), "{}", err(&name));
    assert!(!folder.path("Function").exists(), "a project that is refused leaves nothing");
    out(&run(&folder, &["init", "function-hello", "-l", "rust", "-d", "rust"]));
    let manifest = String::from_utf8(folder.read("rust/Cargo.toml")).expect("text");
    assert!(manifest.contains("function-sdk-rust = \"="), "{manifest}");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    out(&run(&folder, &["init", "function-hello", "-l", "rust", "--sdk", root]));
    let manifest = String::from_utf8(folder.read("function-hello/Cargo.toml")).expect("text");
    assert!(manifest.contains("/crates/function\" }"), "{manifest}");
}

#[test]
fn the_same_files_make_the_same_package_with_the_crd_of_the_input() {
    let folder = project();
    folder.write("root/bin/run", "#!/bin/sh\n");
    let build =
        |to: &str| run(&folder, &["build", "p", "--root", "root", "--entrypoint", "/bin/run", "-o", to]);
    assert_eq!(out(&build("one.xpkg")), "one.xpkg\n");
    folder.write("root/bin/run", "#!/bin/sh\n");
    out(&build("two.xpkg"));
    assert!(folder.read("one.xpkg") == folder.read("two.xpkg"));
    let inspected = out(&folder.run(&["inspect", "one.xpkg"]));
    assert!(inspected.contains("inputs.function-hello.fn.example.org"), "{inspected}");
    folder.write("root/bin/run", "#!/bin/sh\nexit 1\n");
    out(&build("two.xpkg"));
    assert!(folder.read("one.xpkg") != folder.read("two.xpkg"));
    // Without -o, beside the project's own files and not among those of the package.
    let printed = out(&run(&folder, &["build", "p", "--root", "root", "--entrypoint", "/bin/run"]));
    assert!(printed.starts_with("p/function-hello-") && printed.ends_with(".xpkg\n"), "{printed}");
}

#[test]
fn what_could_not_run_is_refused() {
    let folder = project();
    folder.write("script", "#!/bin/sh\n");
    let linked = env!("CARGO_BIN_EXE_transom");
    for (arguments, reason) in [
        (&["build", "p"][..], "there is nothing that the function could run"),
        (&["build", ".", "--binary", linked], "has no package/crossplane.yaml"),
        (&["build", "p", "--binary", "script"], "it is not a program for Linux"),
        (&["build", "p", "--binary", linked], "is linked dynamically"),
        (&["build", "p", "--root", "p"], "there is no command to run"),
        (
            &["build", "p", "--root", "p", "--entrypoint", "a", "--platform", "amd64"],
            "write it like linux/amd64",
        ),
    ] {
        let refused = run(&folder, arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        assert!(err(&refused).contains(reason), "{arguments:?}: {}", err(&refused));
    }
    let left = std::fs::read_dir(folder.path("p")).expect("the project").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(left.iter().all(|name| !name.contains("xpkg")), "{left:?}");
}

#[test]
fn a_built_in_answers_and_differences_are_shown() {
    let folder = Folder::new();
    folder.write("cases/one.request.yaml", "meta: {tag: a}\n");
    let test = |more: &[&str]| run(&folder, &[&["test", "function-auto-ready", "cases"], more].concat());
    let single = run(&folder, &["test", "function-auto-ready", "cases/one.request.yaml"]);
    let response = out(&single);
    assert!(response.contains("tag: a"), "{response}");

    let missing = test(&[]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stdout).contains("there is no one.response.yaml"));
    assert_eq!(out(&test(&["--update"])), "written one\n");
    assert_eq!(folder.read("cases/one.response.yaml"), response.as_bytes());
    assert_eq!(out(&test(&[])), "ok one\n");

    folder.write("cases/one.response.yaml", &response.replace("tag: a", "tag: b"));
    let differs = test(&[]);
    assert_eq!(differs.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&differs.stdout).into_owned();
    assert!(shown.starts_with("FAILED one\n"), "{shown}");
    assert!(shown.contains("-   tag: b\n+   tag: a\n"), "{shown}");
}

#[test]
fn mistakes_in_the_use_of_test_are_explained() {
    let folder = Folder::new();
    folder.write("bad.yaml", "meta: {tga: a}\n").write("empty/README.md", "");
    for (arguments, reason) in [
        (&["test", "cases"][..], "name both"),
        (&["test", "--target", "localhost:1", "a", "b"], "give only the requests"),
        (&["test", "function-auto-ready", "bad.yaml"], "unknown field `tga`"),
        (&["test", "function-auto-ready", "empty"], "holds no requests"),
        (&["test", "function-auto-raedy", "bad.yaml"], "unknown field `tga`"),
    ] {
        let refused = run(&folder, arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        assert!(err(&refused).contains(reason), "{arguments:?}: {}", err(&refused));
    }
    folder.write("good.yaml", "meta: {tag: a}\n");
    let unknown = run(&folder, &["test", "function-auto-raedy", "good.yaml"]);
    assert!(err(&unknown).contains("did you mean"), "{}", err(&unknown));
    let unreachable = run(&folder, &["test", "--target", "127.0.0.1:1", "good.yaml"]);
    assert!(err(&unreachable).contains("start it with --insecure"), "{}", err(&unreachable));
}
