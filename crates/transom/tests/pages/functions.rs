//! docs/writing-functions.md: projects are made, packed, pushed and installed. What the toolchains of the languages would do is done by
//! stand-ins that write files of the same names; `conformance/authoring` does it with the toolchains.

use super::{assert_all_are_known, block, blocks, printed};
use crate::xpkg::Folder;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use transom_oci::testing::Server;
use transom_testkit::process::{Home, Plane, wait_until};

const PAGE: &str = "writing-functions.md";
const FUNCTIONS: &str = "/apis/pkg.crossplane.io/v1/functions";
const FROM_INIT_TO_INSTALL: &str = "transom function init function-hello --language go";
const TEST: &str =
    "transom function test . cases                                    # the project in this folder";
/// The registry of the page.
const REGISTRY: &str = "registry.example.org";
/// The blocks of commands that build packages, and how many packages each makes.
const BUILDS: [(&str, usize); 4] = [
    (
        "CGO_ENABLED=0 GOARCH=amd64 go build -o function-amd64 . && transom function build --binary function-amd64 -o amd64.xpkg",
        2,
    ),
    ("RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --target x86_64-unknown-linux-gnu", 1),
    ("debootstrap --variant=minbase --include=python3 trixie base", 1),
    ("debootstrap --variant=minbase --include=nodejs trixie base", 1),
];

/// What stands in for a toolchain: it writes the files that the page goes on with.
const STAND_INS: [(&str, &str); 4] = [
    ("go", r#"[ "$1" != build ] || cp "$TOOLS/program-${GOARCH:-amd64}" "$3""#),
    (
        "cargo",
        r#"mkdir -p "target/$4/release"; cp "$TOOLS/program-amd64" "target/$4/release/function-hello""#,
    ),
    (
        "debootstrap",
        r#"mkdir -p "$4/usr/bin" "$4/dev" "$4/var/cache/apt"
           cp "$TOOLS/program-amd64" "$4/usr/bin/python3"; cp "$TOOLS/program-amd64" "$4/usr/bin/node""#,
    ),
    ("python3", r#"mkdir -p "$5/function""#),
];

/// The header of a program for Linux that is linked statically.
fn program(machine: u8) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18] = machine;
    bytes
}

fn with_tools() -> Folder {
    let folder = Folder::new();
    for (name, script) in STAND_INS {
        folder.write(&format!("tools/{name}"), &format!("#!/bin/sh -e\n{script}\n"));
    }
    for (name, machine) in [("amd64", 62), ("arm64", 183)] {
        std::fs::write(folder.path(&format!("tools/program-{name}")), program(machine)).expect("a file");
    }
    for file in std::fs::read_dir(folder.path("tools")).expect("a folder").flatten() {
        std::fs::set_permissions(file.path(), PermissionsExt::from_mode(0o755)).expect("a program");
    }
    folder
}

fn project(folder: &Folder) {
    printed(folder, "", "transom function init function-hello --language go", None);
    folder.write("function-hello/bundle/main.cjs", "// all of the function");
}

#[test]
fn every_block_about_functions_is_run_or_there_is_a_reason() {
    let run: Vec<&str> =
        [FROM_INIT_TO_INSTALL, TEST].into_iter().chain(BUILDS.map(|(line, _)| line)).collect();
    let not_run = [
        (
            "transom function run",
            "it builds and serves a project; conformance/authoring does so in every language",
        ),
        (
            "mkdir -p package",
            "the package has the binary itself, which a debug build makes very large; conformance/xfn does it",
        ),
    ];
    assert_all_are_known(PAGE, &run, &not_run);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_leads_from_an_empty_folder_to_an_installed_function() {
    let (server, home, folder) = (Server::start().await, Home::new(), with_tools());
    let plane = Plane::start_with(&home, &["--with-controllers", "--container-runtime", "none"]);
    let client = plane.client().await;
    wait_until("Functions are served", async || client.get(FUNCTIONS).await.is_ok_and(|reply| reply.ok()))
        .await;
    // The project would be built and called.
    let without = "transom function test . cases\n";
    let script = block(PAGE, FROM_INIT_TO_INSTALL).replace(REGISTRY, &server.host);
    assert!(script.contains(without), "{script}");
    let script = script.replace(without, "");
    let kubeconfig = home.data().join("kubeconfig");
    let shown = tokio::task::block_in_place(|| printed(&folder, "", &script, Some(&kubeconfig)));
    assert!(shown.ends_with("function/function-hello created\n"), "{shown}");
    wait_until("the package is installed", async || {
        let object = client.get(&format!("{FUNCTIONS}/function-hello")).await.expect("an answer").json();
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array).cloned();
        conditions.unwrap_or_default().iter().any(|c| c["type"] == "Installed" && c["status"] == "True")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_build_makes_a_package() {
    let server = Server::start().await;
    for (first_line, packages) in BUILDS {
        let folder = with_tools();
        project(&folder);
        let script = block(PAGE, first_line).replace(REGISTRY, &server.host);
        let shown = tokio::task::block_in_place(|| printed(&folder, "function-hello", &script, None));
        assert_eq!(shown.matches(".xpkg\n").count(), packages, "{first_line}: {shown}");
        if packages == 2 {
            let state = server.state.lock().expect("the registry");
            let (_, index) = &state.manifests["acme/function-hello:v0.1.0"];
            let index: Value = serde_json::from_slice(index).expect("JSON");
            let platform = |i: usize| index["manifests"][i]["platform"]["architecture"].clone();
            assert_eq!([platform(0), platform(1)], ["amd64", "arm64"], "{index}");
        }
    }
    let all = blocks(PAGE).iter().filter(|block| block.text.contains("transom function build")).count();
    assert_eq!(all, BUILDS.len() + 1, "the first block of the page builds as well");
}

#[test]
fn a_built_in_function_is_tested_as_the_page_says() {
    let folder = Folder::new();
    folder.write("request.yaml", "meta: {tag: a}\n");
    let lines = block(PAGE, TEST);
    // The others build a project, run a package, or call a function that runs.
    let line = lines.lines().find(|line| line.contains("function-auto-ready")).expect("a built-in function");
    assert!(printed(&folder, "", line, None).contains("tag: a"));
}
