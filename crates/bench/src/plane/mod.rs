//! A whole control plane, measured by what its users wait for.
//!
//! The plane is `transom up` on a disk, in a process of its own; users are one connection that writes and one that
//! watches. Every write is durable before it is acknowledged, as always.

mod platform;
pub(super) mod running;

use super::client::{Client, Watch};
use super::load::{self, Timings};
use super::{Figure, factor};
use crate::failure::Failure;
use clap::Args;
use http::{Method, StatusCode};
use platform::{CHILDREN, is_ready, parts, stack, stacks};
use running::Running;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Nothing that is waited for takes longer, or the measurement is of something else.
const PATIENCE: Duration = Duration::from_secs(30);
/// Clients of a burst.
const CLIENTS: usize = 32;
/// Reconciles over which the cost of one is measured.
const TOUCHES: usize = 1_000;

/// Measure a whole control plane: how soon composite resources are ready, what they cost, how soon drift is reverted
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom-bench plane                   start a throw-away plane, measure it, stop it
  transom-bench plane --large 100000    also compare the cost of a reconcile among 100,000 composite resources")]
pub(super) struct Options {
    /// An empty directory on the disk to measure [default: a new one for temporary files]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Send this multiple of the usual number of requests
    #[arg(long, default_value = "1", value_parser = factor, value_name = "FACTOR")]
    scale: f64,

    /// Seconds to measure the idle plane
    #[arg(long, default_value = "60", value_name = "SECONDS")]
    idle: u16,

    /// Total number of composite resources at the end, to see whether each costs more among many
    #[arg(long, default_value = "0", value_name = "N")]
    large: usize,
}

struct Run<'a> {
    transom: &'a Path,
    plane: Running,
    options: &'a Options,
    figures: Vec<Figure>,
    /// How many composite resources there are; they are numbered.
    made: usize,
}

pub(super) async fn run_all(transom: &Path, options: &Options) -> Result<Vec<Figure>, Failure> {
    let temporary = std::env::temp_dir().join(format!("transom-bench-plane-{}", std::process::id()));
    let data_dir = options.data_dir.as_deref().unwrap_or(&temporary);
    let figures = measure(transom, options, data_dir).await;
    if options.data_dir.is_none() {
        let _ = std::fs::remove_dir_all(&temporary);
    }
    figures
}

async fn measure(transom: &Path, options: &Options, data_dir: &Path) -> Result<Vec<Figure>, Failure> {
    let began = Instant::now();
    let plane = Running::start(transom, data_dir)?;
    let mut run = Run { transom, plane, options, figures: Vec::new(), made: 0 };
    run.note("start to serving", millis(began.elapsed()), "ms");
    run.note("memory, nothing defined", run.plane.memory()?, "MB");
    run.first(began).await?;
    run.one_at_a_time().await?;
    run.edits().await?;
    run.burst(run.scaled(1_000), true).await?;
    run.burst(run.scaled(1_400).saturating_sub(run.made), false).await?;
    run.note("memory, 1,400 composite resources", run.settled_memory().await?, "MB");
    run.idle().await?;
    run.note("memory, 1,400 composite resources at rest", run.plane.memory()?, "MB");
    let few = run.cost().await?;
    run.note("cost of a reconcile", few, "ms");
    run.restart(data_dir).await?;
    if options.large > run.made {
        run.burst(options.large - run.made, false).await?;
        let many = run.cost().await?;
        run.note("cost of a reconcile among many", many, "ms");
        run.note("that is so many times that among few", many / few.max(f64::EPSILON), "");
        run.note("memory, many composite resources", run.settled_memory().await?, "MB");
    }
    Ok(run.figures)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn name(number: usize) -> String {
    format!("stack-{number:06}")
}

/// Reads on until an event is the one that is waited for.
async fn until(watch: &mut Watch, wanted: impl Fn(&str, &Value) -> bool) -> Result<(), Failure> {
    let reading = async {
        loop {
            let (word, object) = watch.next().await?;
            if wanted(&word, &object) {
                return Ok(());
            }
        }
    };
    let late = || Failure::new(format!("nothing came of it within {} s", PATIENCE.as_secs()));
    tokio::time::timeout(PATIENCE, reading).await.map_err(|_| late())?
}

fn named<'a>(name: &'a str) -> impl Fn(&Value) -> bool + 'a {
    move |object| object["metadata"]["name"] == name
}

impl Run<'_> {
    fn note(&mut self, name: &'static str, value: f64, unit: &'static str) {
        anstream::eprintln!("{name}: {value:.2} {unit}");
        self.figures.push(Figure::new(name, value, unit));
    }

    fn scaled(&self, count: usize) -> usize {
        ((count as f64 * self.options.scale) as usize).max(1)
    }

    async fn settled_memory(&self) -> Result<f64, Failure> {
        tokio::time::sleep(Duration::from_secs(3)).await;
        self.plane.memory()
    }

    /// From the start of the process, through function, definition and Composition, to a first ready composite resource.
    async fn first(&mut self, began: Instant) -> Result<(), Failure> {
        let mut client = Client::connect(&self.plane.target).await?;
        for (collection, object) in platform::objects() {
            client.create(collection, object).await?;
        }
        while client.ask(Method::GET, &stacks(), "", Default::default()).await?.0 != StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let watching = Client::connect(&self.plane.target).await?;
        let mut watch = watching.watch(&stacks()).await?;
        client.create(&stacks(), stack(&name(0))).await?;
        until(&mut watch, |_, object| is_ready(object)).await?;
        self.made = 1;
        self.note("start to first ready composite resource", millis(began.elapsed()), "ms");
        Ok(())
    }

    async fn one_at_a_time(&mut self) -> Result<(), Failure> {
        let mut client = Client::connect(&self.plane.target).await?;
        let mut watch = Client::connect(&self.plane.target).await?.watch(&stacks()).await?;
        let count = self.scaled(200);
        let (reconciles, writes) =
            (self.plane.reconciles(&mut client).await?, self.plane.writes(&mut client).await?);
        let cpu = self.plane.cpu()?;
        let mut each = Vec::new();
        for number in self.made..self.made + count {
            let name = name(number);
            let began = Instant::now();
            client.create(&stacks(), stack(&name)).await?;
            until(&mut watch, |_, object| named(&name)(object) && is_ready(object)).await?;
            each.push(began.elapsed());
        }
        self.made += count;
        let used = self.plane.cpu()? - cpu;
        let reconciles = self.plane.reconciles(&mut client).await? - reconciles;
        let writes = self.plane.writes(&mut client).await? - writes;
        let timings = Timings::new(each, Duration::from_secs(1));
        self.note("create to ready, one at a time, median", timings.percentile(0.5), "ms");
        self.note("create to ready, one at a time, 99 %", timings.percentile(0.99), "ms");
        self.note("processor time for each", millis(used) / count as f64, "ms");
        self.note("reconciles for each", reconciles as f64 / count as f64, "");
        self.note("writes for each, events included", writes as f64 / count as f64, "");
        Ok(())
    }

    /// What users and others change, and how soon that is acted upon.
    async fn edits(&mut self) -> Result<(), Failure> {
        let mut client = Client::connect(&self.plane.target).await?;
        let parts = parts();
        let mut watch = Client::connect(&self.plane.target).await?.watch(&parts).await?;
        let (mut edited, mut reverted, mut remade) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..self.scaled(100).min(self.made) {
            let stack = name(number);
            let began = Instant::now();
            let edit = json!({"spec": {"value": format!("{stack}-edited")}});
            client.merge(&format!("{}/{stack}", stacks()), &edit).await?;
            let mut left: HashSet<usize> = (0..CHILDREN).collect();
            let mut part = String::new();
            while !left.is_empty() {
                let (_, object) = watch.next().await?;
                if object["data"]["value"] == edit["spec"]["value"] {
                    let number = object["data"]["part"].as_str().and_then(|p| p.parse().ok());
                    left.remove(&number.unwrap_or_default());
                    part = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                }
            }
            edited.push(began.elapsed());
            let one = format!("{parts}/{part}");
            let began = Instant::now();
            client.merge(&one, &json!({"data": {"value": "drifted"}})).await?;
            let restored =
                |object: &Value| named(&part)(object) && object["data"]["value"] == edit["spec"]["value"];
            until(&mut watch, |_, object| restored(object)).await?;
            reverted.push(began.elapsed());
            let began = Instant::now();
            client.must(Method::DELETE, &one, "", Default::default()).await?;
            until(&mut watch, |word, object| word == "ADDED" && restored(object)).await?;
            remade.push(began.elapsed());
        }
        for (name, each) in [
            ("edit to four parts changed, median", edited),
            ("drift to reverted, median", reverted),
            ("part deleted to made anew, median", remade),
        ] {
            self.note(name, Timings::new(each, Duration::from_secs(1)).percentile(0.5), "ms");
        }
        Ok(())
    }

    /// Many at once, from the first request until the last is ready.
    async fn burst(&mut self, count: usize, noted: bool) -> Result<(), Failure> {
        let first = self.made;
        let mut watch =
            Client::connect(&self.plane.target).await?.watch(&format!("{}?limit=1", stacks())).await?;
        let cpu = self.plane.cpu()?;
        let began = Instant::now();
        let all = &stacks();
        let creating = load::run(&self.plane.target, CLIENTS, count, async |client, i| {
            client.create(all, stack(&name(first + i))).await.map(drop)
        });
        let waiting = async {
            let mut left: HashSet<String> = (first..first + count).map(name).collect();
            while !left.is_empty() {
                let (_, object) = watch.next().await?;
                if is_ready(&object) {
                    left.remove(object["metadata"]["name"].as_str().unwrap_or_default());
                }
            }
            Ok::<_, Failure>(began.elapsed())
        };
        let (created, took) = tokio::join!(creating, waiting);
        created?;
        let took = took?;
        self.made += count;
        if noted {
            let used = self.plane.cpu()? - cpu;
            self.note("burst of 1,000, ready in a second", count as f64 / took.as_secs_f64(), "/s");
            self.note("burst of 1,000, processor time for each", millis(used) / count as f64, "ms");
        }
        Ok(())
    }

    /// Nobody wants anything.
    async fn idle(&mut self) -> Result<(), Failure> {
        let mut client = Client::connect(&self.plane.target).await?;
        let (writes, cpu) = (self.plane.writes(&mut client).await?, self.plane.cpu()?);
        let time = Duration::from_secs(self.options.idle.into());
        tokio::time::sleep(time).await;
        let used = millis(self.plane.cpu()? - cpu);
        // The server hangs up on those who are silent for long.
        let mut client = Client::connect(&self.plane.target).await?;
        let writes = self.plane.writes(&mut client).await? - writes;
        let minutes = time.as_secs_f64() / 60.0;
        self.note("idle, writes in a minute", writes as f64 / minutes, "");
        let each = used / minutes / self.made as f64;
        self.note("idle, processor time in a minute for each", each, "ms");
        Ok(())
    }

    /// What one reconcile of an existing composite resource costs, in milliseconds of processor time.
    async fn cost(&self) -> Result<f64, Failure> {
        let mut client = Client::connect(&self.plane.target).await?;
        let (before, cpu) = (self.plane.reconciles(&mut client).await?, self.plane.cpu()?);
        let step = (self.made / TOUCHES).max(1);
        let count = self.scaled(TOUCHES).min(self.made);
        for number in 0..count {
            let one = format!("{}/{}", stacks(), name((number * step) % self.made));
            let touch = json!({"metadata": {"annotations": {"bench.transom.example/touched": format!("{number} of {}", self.made)}}});
            client.merge(&one, &touch).await?;
        }
        let began = Instant::now();
        while self.plane.reconciles(&mut client).await? < before + count as u64 {
            if began.elapsed() > PATIENCE {
                return Err(Failure::new("not everything that was touched is reconciled"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let reconciles = self.plane.reconciles(&mut client).await? - before;
        Ok(millis(self.plane.cpu()? - cpu) / reconciles as f64)
    }

    /// Killed and started anew: until everything has been looked at.
    async fn restart(&mut self, data_dir: &Path) -> Result<(), Failure> {
        self.plane.kill();
        let began = Instant::now();
        self.plane = Running::start(self.transom, data_dir)?;
        let serving = began.elapsed();
        let mut client = Client::connect(&self.plane.target).await?;
        while self.plane.reconciles(&mut client).await? < self.made as u64 {
            if began.elapsed() > PATIENCE {
                return Err(Failure::new("not everything is reconciled after a restart"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let (took, cpu) = (began.elapsed(), self.plane.cpu()?);
        let written = self.plane.writes(&mut client).await?;
        self.note("restart to serving", millis(serving), "ms");
        self.note("restart to everything reconciled", millis(took), "ms");
        self.note("restart, processor time", millis(cpu), "ms");
        self.note("restart, writes", written as f64, "");
        Ok(())
    }
}
