//! What a plane leaves behind, and what it leaves alone.

use super::{CONFIG_MAPS, config_map, names_in, refused};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use transom_testkit::process::{Home, Plane, WAIT_LIMIT, transom};

fn taken() -> (std::net::TcpListener, String) {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("its address").to_string();
    (taken, address)
}

#[tokio::test]
async fn a_start_that_fails_leaves_no_new_data_directory() {
    let home = Home::new();
    let (_socket, address) = taken();
    refused(&home, &["--listen", &address]);
    assert!(!home.data().exists());
    refused(&home, &["--tls-san", "not a name"]);
    assert!(!home.data().exists());
    let nested = home.root().join("a/b/c");
    refused(&home, &["--listen", &address, "--data-dir", nested.to_str().unwrap()]);
    assert!(!home.root().join("a").exists());
    // What others put beside it stays.
    std::fs::create_dir(home.root().join("a")).unwrap();
    refused(&home, &["--listen", &address, "--data-dir", nested.to_str().unwrap()]);
    assert!(home.root().join("a").exists() && names_in(&home.root().join("a")).is_empty());
}

#[tokio::test]
async fn a_start_that_fails_leaves_data_alone() {
    let home = Home::new();
    let mut plane = Plane::start(&home);
    let reply = plane.client().await.post(CONFIG_MAPS, &config_map("kept")).await.unwrap();
    assert_eq!(reply.status, 201, "{}", reply.text());
    refused(&home, &[]);
    plane.kill();
    let (_socket, address) = taken();
    refused(&home, &["--listen", &address]);
    refused(&home, &["--tls-san", "not a name"]);
    // A directory that was made for the plane is not the plane's to remove.
    let made = home.root().join("made");
    std::fs::create_dir(&made).unwrap();
    refused(&home, &["--listen", &address, "--data-dir", made.to_str().unwrap()]);
    assert!(made.exists());
    let plane = Plane::start(&home);
    let kept = plane.client().await.get(&format!("{CONFIG_MAPS}/kept")).await.unwrap();
    assert_eq!(kept.status, 200);
}

/// `transom up --in-memory` without a place of its own.
fn in_memory(home: &Home, listen: &str) -> Command {
    let mut command = transom(&["up", "--api-server-only", "--in-memory", "--listen", listen]);
    command.env("TMPDIR", home.root());
    command
}

fn temporary(home: &Home) -> Vec<String> {
    names_in(home.root()).into_iter().filter(|name| name.starts_with("transom-")).collect()
}

#[tokio::test]
async fn a_plane_in_memory_removes_its_temporary_directory() {
    let home = Home::new();
    let mut plane = Plane::launch(&home, &mut in_memory(&home, "127.0.0.1:0")).unwrap();
    assert_eq!(temporary(&home), [format!("transom-{}", plane.pid())]);
    plane.signal(Signal::TERM);
    assert!(plane.ended_within(WAIT_LIMIT).await.is_some_and(|status| status.success()));
    assert!(temporary(&home).is_empty());
    let (_socket, address) = taken();
    assert!(Plane::launch(&home, &mut in_memory(&home, &address)).is_err());
    assert!(temporary(&home).is_empty());
}

#[tokio::test]
async fn a_kubeconfig_is_written_only_when_it_changes() {
    let home = Home::new();
    let file = home.data().join("kubeconfig");
    let plane = Plane::start(&home);
    let address = plane.access.address.to_string();
    let first = std::fs::read(&file).unwrap();
    drop(plane);
    let plane = Plane::start_with(&home, &["--listen", &address]);
    assert_eq!(std::fs::read(&file).unwrap(), first);
    assert_eq!(plane.client().await.get("/api/v1/namespaces").await.unwrap().status, 200);
    drop(plane);
    // Another address, a file that others may read, and one that is not a kubeconfig are written anew.
    drop(Plane::start(&home));
    let elsewhere = std::fs::read(&file).unwrap();
    assert_ne!(elsewhere, first);
    std::fs::write(&file, &first).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(Plane::start_with(&home, &["--listen", &address]));
    assert_ne!(std::fs::read(&file).unwrap(), first);
    assert_eq!(super::mode(&file), 0o600);
    std::fs::write(&file, "half a").unwrap();
    let plane = Plane::start_with(&home, &["--listen", &address]);
    assert_eq!(plane.client().await.get("/api/v1/namespaces").await.unwrap().status, 200);
    drop(plane);
    // Another authority, whose certificates the old file does not know.
    let before = std::fs::read(&file).unwrap();
    std::fs::remove_dir_all(home.data().join("pki")).unwrap();
    let plane = Plane::start_with(&home, &["--listen", &address]);
    assert_ne!(std::fs::read(&file).unwrap(), before);
    assert_eq!(plane.client().await.get("/api/v1/namespaces").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_name_and_a_port_alone_are_addresses_to_listen_on() {
    for listen in ["localhost:0", ":0"] {
        let home = Home::new();
        let plane = Plane::start_with(&home, &["--listen", listen]);
        assert!(plane.access.address.ip().is_loopback(), "{listen}");
        assert_eq!(plane.client().await.get("/api/v1/namespaces").await.unwrap().status, 200, "{listen}");
    }
    let said = refused(&Home::new(), &["--listen", "no-such-host.invalid:6443"]);
    assert!(said.contains("no-such-host.invalid:6443") && said.contains("--listen"), "{said}");
}
