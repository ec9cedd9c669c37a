//! Runs a controller: takes keys from its queue, reconciles several at a time and never one twice at once.

use super::queue::{Key, Next, Queue};
use super::run_log::RunLog;
use crate::error::Result;
use crate::metrics::{ControllerMetrics, Metrics, RunResult};
use crate::ownership::{LEADER_SHARD, Ownership};
use futures_util::FutureExt;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::timeout;

/// How many keys of one controller are reconciled at the same time, not counting slow runs.
const MAX_BUSY_RUNS: usize = 100;
/// A run that takes longer than this waits for something else, a function perhaps, and gives its slot to another run.
const SLOW_RUN_AFTER: Duration = Duration::from_secs(1);
/// How many keys of one controller are reconciled at the same time, slow runs included.
const MAX_RUNS: usize = 2000;

/// Brings the state of the world closer to what the object of a key asks for.
pub trait Reconciler: Send + Sync + 'static {
    /// Reconciles the object of a key. The key is the only input: everything else is read again, and what is read and
    /// written is noted in the log.
    fn reconcile(&self, key: &Key, log: &RunLog) -> impl Future<Output = Result<Next>> + Send;
}

/// The workers of a controller; they stop when this is dropped.
pub(crate) struct Running {
    name: String,
    queue: Arc<Queue>,
    task: AbortHandle,
    metrics: Arc<Metrics>,
}

impl Running {
    pub(crate) fn queue(&self) -> &Arc<Queue> {
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

/// Which keys of a controller this process reconciles.
#[derive(Clone)]
pub(crate) struct Share {
    pub(crate) ownership: Ownership,
    /// Whether its keys are divided between processes.
    pub(crate) divided: bool,
}

/// Starts a controller under a name that logs, metrics and events show.
pub(crate) fn start<R: Reconciler>(
    name: String,
    reconciler: Arc<R>,
    queue: Arc<Queue>,
    metrics: Arc<Metrics>,
    share: Share,
) -> Running {
    let counted = metrics.controller_started(&name, &queue);
    let (shown, deferred) = (name.as_str().into(), Arc::default());
    let worker = Worker { name: shown, reconciler, queue: queue.clone(), metrics: counted, share, deferred };
    let task = tokio::spawn(worker.work()).abort_handle();
    Running { name, queue, task, metrics }
}

/// What the runs of a controller share.
struct Worker<R> {
    name: Arc<str>,
    reconciler: Arc<R>,
    queue: Arc<Queue>,
    metrics: Arc<ControllerMetrics>,
    share: Share,
    /// The keys that wait until this process holds their shards.
    deferred: Arc<Mutex<BTreeSet<Key>>>,
}

impl<R> Clone for Worker<R> {
    fn clone(&self) -> Self {
        let Self { name, reconciler, queue, metrics, share, deferred } = self;
        let (name, reconciler, queue, metrics) =
            (name.clone(), reconciler.clone(), queue.clone(), metrics.clone());
        Self { name, reconciler, queue, metrics, share: share.clone(), deferred: deferred.clone() }
    }
}

impl<R: Reconciler> Worker<R> {
    async fn work(self) {
        let mut running = JoinSet::new();
        let slots = Arc::new(Semaphore::new(MAX_BUSY_RUNS));
        let mut terms = self.share.ownership.changes();
        loop {
            // In this order, so that a simulation can be replayed.
            tokio::select! {
                biased;
                Some(ended) = running.join_next(), if !running.is_empty() => self.count_panic(&ended),
                () = changed(&mut terms) => self.wake_deferred(),
                next = next(&self.queue, &slots), if running.len() < MAX_RUNS => {
                    let Some((key, slot)) = next else { break };
                    let worker = self.clone();
                    running.spawn(async move {
                        let mut run = pin!(worker.run(&key));
                        if timeout(SLOW_RUN_AFTER, run.as_mut()).await.is_err() {
                            drop(slot);
                            run.await;
                        }
                    });
                }
            }
        }
        while let Some(ended) = running.join_next().await {
            self.count_panic(&ended);
        }
    }

    /// Counts a run that panicked outside of the reconciler, where nothing caught the panic.
    fn count_panic(&self, ended: &Result<(), JoinError>) {
        if let Err(e) = ended
            && e.is_panic()
        {
            tracing::error!(controller = &*self.name, error = %e, "a worker panicked");
            self.metrics.panicked();
        }
    }

    fn shard(&self, key: &Key) -> u32 {
        if self.share.divided { self.share.ownership.shard_of(&self.name, key) } else { LEADER_SHARD }
    }

    /// Wakes the keys whose shards this process holds by now.
    fn wake_deferred(&self) {
        let mut deferred = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
        deferred.retain(|key| {
            let held = self.share.ownership.holds(self.shard(key));
            if held {
                self.queue.wake(key);
            }
            !held
        });
    }

    /// Remembers a key until this process holds its shard.
    fn defer(&self, key: &Key) {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        if self.share.ownership.holds(self.shard(key)) {
            // It may have been taken before the key was remembered.
            self.wake_deferred();
        }
    }

    async fn run(&self, key: &Key) {
        let controller = &*self.name;
        let started = tokio::time::Instant::now();
        let log = RunLog::default();
        // Boxed: the future of a reconciler is large, and every slot would have room for it.
        let attributes = || vec![("controller", controller.to_owned()), ("key", key.to_string())];
        let reconciling = async { self.reconciler.reconcile(key, &log).await };
        let reconciling = Box::pin(transom_telemetry::traced("reconcile", attributes, reconciling));
        let reconciling = AssertUnwindSafe(reconciling).catch_unwind();
        let Some(ended) = self.share.ownership.run(self.shard(key), reconciling).await else {
            self.queue.done(key, Next::Wait, log.take_seen());
            return self.defer(key);
        };
        let (next, result) = match ended {
            Ok(Ok(next)) => (next, run_result(next)),
            // Another client was faster: read again, without a report.
            Ok(Err(e)) if e.is_conflict() => (Next::Conflict, RunResult::Requeue),
            Ok(Err(e)) => {
                tracing::warn!(controller, %key, error = %e.chain(), "cannot reconcile");
                (e.retry_after().map_or(Next::Backoff, Next::FailedFor), RunResult::Error)
            }
            Err(_) => {
                tracing::error!(controller, %key, "the reconciler panicked; it will be tried again");
                self.metrics.panicked();
                (Next::Backoff, RunResult::Error)
            }
        };
        self.metrics.reconciled(result, started.elapsed());
        if log.has_written() {
            let took_ms = (started.elapsed().as_secs_f64() * 1e6).round() / 1e3;
            tracing::info!(controller, %key, took_ms, "reconciled");
        } else {
            tracing::debug!(controller, %key, "nothing to do");
        }
        self.queue.done(key, next, log.take_seen());
    }
}

/// Waits until a shard is taken or given up.
async fn changed(terms: &mut Option<watch::Receiver<u64>>) {
    let changed = match terms {
        Some(terms) => terms.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending::<()>().await;
    }
}

/// The next key, once there is a slot for it. Cancelling loses nothing.
async fn next(queue: &Queue, slots: &Arc<Semaphore>) -> Option<(Key, OwnedSemaphorePermit)> {
    let slot = slots.clone().acquire_owned().await.ok()?;
    queue.next().await.map(|key| (key, slot))
}

/// The result of a run as controller-runtime counts it.
fn run_result(next: Next) -> RunResult {
    match next {
        Next::Wait | Next::Gone => RunResult::Success,
        Next::After(_) => RunResult::RequeueAfter,
        Next::Again | Next::Backoff | Next::Conflict => RunResult::Requeue,
        Next::Failed | Next::FailedFor(_) => RunResult::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Pace;

    fn share() -> Share {
        Share { ownership: Ownership::whole(), divided: false }
    }

    struct Panicking;

    impl Reconciler for Panicking {
        async fn reconcile(&self, _: &Key, _: &RunLog) -> Result<Next> {
            panic!("in the reconciler");
        }
    }

    fn must_have_counted(metrics: &Metrics, panics: u32) {
        let line = format!("controller_runtime_reconcile_panics_total{{controller=\"panicking\"}} {panics}");
        let all = metrics.render();
        assert!(all.contains(&line), "{line} is not in {all}");
    }

    #[tokio::test(start_paused = true)]
    async fn every_panic_is_counted() {
        let (queue, metrics) = (Arc::new(Queue::new(Pace::default())), Arc::<Metrics>::default());
        let _running =
            start("panicking".to_owned(), Arc::new(Panicking), queue.clone(), metrics.clone(), share());
        queue.wake(&Key::new("", "inside"));
        tokio::time::sleep(Duration::from_millis(10)).await;
        must_have_counted(&metrics, 1);
        assert_eq!(queue.counts().running, 0, "the key can run again");
        let (name, reconciler) = ("panicking".into(), Arc::new(Panicking));
        let (counted, deferred) = (metrics.of_controller("panicking"), Arc::default());
        let worker = Worker { name, reconciler, queue, metrics: counted, share: share(), deferred };
        let outside = tokio::spawn(async { panic!("outside of the reconciler") }).await;
        worker.count_panic(&outside);
        must_have_counted(&metrics, 2);
    }
}
