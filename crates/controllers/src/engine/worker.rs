//! Runs a controller: takes keys from its queue, reconciles several at a time and never one twice at once.

use super::known::{Known, Source, version};
use super::queue::{Key, Next, Queue};
use crate::error::Result;
use crate::metrics::Metrics;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::timeout;
use transom_object::{GroupVersionKind, meta};

/// How many keys of one controller are reconciled at the same time.
const CONCURRENT: usize = 100;
/// A run that takes longer than this waits for someone else, a function perhaps, and keeps nobody from running.
const BRISK: Duration = Duration::from_secs(1);
/// How many keys of one controller are reconciled at the same time if most of them wait for someone else.
const ALTOGETHER: usize = 2000;

/// One run of a reconciler: collects what it reads and writes.
#[derive(Default)]
pub struct Pass {
    known: Mutex<Known>,
    kinds: Mutex<HashMap<Source, Kind>>,
    wrote: AtomicBool,
}

/// What a run knows of a kind as a whole.
#[derive(Default)]
struct Kind {
    /// The newest version of any object that was read.
    newest: u64,
    /// The oldest version at which objects were looked for.
    listed: Option<u64>,
}

impl Pass {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kinds(&self) -> MutexGuard<'_, HashMap<Source, Kind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run decides on this object as it is here.
    pub fn read(&self, object: &Value) {
        let Some(gvk) = meta::gvk(object) else { return };
        let version = version(meta::resource_version(object));
        {
            let mut kinds = self.kinds();
            let kind = kinds.entry(whole(&gvk)).or_default();
            kind.newest = kind.newest.max(version);
            // Since the run looked for objects of the kind this one may have become one of those it looked for. It
            // will be told of that, and must listen.
            if kind.listed.is_some_and(|listed| version > listed) {
                return;
            }
        }
        self.lock().read(Source::new(&gvk, meta::namespace(object), meta::name(object)), version);
    }

    /// The run decides on which objects of a kind there were at a version.
    pub fn listed(&self, gvk: &GroupVersionKind, version: u64) {
        let mut kinds = self.kinds();
        let kind = kinds.entry(whole(gvk)).or_default();
        kind.listed = Some(kind.listed.map_or(version, |listed| listed.min(version)));
    }

    /// The newest version of any object of a kind that the run has read.
    pub fn newest(&self, gvk: &GroupVersionKind) -> u64 {
        self.kinds().get(&whole(gvk)).map_or(0, |kind| kind.newest)
    }

    /// The run wrote this object, which looks like this now.
    pub fn wrote(&self, object: &Value) {
        self.changed();
        if let Some(source) = source(object) {
            self.lock().wrote(source, version(meta::resource_version(object)));
        }
    }

    /// The run changed something of which no version is known: a deletion.
    pub fn changed(&self) {
        self.wrote.store(true, Ordering::Relaxed);
    }

    pub fn has_written(&self) -> bool {
        self.wrote.load(Ordering::Relaxed)
    }
}

/// A kind as a whole.
fn whole(gvk: &GroupVersionKind) -> Source {
    Source::new(gvk, "", "")
}

fn source(object: &Value) -> Option<Source> {
    let gvk = meta::gvk(object)?;
    Some(Source::new(&gvk, meta::namespace(object), meta::name(object)))
}

/// Brings the world closer to what the object of a key wants.
pub trait Reconciler: Send + Sync + 'static {
    /// The controller's name, as in logs, metrics and events.
    fn name(&self) -> &str;

    /// Only the key says what to do: everything else is read afresh.
    fn reconcile<'a>(&'a self, key: &'a Key, pass: &'a Pass) -> BoxFuture<'a, Result<Next>>;
}

/// A controller that runs; it stops when dropped.
pub struct Running {
    name: String,
    queue: Arc<Queue>,
    task: AbortHandle,
    metrics: Arc<Metrics>,
}

impl Running {
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.queue.close();
        self.task.abort();
        self.metrics.controller_stopped(&self.name, &self.queue);
    }
}

/// Starts a controller.
pub fn start(reconciler: Arc<dyn Reconciler>, queue: Arc<Queue>, metrics: Arc<Metrics>) -> Running {
    let name = reconciler.name().to_owned();
    metrics.controller_started(&name, &queue);
    let task = tokio::spawn(work(reconciler, queue.clone(), metrics.clone())).abort_handle();
    Running { name, queue, task, metrics }
}

async fn work(reconciler: Arc<dyn Reconciler>, queue: Arc<Queue>, metrics: Arc<Metrics>) {
    let name = reconciler.name().to_owned();
    let mut running = JoinSet::new();
    let places = Arc::new(Semaphore::new(CONCURRENT));
    loop {
        // In order, so that a simulation can be replayed.
        tokio::select! {
            biased;
            Some(ended) = running.join_next(), if !running.is_empty() => report(&ended, &name, &metrics),
            next = next(&queue, &places), if running.len() < ALTOGETHER => {
                let Some((key, place)) = next else { break };
                let (reconciler, queue, metrics) = (reconciler.clone(), queue.clone(), metrics.clone());
                running.spawn(async move {
                    let mut running = pin!(run(&*reconciler, &queue, &key, &metrics));
                    if timeout(BRISK, running.as_mut()).await.is_err() {
                        drop(place);
                        running.await;
                    }
                });
            }
        }
    }
    while let Some(ended) = running.join_next().await {
        report(&ended, &name, &metrics);
    }
}

/// Counts a run that panicked where nothing caught it: outside of the reconciler.
fn report(ended: &Result<(), JoinError>, controller: &str, metrics: &Metrics) {
    if let Err(e) = ended
        && e.is_panic()
    {
        tracing::error!(controller, error = %e, "a worker panicked");
        metrics.panicked(controller);
    }
}

/// The next key, as soon as there is a place for it. Nothing is lost when nobody waits for it any longer.
async fn next(queue: &Queue, places: &Arc<Semaphore>) -> Option<(Key, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    queue.next().await.map(|key| (key, place))
}

async fn run(reconciler: &dyn Reconciler, queue: &Queue, key: &Key, metrics: &Metrics) {
    let started = tokio::time::Instant::now();
    let pass = Pass::default();
    let outcome = AssertUnwindSafe(reconciler.reconcile(key, &pass)).catch_unwind().await;
    let controller = reconciler.name();
    let (next, result) = match outcome {
        Ok(Ok(next)) => (next, label(next)),
        // Someone else was faster: look again, and say nothing.
        Ok(Err(e)) if e.is_conflict() => (Next::Conflict, "requeue"),
        Ok(Err(e)) => {
            tracing::warn!(controller, %key, error = %e, "cannot reconcile");
            (Next::Backoff, "error")
        }
        Err(_) => {
            tracing::error!(controller, %key, "the reconciler panicked; it will be tried again");
            metrics.panicked(controller);
            (Next::Backoff, "error")
        }
    };
    metrics.reconciled(controller, result, started.elapsed());
    if pass.has_written() {
        let took_ms = (started.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        tracing::info!(controller, %key, took_ms, "reconciled");
    } else {
        tracing::debug!(controller, %key, "nothing to do");
    }
    let known = std::mem::take(&mut *pass.lock());
    queue.done(key, next, known);
}

fn label(next: Next) -> &'static str {
    match next {
        Next::Wait | Next::Gone => "success",
        Next::After(_) => "requeue_after",
        Next::Again | Next::Backoff | Next::Conflict => "requeue",
        Next::Failed => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::{News, Told};
    use super::super::queue::Pace;
    use super::*;
    use serde_json::json;
    use std::sync::atomic::AtomicUsize;

    /// Panics in every reconcile of `inside`, and after the first one of any other key.
    #[derive(Default)]
    struct Clumsy {
        named: AtomicUsize,
    }

    impl Reconciler for Clumsy {
        fn name(&self) -> &str {
            // The controller asks as it starts and as it begins to work, then after each reconcile.
            let times = self.named.fetch_add(1, Ordering::SeqCst);
            assert_ne!(times, 2, "outside of the reconciler");
            "clumsy"
        }

        fn reconcile<'a>(&'a self, key: &'a Key, _: &'a Pass) -> BoxFuture<'a, crate::error::Result<Next>> {
            Box::pin(async move {
                assert_ne!(&*key.name, "inside", "in the reconciler");
                Ok(Next::Wait)
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_panic_is_counted() {
        let (queue, metrics) = (Arc::new(Queue::new(Pace::default())), Arc::<Metrics>::default());
        let _running = start(Arc::<Clumsy>::default(), queue.clone(), metrics.clone());
        for (key, panics) in [("outside", 1), ("inside", 2)] {
            queue.wake(&Key::new("", key));
            tokio::time::sleep(Duration::from_millis(10)).await;
            let counted =
                format!("controller_runtime_reconcile_panics_total{{controller=\"clumsy\"}} {panics}");
            let all = metrics.render();
            assert!(all.contains(&counted), "{key}: {all}");
        }
    }

    #[test]
    fn what_changed_since_a_run_looked_for_objects_is_not_known_to_it() {
        let gvk = GroupVersionKind::new("", "v1", "ConfigMap");
        let object = |name: &str, version: u64| {
            let metadata = json!({"name": name, "resourceVersion": version.to_string()});
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        };
        let knows = |pass: &Pass, name: &str, version| {
            pass.lock().includes(News { source: Source::new(&gvk, "", name), version, told: Told::Watch })
        };
        let pass = Pass::default();
        pass.read(&object("before", 7));
        assert_eq!(pass.newest(&gvk), 7);
        pass.listed(&gvk, 8);
        pass.listed(&gvk, 10);
        pass.read(&object("old", 8));
        pass.read(&object("new", 9));
        assert!(knows(&pass, "before", 7) && knows(&pass, "old", 8));
        assert!(!knows(&pass, "new", 9), "it may be one that the first look did not find");
        assert_eq!((pass.newest(&gvk), pass.newest(&GroupVersionKind::new("", "v1", "Secret"))), (9, 0));
        pass.wrote(&object("new", 11));
        assert!(knows(&pass, "new", 11), "what it writes itself it looks at again");
    }
}
