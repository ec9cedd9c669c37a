//! What queues count, collected when metrics are rendered. The counts of a queue outlive its controller.

use crate::{Counts, Queue};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use transom_metrics::{Descriptor, LabelValue, MetricsRegistry};

const ACTIVE_WORKERS: Descriptor =
    Descriptor::gauge("controller_runtime_active_workers", "Reconciles under way");
const DEPTH: Descriptor = Descriptor::gauge("workqueue_depth", "Keys that wait for a worker");
const ADDS: Descriptor = Descriptor::counter("workqueue_adds_total", "Keys that became ready to run");
const RETRIES: Descriptor = Descriptor::counter("workqueue_retries_total", "Keys that are retried");
const OPENS: Descriptor = Descriptor::counter("circuit_breaker_opens_total", "Objects that were slowed down");
const CLOSES: Descriptor =
    Descriptor::counter("circuit_breaker_closes_total", "Objects that are no longer slowed down");
const EVENTS: Descriptor = Descriptor::counter(
    "circuit_breaker_events_total",
    "Changes that requeued an object, at once or slowed down",
);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: LabelValue,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    controller: LabelValue,
    name: LabelValue,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    controller: LabelValue,
    result: &'static str,
}

/// The queues of all controllers. Clones share their content.
#[derive(Clone, Default)]
pub(crate) struct QueueMetrics(Arc<Mutex<Queues>>);

#[derive(Default)]
struct Queues {
    running: Vec<(String, Weak<Queue>)>,
    /// Of the controllers that stopped, by name.
    stopped: BTreeMap<String, Collected>,
}

/// The counts of all queues that a controller has had.
#[derive(Clone, Copy, Default)]
struct Collected {
    counts: Counts,
    is_running: bool,
    has_circuit_breaker: bool,
}

impl Collected {
    fn add(&mut self, queue: &Queue) {
        self.counts = self.counts + queue.counts();
        self.has_circuit_breaker |= queue.has_circuit_breaker();
    }
}

impl QueueMetrics {
    pub(crate) fn register(&self, registry: &MetricsRegistry) {
        let families = [ACTIVE_WORKERS, DEPTH, ADDS, RETRIES, OPENS, CLOSES, EVENTS];
        registry.register_collector(&families, Box::new(self.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, controller: &str, queue: &Arc<Queue>) {
        self.lock().running.push((controller.to_owned(), Arc::downgrade(queue)));
    }

    /// The controller of a queue has stopped: its counters keep their values, its gauges end.
    pub(crate) fn remove(&self, controller: &str, queue: &Arc<Queue>) {
        let mut queues = self.lock();
        let this = Arc::downgrade(queue);
        queues.running.retain(|(_, queue)| !queue.ptr_eq(&this));
        let stopped = queues.stopped.entry(controller.to_owned()).or_default();
        stopped.add(queue);
        (stopped.counts.ready, stopped.counts.running) = (0, 0);
    }

    /// The counts of the queues of all running controllers together.
    pub(crate) fn counts(&self) -> Counts {
        let running = self.lock().running.clone();
        let counts = running.iter().filter_map(|(_, queue)| queue.upgrade()).map(|queue| queue.counts());
        counts.fold(Counts::default(), |sum, counts| sum + counts)
    }

    /// Whether a key of a running controller waits for another attempt.
    pub(crate) fn awaits_retry(&self) -> bool {
        let running = self.lock().running.clone();
        running.iter().filter_map(|(_, queue)| queue.upgrade()).any(|queue| queue.awaits_retry())
    }

    fn collect(&self) -> Vec<(LabelValue, Collected)> {
        let queues = self.lock();
        let mut collected = queues.stopped.clone();
        for (controller, queue) in &queues.running {
            let Some(queue) = queue.upgrade() else { continue };
            let entry = collected.entry(controller.clone()).or_default();
            entry.add(&queue);
            entry.is_running = true;
        }
        collected.into_iter().map(|(controller, collected)| (controller.into(), collected)).collect()
    }
}

impl fmt::Debug for QueueMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueMetrics").finish_non_exhaustive()
    }
}

/// Writes a family with the series of some of the controllers; without any, nothing.
fn encode<'a, M: EncodeMetric, S: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    family: &Descriptor,
    controllers: impl Iterator<Item = &'a (LabelValue, Collected)>,
    series: impl Fn(LabelValue, &Counts) -> Vec<(S, M)>,
) -> fmt::Result {
    let all: Vec<(S, M)> = controllers
        .flat_map(|(controller, collected)| series(controller.clone(), &collected.counts))
        .collect();
    if all.is_empty() {
        return Ok(());
    }
    let mut family = family.encode(encoder)?;
    all.iter().try_for_each(|(labels, value)| value.encode(family.encode_family(labels)?))
}

impl Collector for QueueMetrics {
    /// Where Crossplane opens a circuit breaker and drops changes, a queue slows a key down and drops nothing.
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.collect();
        let encoder = &mut encoder;
        let running = || all.iter().filter(|(_, collected)| collected.is_running);
        let breakers = || all.iter().filter(|(_, collected)| collected.has_circuit_breaker);
        let named = |controller: LabelValue| QueueLabels { controller: controller.clone(), name: controller };
        encode(encoder, &ACTIVE_WORKERS, running(), |controller, counts| {
            vec![(ControllerLabels { controller }, ConstGauge::new(counts.running))]
        })?;
        encode(encoder, &DEPTH, running(), |controller, counts| {
            vec![(named(controller), ConstGauge::new(counts.ready))]
        })?;
        encode(encoder, &ADDS, all.iter(), |controller, counts| {
            vec![(named(controller), ConstCounter::new(counts.adds))]
        })?;
        encode(encoder, &RETRIES, all.iter(), |controller, counts| {
            vec![(named(controller), ConstCounter::new(counts.retries))]
        })?;
        encode(encoder, &OPENS, breakers(), |controller, counts| {
            vec![(ControllerLabels { controller }, ConstCounter::new(counts.slowed))]
        })?;
        encode(encoder, &CLOSES, breakers(), |controller, counts| {
            vec![(ControllerLabels { controller }, ConstCounter::new(counts.recovered))]
        })?;
        encode(encoder, &EVENTS, breakers(), |controller, counts| {
            let labels = |result| EventLabels { controller: controller.clone(), result };
            vec![
                (labels("Allowed"), ConstCounter::new(counts.at_once)),
                (labels("HalfOpenAllowed"), ConstCounter::new(counts.delayed)),
            ]
        })
    }
}
