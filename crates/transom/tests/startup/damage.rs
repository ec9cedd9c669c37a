//! Stores that are damaged, cut short, too new, or out of room.

use super::{CONFIG_MAPS, config_map, refused};
use rustix::process::{Resource, Rlimit, Signal, prlimit};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use transom_object::Header;
use transom_store::{Durability, Expect, HistoryLimits, Key, LogLimits, Put, Store, Write, WriteOp};
use transom_testkit::process::{Client, Home, Plane, WAIT_LIMIT, transom, up};

/// The files of a store with this extension, oldest first.
fn files(home: &Home, extension: &str) -> Vec<PathBuf> {
    let store = home.data().join("store");
    let entries = std::fs::read_dir(store).expect("a store").flatten().map(|e| e.path());
    let mut found: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == extension)).collect();
    found.sort();
    found
}

/// The one segment of a small store.
fn segment(home: &Home) -> PathBuf {
    let mut segments = files(home, "seg");
    assert_eq!(segments.len(), 1, "{segments:?}");
    segments.remove(0)
}

/// A store with config maps `c0` to `c9`, as a killed or a stopped plane leaves it.
async fn filled(kill: bool) -> Home {
    let home = Home::new();
    let mut plane = Plane::start(&home);
    let client = plane.client().await;
    for i in 0..10 {
        let reply = client.post(CONFIG_MAPS, &config_map(&format!("c{i}"))).await.expect("it answers");
        assert_eq!(reply.status, 201, "{}", reply.text());
    }
    if kill {
        plane.kill();
    } else {
        plane.signal(Signal::TERM);
        assert!(plane.ended_within(WAIT_LIMIT).await.is_some_and(|status| status.success()));
    }
    home
}

async fn status_of(plane: &Plane, name: &str) -> u16 {
    plane.client().await.get(&format!("{CONFIG_MAPS}/{name}")).await.expect("it answers").status
}

fn db(home: &Home, command: &str) -> (Output, String) {
    let output = transom(&["db", command, "--data-dir"]).arg(home.data()).output().expect("the binary runs");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("panicked"), "{said}");
    (output, said)
}

#[tokio::test]
async fn damage_in_the_middle_is_refused_until_repaired() {
    let home = filled(false).await;
    let path = segment(&home);
    let mut bytes = std::fs::read(&path).unwrap();
    // Among the ConfigMaps: what the server makes at its start is before them.
    let middle = bytes.windows(4).position(|text| text == b"\"c5\"").unwrap();
    bytes[middle] ^= 0x40;
    std::fs::write(&path, &bytes).unwrap();

    let said = refused(&home, &[]);
    assert!(said.contains("is damaged at byte"), "{said}");
    assert!(said.contains("transom db repair --data-dir"), "{said}");
    let (output, said) = db(&home, "verify");
    assert!(!output.status.success() && said.contains("damage: "), "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "verifying changes nothing");

    let (output, said) = db(&home, "repair");
    assert!(output.status.success() && said.contains("repaired"), "{said}");
    let (output, said) = db(&home, "verify");
    assert!(output.status.success() && said.contains("the store opens"), "{said}");
    let plane = Plane::start(&home);
    assert_eq!(status_of(&plane, "c0").await, 200, "what came before the damage is kept");
    assert_eq!(status_of(&plane, "c9").await, 404, "what came after it is not");
    let reply = plane.client().await.post(CONFIG_MAPS, &config_map("c9")).await.unwrap();
    assert_eq!(reply.status, 201, "{}", reply.text());
}

/// A store of so many small segments that it has snapshots.
async fn with_snapshots() -> Home {
    let home = Home::new();
    let options = transom_store::Options {
        history: HistoryLimits { max_events: 4, ..HistoryLimits::default() },
        log: LogLimits { segment_bytes: 400, compact_bytes: 400 },
        ..transom_store::Options::default()
    };
    let store = Store::open(&home.data().join("store"), options).expect("a new store");
    let head = r#"{"metadata":{"resourceVersion":""#;
    let mut expect = Expect::Absent;
    for _ in 0..1_000 {
        let body = format!(r#"{head}"}}}}"#).into_bytes();
        let revision_at = u32::try_from(head.len()).expect("a short text");
        let op = WriteOp::Put(Put { body, revision_at, header: Header::default() });
        let key = Key::new("widgets.example.org", "ns", "a");
        let committed =
            store.commit(Write { key, expect, op, durability: Durability::Strict }).await.expect("a commit");
        expect = Expect::Revision(committed.revision);
        if files(&home, "snap").len() > 1 {
            break;
        }
    }
    store.shutdown().await;
    home
}

#[tokio::test]
async fn damage_that_loses_nothing_fails_a_verification_and_is_repaired() {
    for kind in ["snap", "seg"] {
        let home = with_snapshots().await;
        let (output, said) = db(&home, "verify");
        assert!(output.status.success() && said.contains("the store opens"), "{said}");
        // The newest snapshot, or the oldest segment, which a snapshot covers.
        let mut files = files(&home, kind);
        let damaged = if kind == "snap" { files.pop().unwrap() } else { files.remove(0) };
        let mut bytes = std::fs::read(&damaged).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&damaged, &bytes).unwrap();
        let (output, said) = db(&home, "verify");
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("damage: ") && said.contains("opens in spite of the damage"), "{said}");
        let (output, said) = db(&home, "repair");
        assert!(output.status.success() && said.contains("repaired") && said.contains("1 objects"), "{said}");
        let (output, said) = db(&home, "verify");
        assert!(output.status.success() && !said.contains("damage"), "{said}");
        let (output, said) = db(&home, "repair");
        assert!(output.status.success() && !said.contains("repaired"), "{said}");
    }
}

#[tokio::test]
async fn the_command_that_the_refusal_names_works_as_it_stands() {
    let home = filled(false).await;
    let path = segment(&home);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() * 3 / 4;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let said = refused(&home, &[]);
    let command = said.split('`').nth(1).unwrap();
    let args: Vec<&str> = command.split(' ').skip(1).collect();
    let output = transom(&args).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    drop(Plane::start(&home));
}

#[tokio::test]
async fn a_tail_that_a_crash_cut_short_is_dropped() {
    let home = filled(true).await;
    let path = segment(&home);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
    let (output, said) = db(&home, "verify");
    assert!(output.status.success() && said.contains("torn bytes"), "{said}");
    let mut plane = Plane::start(&home);
    assert_eq!(status_of(&plane, "c8").await, 200);
    plane.kill();

    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"\xFFTF\xFEhalf a frame");
    std::fs::write(&path, &bytes).unwrap();
    let plane = Plane::start(&home);
    assert_eq!(status_of(&plane, "c8").await, 200);
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_refused_and_left_alone() {
    let home = filled(false).await;
    let path = segment(&home);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8..12].copy_from_slice(&99u32.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..40]);
    bytes[40..44].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let said = refused(&home, &[]);
    assert!(said.contains("newer version (format 99"), "{said}");
    assert!(said.contains("run the version of transom that wrote it"), "{said}");
    let (output, said) = db(&home, "repair");
    assert!(!output.status.success() && said.contains("newer version"), "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

/// A limit on the size of files stands for a full disk: the kernel writes what still fits and refuses the rest.
fn limit_files(plane: &Plane, bytes: Option<u64>) {
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(Some(plane.rustix_pid()), Resource::Fsize, limit).expect("the limit can be changed");
}

/// A plane whose files can be limited, after `first` was run in its shell. Past the limit the kernel also sends a
/// signal, which ends the process unless it is ignored.
fn limitable(home: &Home, first: &str, args: &[&str]) -> Plane {
    let plane = up(home, args);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("trap '' XFSZ; {first}; exec \"$@\""), "sh"]);
    Plane::launch(home, shell.arg(plane.get_program()).args(plane.get_args())).expect("the plane starts")
}

/// Waits until `/readyz` answers with this code, and gives what it says.
async fn until_ready_is(client: &Client, code: u16) -> String {
    let started = Instant::now();
    loop {
        let reply = client.get("/readyz?verbose").await.expect("it answers");
        if reply.status == code {
            return reply.text();
        }
        assert!(started.elapsed() < WAIT_LIMIT, "{}", reply.text());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_plane_that_was_killed_on_a_full_disk_starts_on_it() {
    let home = Home::new();
    let mut plane = Plane::start_with(&home, &["--with-controllers"]);
    let address = plane.access.address.to_string();
    let client = plane.client().await;
    until_ready_is(&client, 200).await;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("before")).await.unwrap().status, 201);
    plane.kill();
    // No file can be written, not even that of the log.
    let plane = limitable(&home, "ulimit -S -f 0", &["--with-controllers", "--listen", &address]);
    let client = plane.client().await;
    assert_eq!(client.get(&format!("{CONFIG_MAPS}/before")).await.unwrap().status, 200);
    let refused = client.delete(&format!("{CONFIG_MAPS}/before")).await.unwrap();
    assert_eq!(refused.status, 500, "{}", refused.text());
    let ready = until_ready_is(&client, 500).await;
    assert!(ready.contains("[-]store failed: writes are refused: "), "{ready}");
    assert!(!super::names_in(&home.data()).iter().any(|name| name.contains("tmp")));
    limit_files(&plane, None);
    until_ready_is(&client, 200).await;
    let deleted = client.delete(&format!("{CONFIG_MAPS}/before")).await.unwrap();
    assert_eq!(deleted.status, 200, "{}", deleted.text());
}

#[test]
fn a_kubeconfig_that_cannot_be_written_leaves_nothing_half_done() {
    let home = Home::new();
    drop(Plane::start(&home));
    let command = up(&home, &[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -S -f 0; exec \"$@\" 2>&1", "sh"]);
    let output = shell.arg(command.get_program()).args(command.get_args()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write the kubeconfig"), "{said}");
    assert!(!super::names_in(&home.data()).iter().any(|name| name.contains("tmp")));
}

#[tokio::test]
async fn a_full_disk_refuses_writes_answers_reads_and_recovers() {
    let home = Home::new();
    let mut plane = limitable(&home, ":", &[]);
    let client = plane.client().await;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("before")).await.unwrap().status, 201);

    let len = std::fs::metadata(segment(&home)).unwrap().len();
    for room in [20, 0] {
        limit_files(&plane, Some(len + room));
        for i in 0..5 {
            let reply = client.post(CONFIG_MAPS, &config_map(&format!("full{i}"))).await.unwrap();
            assert!((500..600).contains(&reply.status), "{}", reply.text());
            reply.assert_status(reply.status, "a write without room");
            assert!(reply.text().contains("reads go on"), "{}", reply.text());
        }
        let refused = client.delete(&format!("{CONFIG_MAPS}/before")).await.unwrap();
        refused.assert_status(refused.status, "a delete without room");
        assert!(refused.status >= 500, "{}", refused.text());
        let ready = client.get("/readyz?verbose").await.unwrap();
        assert_eq!(ready.status, 500);
        assert!(ready.text().contains("[-]store failed: writes are refused: "), "{}", ready.text());
    }
    assert_eq!(client.get(&format!("{CONFIG_MAPS}/before")).await.unwrap().status, 200);
    assert_eq!(client.get(&format!("{CONFIG_MAPS}/full0")).await.unwrap().status, 404);
    assert_eq!(client.get("/livez").await.unwrap().status, 200);

    limit_files(&plane, None);
    until_ready_is(&client, 200).await;
    let reply = client.post(CONFIG_MAPS, &config_map("after")).await.unwrap();
    assert_eq!(reply.status, 201, "{}", reply.text());
    plane.kill();
    let plane = Plane::start(&home);
    for (name, status) in [("before", 200), ("full0", 404), ("after", 200)] {
        assert_eq!(status_of(&plane, name).await, status, "{name}");
    }
    home.assert_no_panic();
}
