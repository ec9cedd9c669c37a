//! How `transom up` starts, refuses to start and stops, whom it lets in, and what it leaves on disk; on the real binary, with
//! damaged and full disks, too.

mod access;
mod auditing;
mod backups;
mod certificates;
mod damage;
mod issuer;
mod leftovers;
mod output;
mod stopping;
mod users;

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use transom_testkit::process::{Home, Plane, Refused, transom};

/// The plane must not start; it says why and what to do in one line, and nothing else.
fn refused(home: &Home, args: &[&str]) -> String {
    let Err(Refused { status, stderr }) = Plane::try_start(home, args) else {
        unreachable!("it started with {args:?}");
    };
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("error: "), "{stderr}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("the file is there").permissions().mode() & 0o777
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_port_in_use_is_named_with_a_remedy() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = refused(&Home::new(), &["--listen", &address]);
    assert!(said.contains(&address) && said.contains("--listen"), "{said}");
}

#[test]
fn a_data_directory_has_one_plane_at_a_time() {
    let home = Home::new();
    let first = Plane::start(&home);
    let said = refused(&home, &[]);
    assert!(said.contains(&format!("in use by another process ({})", first.pid())), "{said}");
    assert!(said.contains("--data-dir"), "{said}");
    drop(first);
    drop(Plane::start(&home));
}

#[test]
fn a_data_directory_that_cannot_be_written_is_named_with_a_remedy() {
    let home = Home::new();
    let file = home.root().join("file");
    std::fs::write(&file, "not a directory").unwrap();
    for place in [file.join("data"), file, PathBuf::from("/proc/transom")] {
        let place = place.to_str().unwrap();
        let said = refused(&home, &["--data-dir", place]);
        assert!(said.contains(place) && said.contains("--data-dir"), "{said}");
    }
}

#[test]
fn wrong_flags_are_explained() {
    for (args, hint) in [
        (&["up", "--lisen", "127.0.0.1:0"][..], "--listen"),
        (&["up", "--listen", "nowhere"], "write it like 127.0.0.1:6443"),
        (&["up", "--listen", "::1:6443"], "[::1]:6443"),
        (&["up", "--history-window", "soon"], "write it like 90s, 5m or 1h30m"),
        (&["up", "--history-window=-5m"], "negative"),
        (&["upp"], "up"),
        (&["db", "mend"], "--help"),
        (&["db", "verify", "--data-dir", "/nowhere/at/all"], "/nowhere/at/all"),
    ] {
        let output = transom(args).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(1 | 80)), "{args:?}: {:?}", output.status);
        assert!(stderr.starts_with("error: ") && stderr.contains(hint), "{args:?}: {stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("backtrace"), "{args:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{args:?}: errors go to stderr");
    }
}

#[test]
fn a_name_that_fits_no_certificate_is_refused() {
    let said = refused(&Home::new(), &["--tls-san", "not a name"]);
    assert!(said.contains("--tls-san \"not a name\""), "{said}");
}

#[test]
fn secrets_are_for_the_owner_alone() {
    let home = Home::new();
    let plane = Plane::start(&home);
    assert_eq!(mode(&home.data()), 0o700);
    assert_eq!(mode(&home.data().join("kubeconfig")), 0o600);
    let pki = home.data().join("pki");
    for name in names_in(&pki) {
        assert_eq!(mode(&pki.join(&name)), 0o600, "{name}");
    }
    for name in names_in(&home.data().join("store")) {
        assert_eq!(mode(&home.data().join("store").join(&name)), 0o600, "{name}");
    }
    drop(plane);
}

#[tokio::test]
async fn a_plane_in_memory_leaves_nothing_but_its_kubeconfig() {
    let home = Home::new();
    let mut plane = Plane::start_with(&home, &["--in-memory"]);
    let reply = plane.client().await.post(CONFIG_MAPS, &config_map("fleeting")).await.unwrap();
    assert_eq!(reply.status, 201, "{}", reply.text());
    assert_eq!(names_in(&home.data()), ["kubeconfig"]);
    plane.signal(rustix::process::Signal::TERM);
    assert!(plane.ended_within(transom_testkit::process::WAIT_LIMIT).await.is_some_and(|s| s.success()));
    assert_eq!(names_in(&home.data()), ["kubeconfig"]);

    let plane = Plane::start_with(&home, &["--in-memory"]);
    let reply = plane.client().await.get(&format!("{CONFIG_MAPS}/fleeting")).await.unwrap();
    reply.assert_status(404, "nothing survives");
}

#[tokio::test]
async fn a_kubeconfig_elsewhere_is_all_that_a_plane_in_memory_writes() {
    let home = Home::new();
    let file = home.root().join("config");
    let plane = Plane::start_with(&home, &["--in-memory", "--kubeconfig", file.to_str().unwrap()]);
    assert_eq!(mode(&file), 0o600);
    assert!(!home.data().exists());
    assert_eq!(plane.client().await.get("/api/v1/namespaces/default").await.unwrap().status, 200);
}

/// Huge pages count as resident as soon as one byte of them is used.
#[test]
#[cfg(target_os = "linux")]
fn a_plane_uses_no_huge_pages() {
    let home = Home::new();
    let plane = Plane::start(&home);
    let memory = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", plane.pid())).expect("it runs");
    let huge = memory.lines().find(|line| line.starts_with("AnonHugePages:")).expect("a line of Linux");
    assert_eq!(huge.split_whitespace().nth(1), Some("0"), "{memory}");
}
