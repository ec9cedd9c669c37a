//! Composite resources are created: the first, one at a time, and many at once.

use super::platform::{self, is_ready, stack, stacks};
use super::running::Counters;
use super::{Run, millis, name, skim, until};
use crate::client::{Client, JSON};
use crate::failure::Failure;
use crate::load;
use http::{Method, StatusCode};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Clients of a burst.
const CLIENTS: usize = 32;
/// A burst that takes longer fails the run.
const BURST_TIMEOUT: Duration = Duration::from_secs(1_800);
/// A definition that is not served after this time fails the run.
const SERVED_TIMEOUT: Duration = Duration::from_secs(60);

/// What a plane had used and counted at some time.
struct Usage {
    cpu: Duration,
    counters: Counters,
}

impl Run<'_> {
    async fn usage(&self) -> Result<Usage, Failure> {
        let counters = self.plane.counters().await?;
        Ok(Usage { cpu: self.plane.cpu()?, counters })
    }

    /// From the start of the process, through function, definition and Composition, to a first ready composite resource.
    pub(super) async fn first(&mut self, began: Option<Instant>) -> Result<(), Failure> {
        let mut client = self.plane.connect().await?;
        for (collection, object) in platform::objects() {
            let (status, answer) = client.ask(Method::POST, collection, JSON, object).await?;
            // A plane that was given may need another way to install the function.
            if !status.is_success() && status != StatusCode::CONFLICT {
                let answer = String::from_utf8_lossy(&answer);
                return Err(Failure::new(format!("{collection} refused an object: {status}: {answer}")));
            }
        }
        served(&mut client, &stacks()).await?;
        let mut watch = self.plane.connect().await?.watch(&stacks()).await?;
        client.create(&stacks(), stack(&name(0))).await?;
        until(&mut watch, |_, object| is_ready(object)).await?;
        self.made = 1;
        if let Some(began) = began {
            self.note("start to first ready composite resource", millis(began.elapsed()), "ms");
        }
        Ok(())
    }

    pub(super) async fn one_at_a_time(&mut self, count: usize) -> Result<(), Failure> {
        let mut client = self.plane.connect().await?;
        let mut watch = self.plane.connect().await?.watch(&stacks()).await?;
        let before = self.usage().await?;
        let mut each = Vec::new();
        for number in self.made..self.made + count {
            skim(&mut watch, self.pause()).await?;
            let name = name(number);
            let began = Instant::now();
            client.create(&stacks(), stack(&name)).await?;
            until(&mut watch, |_, object| object["metadata"]["name"] == *name && is_ready(object)).await?;
            each.push(began.elapsed());
        }
        self.made += count;
        self.quiet().await;
        let after = self.usage().await?;
        let share = |total: u64| total as f64 / count as f64;
        self.note_times(
            "create to ready, one at a time, median",
            "create to ready, one at a time, 99 %",
            each,
        );
        self.note("processor time for each", millis(after.cpu - before.cpu) / count as f64, "ms");
        let reconciles = after.counters.reconciles - before.counters.reconciles;
        if reconciles > 0 {
            self.note("reconciles for each", share(reconciles), "");
        }
        // The client itself wrote the composite resource.
        let writes = after.counters.writes - before.counters.writes;
        self.note("write requests for each, without events", share(writes) - 1.0, "");
        self.note("events for each", share(after.counters.events - before.counters.events), "");
        Ok(())
    }

    /// Many at once, and what they cost until they are ready and until the plane is quiet again.
    pub(super) async fn measured_burst(&mut self, count: usize) -> Result<(), Failure> {
        let cpu = self.plane.cpu()?;
        let took = self.burst(count).await?;
        let each = |used: Duration| millis(used) / count as f64;
        let until_ready = each(self.plane.cpu()? - cpu);
        self.quiet().await;
        let until_quiet = each(self.plane.cpu()? - cpu);
        self.note("burst, ready in a second", count as f64 / took.as_secs_f64(), "/s");
        self.note("burst, processor time for each", until_ready, "ms");
        self.note("burst, processor time for each until quiet", until_quiet, "ms");
        Ok(())
    }

    /// Many at once, from the first request until the last is ready.
    pub(super) async fn burst(&mut self, count: usize) -> Result<Duration, Failure> {
        let first = self.made;
        let mut watch = self.plane.connect().await?.watch(&stacks()).await?;
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
        let late = |_| Failure::new(format!("a burst is not ready after {} s", BURST_TIMEOUT.as_secs()));
        let (created, took) = tokio::join!(creating, tokio::time::timeout(BURST_TIMEOUT, waiting));
        created?;
        self.made += count;
        took.map_err(late)?
    }
}

/// Waits until a definition has become a kind that can be listed.
async fn served(client: &mut Client, collection: &str) -> Result<(), Failure> {
    let began = Instant::now();
    while client.ask(Method::GET, collection, "", Default::default()).await?.0 != StatusCode::OK {
        if began.elapsed() > SERVED_TIMEOUT {
            let late = SERVED_TIMEOUT.as_secs();
            return Err(Failure::new(format!("{collection} is not served after {late} s")));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
