//! Runs a controller: takes keys from its queue, reconciles several at a time and never one twice at once.

use super::queue::{Key, Next, Queue};
use super::run_log::RunLog;
use crate::error::Result;
use crate::metrics::Metrics;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::timeout;

/// How many keys of one controller are reconciled at the same time.
const CONCURRENT: usize = 100;
/// A run that takes longer than this waits for someone else, a function perhaps, and keeps nobody from running.
const BRISK: Duration = Duration::from_secs(1);
/// How many keys of one controller are reconciled at the same time if most of them wait for someone else.
const ALTOGETHER: usize = 2000;

/// Brings the world closer to what the object of a key wants.
pub trait Reconciler: Send + Sync + 'static {
    /// The controller's name, as in logs, metrics and events.
    fn name(&self) -> &str;

    /// Only the key says what to do: everything else is read afresh.
    fn reconcile<'a>(&'a self, key: &'a Key, log: &'a RunLog) -> BoxFuture<'a, Result<Next>>;
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
    let log = RunLog::default();
    let outcome = AssertUnwindSafe(reconciler.reconcile(key, &log)).catch_unwind().await;
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
    if log.has_written() {
        let took_ms = (started.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        tracing::info!(controller, %key, took_ms, "reconciled");
    } else {
        tracing::debug!(controller, %key, "nothing to do");
    }
    queue.done(key, next, log.take_seen());
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
    use super::super::queue::Pace;
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

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

        fn reconcile<'a>(&'a self, key: &'a Key, _: &'a RunLog) -> BoxFuture<'a, crate::error::Result<Next>> {
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
}
