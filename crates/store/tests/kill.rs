//! A process that writes to a store is killed, again and again: what it acknowledged must be there.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use transom_object::Header;
use transom_store::{
    Durability, Expect, HistoryLimits, Key, LogLimits, OpenError, Options, Put, Store, Write, WriteOp,
};

const DIRECTORY: &str = "TRANSOM_STORE_KILL_TEST";
const NAME: &str = "every_acknowledged_write_survives_kill";
const KILLS: u64 = 60;
const WRITERS: usize = 8;

/// Small enough that kills also hit the beginning of segments and the writing of snapshots.
fn options() -> Options {
    Options {
        history: HistoryLimits { max_events: 200, ..HistoryLimits::default() },
        log: LogLimits { segment_bytes: 20_000, compact_bytes: 20_000 },
        ..Options::default()
    }
}

fn key(writer: usize) -> Key {
    Key::new("counters", "ns", &writer.to_string())
}

fn put(count: u64) -> WriteOp {
    let body = format!(r#"{{"rv":"","count":{count},"padding":"{}"}}"#, "x".repeat(300)).into_bytes();
    WriteOp::Put(Put { body, revision_at: 7, header: Header::default() })
}

fn count(body: &[u8]) -> u64 {
    let text = std::str::from_utf8(body).unwrap();
    text.split(r#""count":"#).nth(1).unwrap().split(',').next().unwrap().parse().unwrap()
}

/// The process that is killed: every writer counts its object up and says so once it is acknowledged.
fn write_until_killed(dir: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(dir);
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            writers.spawn(count_up(store.clone(), writer));
        }
        writers.join_all().await;
    });
}

async fn count_up(store: Store, writer: usize) {
    let durability = if writer % 4 == 3 { Durability::Relaxed } else { Durability::Strict };
    loop {
        let now = store.get(&key(writer));
        let next = now.as_ref().map_or(0, |entry| count(&entry.body)) + 1;
        let expect = now.map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
        let write = Write { key: key(writer), expect, op: put(next), durability };
        let revision = store.commit(write).await.unwrap().revision;
        // One call per line, so that a kill leaves whole lines and perhaps a part of one.
        let line = format!("\nack {writer} {next} {revision}\n");
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    }
}

/// Starts the writing process, kills it after a while, and gives what it acknowledged: writer, count, revision.
fn acknowledged_until_killed(dir: &Path, life: Duration) -> Vec<(usize, u64, u64)> {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(DIRECTORY, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).split(b'\n').map(Result::unwrap);
    let mut acknowledged = Vec::new();
    let mut deadline = None;
    let mut killed = false;
    for line in lines {
        let line = String::from_utf8(line).unwrap();
        if let ["ack", writer, count, revision] = line.split(' ').collect::<Vec<_>>()[..] {
            acknowledged.push((writer.parse().unwrap(), count.parse().unwrap(), revision.parse().unwrap()));
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + life);
            if !killed && Instant::now() >= deadline {
                process.kill().unwrap();
                killed = true;
            }
        }
    }
    assert!(killed, "the writing process ended by itself: {}", process.wait().unwrap());
    process.wait().unwrap();
    acknowledged
}

#[test]
fn every_acknowledged_write_survives_kill() {
    if let Some(dir) = std::env::var_os(DIRECTORY) {
        return write_until_killed(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
    let mut newest = 0;
    let mut total = 0;
    for round in 0..KILLS {
        // Spread over early and late moments, differently every round.
        let acknowledged =
            acknowledged_until_killed(dir.path(), Duration::from_micros(round * 7919 % 60_000));
        total += acknowledged.len();
        let first = acknowledged.iter().map(|(_, _, revision)| *revision).min().unwrap();
        assert!(first > newest, "round {round}: revision {first} was given out again after {newest}");
        for (writer, count, revision) in acknowledged {
            let known = counts.entry(writer).or_default();
            assert!(count > *known, "round {round}: writer {writer} counted {count} after {known}");
            *known = count;
            newest = newest.max(revision);
        }
        check(dir.path(), round, &mut counts, &mut newest);
    }
    println!("{total} acknowledged writes over {KILLS} kills");
}

/// Opens what the killed process left. Reading it this way writes nothing, so the next process finds it as is.
fn check(dir: &Path, round: u64, counts: &mut BTreeMap<usize, u64>, newest: &mut u64) {
    let store = open(dir);
    let found = store.snapshot("counters");
    assert!(found.revision >= *newest, "round {round}: {} < {newest}", found.revision);
    for (writer, count) in &*counts {
        let entry = found.objects.get(&key(*writer).object);
        let entry = entry.unwrap_or_else(|| panic!("round {round}: writer {writer} is gone"));
        let stored = self::count(&entry.body);
        assert!(
            stored >= *count,
            "round {round}: writer {writer} had {count} acknowledged, {stored} is there"
        );
    }
    // A write may be durable without its acknowledgement having been seen.
    for (object, entry) in &found.objects {
        counts.insert(object.name.parse().unwrap(), self::count(&entry.body));
        *newest = (*newest).max(entry.revision);
    }
    // The history leads to the state without a hole: counts go up by one.
    let oldest = (*newest).saturating_sub(100).max(1);
    if let Ok(mut watch) = store.watch("counters", oldest) {
        let mut last = oldest;
        while let Some(event) = watch.try_next() {
            assert!(event.revision > last);
            last = event.revision;
            let (old, new) =
                (event.old.as_ref().map_or(0, |old| self::count(&old.body)), event.new.as_ref().unwrap());
            assert_eq!(self::count(&new.body), old + 1);
        }
        assert_eq!(last.max(*newest), *newest);
    }
}

fn open(dir: &Path) -> Store {
    loop {
        match Store::open(dir, options()) {
            Ok(store) => return store,
            // The system takes a moment to release the lock of a killed process.
            Err(OpenError::Locked { .. }) => std::thread::sleep(Duration::from_millis(2)),
            Err(other) => panic!("{other}"),
        }
    }
}
