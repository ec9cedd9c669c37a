//! How many writes a store commits per second, each durable before it is acknowledged.
//!
//! `cargo run --profile dist -p transom-store --example store_bench [DIR [fill|open]]`

#![expect(clippy::print_stdout, reason = "prints its results")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use transom_object::Header;
use transom_store::{Durability, Expect, Key, Options, Put, Store, Write, WriteOp};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const BODY: usize = 2500;
const RUN: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let base = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    match arguments.next() {
        Some(command) if command == "fill" => return fill(&base).await,
        Some(_) => return open(&base),
        None => {}
    }
    let dir = tempfile::tempdir_in(base)?;
    for durability in [Durability::Strict, Durability::Relaxed] {
        for writers in [1, 32, 256] {
            let path = dir.path().join(format!("{durability:?}-{writers}"));
            hammer(&path, writers, durability).await?;
        }
    }
    starting(&dir.path().join("start")).await
}

fn write(key: Key, expect: Expect, durability: Durability) -> Write {
    let mut body = br#"{"metadata":{"resourceVersion":"","#.to_vec();
    let revision_at = 32;
    body.resize(BODY, b'x');
    let header = Header { name: key.object.name.to_string(), ..Header::default() };
    Write { key, expect, op: WriteOp::Put(Put { body, revision_at, header }), durability }
}

async fn hammer(path: &Path, writers: usize, durability: Durability) -> Outcome<()> {
    let store = Store::open(path, Options::default())?;
    let started = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let key = Key::new("widgets.example.org", "default", &format!("w{writer}"));
                let (mut expect, mut latencies) = (Expect::Absent, Vec::new());
                while started.elapsed() < RUN {
                    let before = Instant::now();
                    let done = store.commit(write(key.clone(), expect, durability)).await?;
                    latencies.push(before.elapsed());
                    expect = Expect::Revision(done.revision);
                }
                Outcome::Ok(latencies)
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await??);
    }
    let rate = latencies.len() as f64 / started.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let at = |share: usize| latencies[(latencies.len() - 1) * share / 100];
    println!(
        "{durability:?} {writers:>3} writers: {rate:>8.0} commits/s, p50 {:?}, p99 {:?}",
        at(50),
        at(99)
    );
    store.shutdown().await;
    Ok(())
}

async fn starting(path: &Path) -> Outcome<()> {
    let store = Store::open(path, Options::default())?;
    store.shutdown().await;
    measure_opening(path)?;
    fill(path).await?;
    measure_opening(path)
}

async fn fill(path: &Path) -> Outcome<()> {
    let store = Store::open(path, Options::default())?;
    let tasks: Vec<_> = (0..10_000)
        .map(|index| {
            let store = store.clone();
            let key = Key::new("widgets.example.org", "default", &format!("w{index}"));
            tokio::spawn(async move { store.commit(write(key, Expect::Absent, Durability::Strict)).await })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    store.shutdown().await;
    Ok(())
}

/// In a process of its own, as it would be.
fn measure_opening(path: &Path) -> Outcome<()> {
    for _ in 0..3 {
        std::process::Command::new(std::env::current_exe()?).arg(path).arg("open").status()?;
    }
    Ok(())
}

fn open(path: &Path) -> Outcome<()> {
    let before = Instant::now();
    let store = Store::open(path, Options::default())?;
    let took = before.elapsed();
    let objects = store.snapshot("widgets.example.org").objects.len();
    println!("open, {objects} objects: {took:?}, {}", resident());
    Ok(())
}

fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or("VmRSS: unknown");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
