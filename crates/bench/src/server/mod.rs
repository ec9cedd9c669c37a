//! One Kubernetes API server, measured from outside.
//!
//! A kubeconfig goes in, numbers come out; the same client and the same work for every server, so that two runs
//! compare servers and nothing else. Scenarios run in the order below: each leaves the server a little fuller than it
//! found it. Memory is read from `/proc` for the processes named with `--pid`.

mod objects;

use super::client::{Client, JSON};
use super::load::{self, Timings};
use super::target::{self, Target};
use super::{Figure, factor, process};
use crate::failure::Failure;
use bytes::Bytes;
use clap::Args;
use http::{Method, StatusCode};
use objects::{collection, definition, object};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NAMESPACE: &str = "bench";
const WIDGETS: &str = "widgets";
/// Objects in a list.
const LIST_OBJECTS: usize = 500;
/// How long a new kind may take to be served.
const SERVED_TIMEOUT: Duration = Duration::from_secs(30);

/// Measure a Kubernetes API server: latency, throughput, memory
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom-bench server --kubeconfig ./plane/kubeconfig --pid 4711   measure one server and its memory
  conformance/run bench                                             measure Transom and a real kube-apiserver

It fills the server with tens of thousands of objects: use a throw-away one.")]
pub(super) struct Options {
    /// The server to measure
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    kubeconfig: PathBuf,

    /// A process of the server, to measure memory; may be repeated
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,

    /// Number of clients in the scenarios with many clients
    #[arg(long, default_value = "32", value_parser = clap::value_parser!(u16).range(1..=1000), value_name = "N")]
    clients: u16,

    /// Send this multiple of the usual number of requests
    #[arg(long, default_value = "1", value_parser = factor, value_name = "FACTOR")]
    scale: f64,

    /// Seconds to wait before memory is read
    #[arg(long, default_value = "5", value_name = "SECONDS")]
    memory_delay: u16,
}

struct Run<'a> {
    target: &'a Arc<Target>,
    options: &'a Options,
    figures: Vec<Figure>,
}

pub(super) async fn run_all(options: &Options) -> Result<Vec<Figure>, Failure> {
    let target = &Arc::new(target::read(&options.kubeconfig)?);
    let mut run = Run { target, options, figures: Vec::new() };
    if !options.pid.is_empty() {
        run.note("idle memory", process::memory(&options.pid)? / process::MB, "MB");
    }
    let mut client = Client::connect(target).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    client.create("/api/v1/namespaces", transom_object::json::encode(&namespace).into()).await?;
    run.reads().await?;
    run.writes().await?;
    run.kinds().await?;
    if !options.pid.is_empty() {
        run.object_memory().await?;
        run.kind_memory().await?;
    }
    Ok(run.figures)
}

impl Run<'_> {
    fn note(&mut self, name: &'static str, value: f64, unit: &'static str) {
        self.figures.push(Figure::new(name, value, unit));
    }

    fn clients(&self) -> usize {
        self.options.clients.into()
    }

    fn scaled(&self, count: usize) -> usize {
        ((count as f64 * self.options.scale) as usize).max(1)
    }

    /// One client reads one object, then everything; then many clients read.
    async fn reads(&mut self) -> Result<(), Failure> {
        let mut client = Client::connect(self.target).await?;
        first_accepted(&mut client, WIDGETS).await?;
        let all = collection(WIDGETS, NAMESPACE);
        for i in 0..LIST_OBJECTS {
            client.create(&all, object(WIDGETS, &format!("read-{i:05}"))).await?;
        }
        let (all, target) = (&all, self.target);
        let one = &format!("{all}/read-00007");
        let get = async |c: &mut Client, _| c.get(one).await.map(drop);
        load::run(target, 1, self.scaled(200), get).await?;
        let alone = load::run(target, 1, self.scaled(3_000), get).await?;
        self.note("get, 1 client, median", alone.percentile(0.5), "ms");
        self.note("get, 1 client, 99 %", alone.percentile(0.99), "ms");
        let many = load::run(target, self.clients(), self.scaled(10_000), get).await?;
        self.note("get, many clients", many.per_second(), "/s");
        let whole = &format!("{all}?limit={LIST_OBJECTS}");
        let list = async |c: &mut Client, _| c.get(whole).await.map(drop);
        load::run(target, 1, self.scaled(5), list).await?;
        let lists = load::run(target, 1, self.scaled(100), list).await?;
        self.note("list of 500, median", lists.percentile(0.5), "ms");
        Ok(())
    }

    /// An apply that changes nothing, by one and by many; then new objects by apply and by create.
    async fn writes(&mut self) -> Result<(), Failure> {
        let all = &collection(WIDGETS, NAMESPACE);
        let (target, clients) = (self.target, self.clients());
        let again = async |c: &mut Client, i: usize| {
            let name = format!("same-{:05}", i % clients);
            c.apply(&format!("{all}/{name}"), object(WIDGETS, &name)).await.map(drop)
        };
        load::run(target, clients, clients, again).await?;
        let alone = load::run(target, 1, self.scaled(1_500), again).await?;
        self.note("apply no change, 1 client, median", alone.percentile(0.5), "ms");
        let many = load::run(target, clients, self.scaled(5_000), again).await?;
        self.note("apply no change, many clients", many.per_second(), "/s");
        let applied = load::run(target, clients, self.scaled(4_000), async |c, i| {
            let name = format!("apply-{i:05}");
            c.apply(&format!("{all}/{name}"), object(WIDGETS, &name)).await.map(drop)
        });
        let applied = applied.await?;
        self.note("apply new, many clients", applied.per_second(), "/s");
        self.note("apply new, many clients, 99 %", applied.percentile(0.99), "ms");
        let created = self.create_many("create", self.scaled(4_000)).await?;
        self.note("create, many clients", created.per_second(), "/s");
        self.note("create, many clients, 99 %", created.percentile(0.99), "ms");
        Ok(())
    }

    async fn create_many(&self, prefix: &str, count: usize) -> Result<Timings, Failure> {
        let all = &collection(WIDGETS, NAMESPACE);
        load::run(self.target, self.clients(), count, async |c, i| {
            c.create(all, object(WIDGETS, &format!("{prefix}-{i:05}"))).await.map(drop)
        })
        .await
    }

    /// From asking for a new kind to its first object.
    async fn kinds(&mut self) -> Result<(), Failure> {
        let mut client = Client::connect(self.target).await?;
        let mut each = Vec::new();
        for i in 0..self.scaled(20) {
            each.push(first_accepted(&mut client, &format!("kind{i:04}s")).await?);
        }
        let total = each.iter().sum();
        self.note("new kind to first object, median", Timings::new(each, total).percentile(0.5), "ms");
        Ok(())
    }

    async fn object_memory(&mut self) -> Result<(), Failure> {
        let count = self.scaled(10_000);
        let before = self.memory_after_delay().await?;
        self.create_many("kept", count).await?;
        let grown = self.memory_after_delay().await? - before;
        self.note("memory per 10,000 objects", grown * 10_000.0 / count as f64, "MB");
        Ok(())
    }

    async fn kind_memory(&mut self) -> Result<(), Failure> {
        let count = self.scaled(100);
        let before = self.memory_after_delay().await?;
        let mut client = Client::connect(self.target).await?;
        for i in 0..count {
            first_accepted(&mut client, &format!("more{i:04}s")).await?;
        }
        let grown = self.memory_after_delay().await? - before;
        self.note("memory per kind", grown / count as f64, "MB");
        Ok(())
    }

    /// Memory in megabytes, once the server has had a moment to put things away.
    async fn memory_after_delay(&self) -> Result<f64, Failure> {
        tokio::time::sleep(Duration::from_secs(self.options.memory_delay.into())).await;
        Ok(process::memory(&self.options.pid)? / process::MB)
    }
}

/// Defines a kind and creates its first object, asking again until the server serves the kind.
async fn first_accepted(client: &mut Client, plural: &str) -> Result<Duration, Failure> {
    let (definition, body): (Bytes, Bytes) = (definition(plural), object(plural, "first"));
    let all = collection(plural, NAMESPACE);
    let began = Instant::now();
    client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await?;
    while began.elapsed() < SERVED_TIMEOUT {
        let (status, _) = client.ask(Method::POST, &all, JSON, body.clone()).await?;
        if status == StatusCode::CREATED {
            return Ok(began.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Err(Failure::new(format!("{plural} is not served {} s after its definition", SERVED_TIMEOUT.as_secs())))
}
