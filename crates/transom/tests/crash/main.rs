//! Killed with SIGKILL at random moments under load, start-up included, again and again: every acknowledged
//! write is there after the restart, no revision goes back, and watches resume without a gap.
//!
//! `TRANSOM_CRASH_ROUNDS` sets the number of kills (40 by default), `TRANSOM_CRASH_SEED` the sequence (1 by default).

mod definitions;
mod leases;
mod ledger;
mod watching;

use definitions::{DEFINITIONS, Definition, definition};
use leases::Lease;
use ledger::{Kind, Ledger, NAMESPACE, Step};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use transom_testkit::process::{Client, Gone, Home, Plane, WAIT_LIMIT, transom, up};
use transom_testkit::rng::Rng;
use watching::Watching;

/// Each writes objects of its own, so it knows what must be there.
const WRITERS: usize = 4;
const OBJECTS_EACH: usize = 6;

/// Everything the clients know, between two lives of the server.
struct World {
    home: Home,
    rng: Rng,
    writers: Vec<Vec<Ledger>>,
    definitions: Vec<Definition>,
    lease: Lease,
    watches: [(Kind, Watching); 2],
    /// The newest revision in any response.
    highest: Arc<AtomicU64>,
    /// The newest revision that is known to be durable.
    durable: Arc<AtomicU64>,
    numbers: Arc<AtomicU64>,
    kills: usize,
    acknowledged: u64,
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_and_watches_resume_without_a_gap() {
    let number = |key: &str| std::env::var(key).ok().and_then(|v| v.parse::<u64>().ok());
    let rounds = number("TRANSOM_CRASH_ROUNDS").unwrap_or(40) as usize;
    let seed = number("TRANSOM_CRASH_SEED").unwrap_or_default().max(1);
    println!("seed {seed}");
    let mut world = World::create(seed).await;
    while world.kills < rounds {
        world.live_and_die().await;
    }
    println!("{} kills, {} acknowledged writes", world.kills, world.acknowledged);
    assert!(world.acknowledged > rounds as u64 * 5, "the load is too small: {}", world.acknowledged);

    let mut plane = Plane::start(&world.home);
    world.census(&plane.client().await).await.expect("the server is up");
    plane.signal(rustix::process::Signal::TERM);
    assert!(plane.ended_within(WAIT_LIMIT).await.is_some_and(|status| status.success()));
    let verified = transom(&["db", "verify", "--data-dir"]).arg(world.home.data()).status();
    assert!(verified.expect("the binary runs").success(), "db verify finds damage");
    world.home.assert_no_panic();
}

impl World {
    /// A first life in peace: a namespace, a custom kind, and the revision at which the watches begin.
    async fn create(seed: u64) -> Self {
        let home = Home::new();
        let mut plane = Plane::start(&home);
        let client = plane.client().await;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        for (path, object) in
            [("/api/v1/namespaces", &namespace), (DEFINITIONS, &definition("gadgets", "Gadget"))]
        {
            let reply = client.post(path, object).await.expect("the server is up");
            assert_eq!(reply.status, 201, "{}", reply.text());
        }
        let after = client.get("/api/v1/namespaces").await.expect("the server is up").revision();
        plane.kill();
        let kinds = [Kind::Plain, Kind::Held, Kind::Custom];
        let ledger = |w: usize, i: usize| Ledger::new(kinds[i % kinds.len()], format!("w{w}-{i}"));
        Self {
            home,
            rng: Rng::new(seed),
            writers: (0..WRITERS).map(|w| (0..OBJECTS_EACH).map(|i| ledger(w, i)).collect()).collect(),
            definitions: (0..3).map(Definition::new).collect(),
            lease: Lease::default(),
            watches: [Kind::Plain, Kind::Custom].map(|k| (k, Watching::new(Ledger::collection(k), after))),
            highest: Arc::new(AtomicU64::new(after)),
            durable: Arc::default(),
            numbers: Arc::new(AtomicU64::new(1)),
            kills: 0,
            acknowledged: 0,
        }
    }

    async fn live_and_die(&mut self) {
        if self.rng.below(5) == 0 {
            self.die_while_starting();
        }
        let mut plane = Plane::start(&self.home);
        let client = plane.client().await;
        let watching: Vec<_> = self.watches.iter().map(|(_, w)| w.resume(client.clone())).collect();
        self.census(&client).await.expect("the server is up");
        self.compare_watches().await;
        let load = self.load(&plane).await;
        tokio::time::sleep(Duration::from_micros(self.rng.below(120_000))).await;
        plane.kill();
        self.kills += 1;
        self.collect(load).await;
        for task in watching {
            task.await.expect("the watch is right");
        }
        for (_, watch) in &self.watches {
            self.highest.fetch_max(watch.last(), Ordering::Relaxed);
        }
    }

    fn die_while_starting(&mut self) {
        let mut child = up(&self.home, &[])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("the binary runs");
        std::thread::sleep(Duration::from_micros(self.rng.below(60_000)));
        child.kill().expect("the process can be killed");
        child.wait().expect("the process can be waited for");
        self.kills += 1;
    }

    /// Everything is compared with what was acknowledged.
    async fn census(&mut self, client: &Client) -> Result<(), Gone> {
        let revision = client.get("/api/v1/namespaces").await?.revision();
        let highest = self.highest.fetch_max(revision, Ordering::Relaxed);
        assert!(revision >= highest, "the store went back from revision {highest} to {revision}");
        for ledger in self.writers.iter_mut().flatten() {
            ledger.compare_after_restart(&client.get(&ledger.path()).await?);
        }
        for definition in &mut self.definitions {
            definition.compare_after_restart(client).await?;
        }
        self.lease.compare_after_restart(client, self.durable.load(Ordering::Relaxed)).await
    }

    /// Waits until the watches have caught up; then they have shown what happened, each change once, in order.
    async fn compare_watches(&mut self) {
        for (kind, watch) in &self.watches {
            let mut mine: Vec<&mut Ledger> = self.writers.iter_mut().flatten().collect();
            mine.retain(|l| Ledger::collection(l.kind) == Ledger::collection(*kind));
            let started = Instant::now();
            while started.elapsed() < WAIT_LIMIT
                && !watch.has_caught_up(&mine.iter().map(|l| &**l).collect::<Vec<_>>())
            {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            for ledger in mine {
                let (seen, happened) = (watch.take(&ledger.name), std::mem::take(&mut ledger.changes));
                assert_eq!(seen, happened, "what the watch saw of {} and what happened to it", ledger.name);
            }
        }
    }

    async fn load(&mut self, plane: &Plane) -> Load {
        let mut writers = Vec::new();
        for ledgers in self.writers.drain(..) {
            let writer = Writer {
                client: plane.client().await,
                rng: Rng::new(self.rng.next_u64() | 1),
                numbers: Arc::clone(&self.numbers),
                highest: Arc::clone(&self.highest),
                durable: Arc::clone(&self.durable),
                floor: self.highest.load(Ordering::Relaxed),
            };
            writers.push(tokio::spawn(writer.write(ledgers)));
        }
        let client = plane.client().await;
        let mut definitions = std::mem::take(&mut self.definitions);
        let (sender, mut lease) = (client.clone(), std::mem::take(&mut self.lease));
        let highest = Arc::clone(&self.highest);
        Load {
            writers,
            definitions: tokio::spawn(async move {
                let mut turn = 0;
                let among = definitions.len();
                while definitions[turn % among].step(&client).await.is_ok() {
                    turn += 1;
                }
                definitions
            }),
            lease: tokio::spawn(async move {
                while let Ok(revision) = lease.renew(&sender).await {
                    highest.fetch_max(revision, Ordering::Relaxed);
                }
                lease
            }),
        }
    }

    async fn collect(&mut self, load: Load) {
        for writer in load.writers {
            let (ledgers, acknowledged) = writer.await.expect("the writer was answered rightly");
            self.writers.push(ledgers);
            self.acknowledged += acknowledged;
        }
        self.definitions = load.definitions.await.expect("definitions were answered rightly");
        self.lease = load.lease.await.expect("the lease was answered rightly");
    }
}

struct Load {
    writers: Vec<tokio::task::JoinHandle<(Vec<Ledger>, u64)>>,
    definitions: tokio::task::JoinHandle<Vec<Definition>>,
    lease: tokio::task::JoinHandle<Lease>,
}

struct Writer {
    client: Client,
    rng: Rng,
    numbers: Arc<AtomicU64>,
    highest: Arc<AtomicU64>,
    durable: Arc<AtomicU64>,
    /// What was known when this life began; new revisions are newer.
    floor: u64,
}

impl Writer {
    /// Writes until the server is gone; returns the objects' ledgers and how many writes were acknowledged.
    async fn write(mut self, mut ledgers: Vec<Ledger>) -> (Vec<Ledger>, u64) {
        let mut acknowledged = 0;
        let among = ledgers.len() as u64;
        loop {
            let choice = self.rng.next_u64() >> 8;
            let ledger = &mut ledgers[(choice % among) as usize];
            let step = ledger.plan(self.numbers.fetch_add(1, Ordering::Relaxed), choice >> 16);
            let (path, collection) = (ledger.path(), Ledger::collection(ledger.kind));
            let answer = match step {
                Step::Create(n) => self.client.post(&collection, &ledger.object(n)).await,
                Step::Update(n) => self.client.merge(&path, &ledger.change(n)).await,
                Step::Delete => self.client.delete(&path).await,
                Step::Release => self.client.merge(&path, &json!({"metadata": {"finalizers": null}})).await,
            };
            let Ok(reply) = answer else { return (ledgers, acknowledged) };
            ledger.acknowledged(&reply);
            acknowledged += 1;
            let revision = matches!(step, Step::Create(_) | Step::Update(_)).then(|| reply.revision());
            if let Some(revision) = revision {
                assert!(revision > self.floor, "{revision} was given out after {}", self.floor);
                self.highest.fetch_max(revision, Ordering::Relaxed);
                self.durable.fetch_max(revision, Ordering::Relaxed);
            }
        }
    }
}
