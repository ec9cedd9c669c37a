//! Progress of pulls, pushes and installations: shown on a terminal, and nowhere else.

use super::bundle::push;
use super::install::{FUNCTION, plane};
use super::verify::sign;
use super::{COMPOSITION, Folder, META, batch, definition};
use rcgen::KeyPair;
use std::fs::File;
use std::process::Stdio;
use transom_oci::testing::{Fault, Rule, Server};
use transom_testkit::process::{Home, Terminal, screen};

/// Runs a command with stdout on a terminal, and stderr too, unless it has another. Returns the exit code, and what was
/// written to the terminal.
fn on_terminal(folder: &Folder, arguments: &[&str], stderr: Option<File>) -> (Option<i32>, String) {
    let terminal = Terminal::new();
    let mut command = folder.command(&[&["xpkg"], arguments].concat());
    let stderr = stderr.map_or_else(|| terminal.output(), Stdio::from);
    let program = command.stdout(terminal.output()).stderr(stderr).spawn();
    drop(command);
    terminal.read(program.expect("the binary runs"))
}

/// What a command shows that succeeds, with both outputs on a terminal.
fn terminal_output(folder: &Folder, arguments: &[&str]) -> String {
    let (code, written) = on_terminal(folder, arguments, None);
    assert_eq!(code, Some(0), "{arguments:?}: {written}");
    written
}

/// The lines that were shown for a while, of transfers in one direction, such as `pulling 0123456789ab: 1 B of 2 B`.
fn transfers(written: &str, verb: &str) -> usize {
    let lines = written.split("\r\x1b[K").filter_map(|line| line.strip_prefix(verb)?.strip_prefix(' '));
    let is_transfer = |line: &&str| {
        let Some((digest, rest)) = line.split_once(": ") else { return false };
        digest.len() == 12 && rest.contains(" of ") && rest.ends_with('B')
    };
    lines.inspect(|line| assert!(is_transfer(line), "{line:?}")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_shows_transfers_and_keeps_only_results() {
    let server = Server::start().await;
    let folder = Folder::new();
    folder.build("p", &[("crossplane.yaml", META), ("d.yaml", &definition(&["size"]))]);
    let reference = format!("{}/acme/package:v1.0.0", server.host);
    let written = terminal_output(&folder, &["push", &reference, "-f", "p.xpkg"]);
    assert_eq!(transfers(&written, "pushing"), 2, "a layer and the configuration: {written:?}");
    let left = screen(&written);
    let starts = ["pushed   sha256:", "pushed   sha256:", "manifest sha256:", "sha256:"];
    assert_eq!(left.len(), starts.len(), "{left:#?}");
    assert!(left.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{left:#?}");

    let pulls: [(&[&str], &[&str]); 4] = [
        (&["extract", &reference, "-o", "out.gz"], &["out.gz"]),
        (&["inspect", &reference], &["Configuration platform"]),
        (&["bundle", &reference, "-o", "all.tar"], &[&reference, "all.tar"]),
        (&["get-crds", &reference, "-o", "crds"], &["wrote crds/", "Total 1 CRDs written to crds"]),
    ];
    for (arguments, starts) in pulls {
        let written = terminal_output(&folder, arguments);
        assert!(transfers(&written, "pulling") > 0, "{arguments:?}: {written:?}");
        let left = screen(&written);
        assert!(left.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{left:#?}");
        assert!(!left.iter().any(|line| line.contains("pulling")), "{left:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_has_no_progress() {
    let server = Server::start().await;
    let folder = Folder::new();
    push(&folder, &server.host, &[("acme/base", "v1.0.0", &[])]);
    let reference = format!("{}/acme/base:v1.0.0", server.host);
    for arguments in [
        &["push", &reference, "-f", "acme-base-v1.0.0.xpkg"][..],
        &["inspect", &reference],
        &["extract", &reference],
        &["bundle", &reference, "-o", "all.tar"],
    ] {
        // What counts is stderr: results may well be read on a terminal.
        let file = File::create(folder.path("stderr")).expect("a file");
        let (code, written) = on_terminal(&folder, arguments, Some(file));
        let stderr = String::from_utf8(folder.read("stderr")).expect("text");
        assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
        for text in [&written, &stderr] {
            assert!(!text.contains('\x1b') && !text.contains("ing "), "{arguments:?}: {text:?}");
        }
        let expected = if arguments[0] == "bundle" { 1 } else { 0 };
        assert_eq!(stderr.lines().count(), expected, "{arguments:?}: {stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_that_is_waited_for_shows_what_it_waits_for() {
    let home = Home::new();
    let _plane = plane(&home).await;
    let folder = Folder::new();
    let kubeconfig = home.data().join("kubeconfig").display().to_string();
    let package = format!("{FUNCTION}:v0.4.0");
    let install = ["install", "function", &package, "--kubeconfig", &kubeconfig];
    let written = terminal_output(&folder, &[&install[..], &["one", "--wait", "30s"]].concat());
    assert_eq!(screen(&written), ["function/one created"]);
    // One that is activated by hand is never healthy by itself.
    let (code, written) =
        on_terminal(&folder, &[&install[..], &["two", "-m", "--wait", "2s"]].concat(), None);
    assert_eq!(code, Some(1), "{written}");
    assert!(
        written.contains("\r\x1b[Kwaiting for function/two: Installed: InactivePackageRevision"),
        "{written:?}"
    );
    let left = screen(&written);
    assert!(left[0].contains("function/two is not healthy after 2s"), "{left:#?}");
    assert!(!left.iter().any(|line| line.contains("waiting")), "{left:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_and_a_verified_package_stand_alone_on_the_terminal() {
    let (server, folder) = (Server::start().await, Folder::new());
    folder.build("p", &[("crossplane.yaml", META), ("c.yaml", COMPOSITION)]);
    let reference = server.reference("v1.0.0").to_string();
    let digest = folder.ok(&["push", &reference, "-f", "p.xpkg"]);
    let written = terminal_output(&folder, &["plan", &reference, "--offline"]);
    assert!(transfers(&written, "pulling") > 0, "{written:?}");
    let left = screen(&written);
    assert!(left.iter().any(|line| line.trim_start().starts_with("create ")), "{left:#?}");
    assert!(!left.iter().any(|line| line.contains("pulling")), "{left:#?}");

    // The signature is another image: its payload is pulled.
    let key = KeyPair::generate().expect("a key");
    folder.write("cosign.pub", &key.public_key_pem());
    sign(&server, &digest, &key);
    let written = terminal_output(&folder, &["verify", &reference, "--key", "cosign.pub"]);
    assert!(transfers(&written, "pulling") > 0, "{written:?}");
    assert_eq!(screen(&written), [format!("{}/acme/package@{digest}", server.host)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_family_shows_pushes_between_its_results() {
    let server = Server::start().await;
    let folder = batch::family();
    let format = format!("{}/acme/%s:v1.0.0", server.host);
    let rule = Rule {
        matches: "PUT /v2/acme/provider-acme-db/manifests/v1.0.0",
        fault: Fault::Status(403, Vec::new()),
        times: Some(1),
    };
    server.state.lock().expect("the registry").rules.push(rule);
    let more = ["--template-var", "channel=stable", "--concurrency", "1"];
    let written = terminal_output(&folder, &batch::batch(&format, &more)[..]);
    assert!(transfers(&written, "pushing") > 0, "{written:?}");
    let left = screen(&written);
    assert!(!left.iter().any(|line| line.contains("pushing")), "{left:#?}");
    let again = left.iter().position(|line| line.contains("; attempt 2 of "));
    assert!(again.is_some(), "what failed has a line of its own: {left:#?}");
    for member in ["db", "net"] {
        let result = format!("{}/acme/provider-acme-{member}:v1.0.0 sha256:", server.host);
        assert!(left.iter().any(|line| line.starts_with(&result)), "{member}: {left:#?}");
    }
}
