//! The metrics of controllers, under the names that Crossplane and controller-runtime use.
//!
//! Counters and histograms are updated as things happen, through the handles in [`ControllerMetrics`]: a run costs no
//! lookup by labels. What a [`Queue`] counts is read when metrics are rendered; see [`crate::queue_metrics`].

use crate::queue_metrics::QueueMetrics;
use crate::{Counts, Queue};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use transom_metrics::{LabelValue, MetricsRegistry};

/// Upper bounds of the buckets of durations, in seconds: Prometheus' own, and some on either side.
const BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: LabelValue,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunLabels {
    controller: LabelValue,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    controller: LabelValue,
    r#type: &'static str,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunResult {
    Success,
    Requeue,
    RequeueAfter,
    Error,
}

impl RunResult {
    /// The result as controller-runtime names it.
    fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Requeue => "requeue",
            Self::RequeueAfter => "requeue_after",
            Self::Error => "error",
        }
    }
}

/// The metrics of all controllers of a process.
pub struct Metrics {
    registry: MetricsRegistry,
    families: Families,
    queues: QueueMetrics,
}

#[derive(Clone)]
struct Families {
    runs: Family<RunLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    panics: Family<ControllerLabels, Counter>,
    run_seconds: Family<ControllerLabels, Histogram>,
    controllers_started: Family<ControllerLabels, Counter>,
    controllers_stopped: Family<ControllerLabels, Counter>,
    watches_started: Family<WatchLabels, Counter>,
    watches_stopped: Family<WatchLabels, Counter>,
}

impl Default for Families {
    fn default() -> Self {
        Self {
            runs: Family::default(),
            errors: Family::default(),
            panics: Family::default(),
            run_seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            controllers_started: Family::default(),
            controllers_stopped: Family::default(),
            watches_started: Family::default(),
            watches_stopped: Family::default(),
        }
    }
}

impl Families {
    fn register(&self, registry: &MetricsRegistry) {
        let all = self.clone();
        registry.register("controller_runtime_reconcile_total", "Reconciles, by result", all.runs);
        registry.register("controller_runtime_reconcile_errors_total", "Reconciles that failed", all.errors);
        registry.register(
            "controller_runtime_reconcile_panics_total",
            "Reconciles that panicked, which is a bug",
            all.panics,
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciles took",
            all.run_seconds,
        );
        registry.register(
            "engine_controllers_started_total",
            "Controllers that were started",
            all.controllers_started,
        );
        registry.register(
            "engine_controllers_stopped_total",
            "Controllers that were stopped",
            all.controllers_stopped,
        );
        registry.register(
            "engine_watches_started_total",
            "Watches that were started, by the type of what they watch",
            all.watches_started,
        );
        registry.register(
            "engine_watches_stopped_total",
            "Watches that were stopped, by the type of what they watched",
            all.watches_stopped,
        );
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(&MetricsRegistry::default())
    }
}

impl Metrics {
    /// Adds the families of controllers to a registry.
    pub fn new(registry: &MetricsRegistry) -> Self {
        let (families, queues) = (Families::default(), QueueMetrics::default());
        families.register(registry);
        queues.register(registry);
        Self { registry: registry.clone(), families, queues }
    }

    pub(crate) fn controller_started(&self, controller: &str, queue: &Arc<Queue>) -> Arc<ControllerMetrics> {
        let metrics = self.of_controller(controller);
        self.families.controllers_started.get_or_create(&metrics.labels).inc();
        self.queues.add(controller, queue);
        metrics
    }

    pub(crate) fn controller_stopped(&self, controller: &str, queue: &Arc<Queue>) {
        let labels = ControllerLabels { controller: controller.into() };
        self.families.controllers_stopped.get_or_create(&labels).inc();
        self.queues.remove(controller, queue);
    }

    /// The handles of a controller.
    pub(crate) fn of_controller(&self, controller: &str) -> Arc<ControllerMetrics> {
        Arc::new(ControllerMetrics {
            families: self.families.clone(),
            labels: ControllerLabels { controller: controller.into() },
            runs: Default::default(),
            errors: OnceLock::new(),
            run_seconds: OnceLock::new(),
        })
    }

    /// Counts a watch until the returned value is dropped.
    pub fn watching(&self, controller: &str, kind: &'static str) -> CountedWatch {
        let labels = WatchLabels { controller: controller.into(), r#type: kind };
        self.families.watches_started.get_or_create(&labels).inc();
        CountedWatch { stopped: self.families.watches_stopped.clone(), labels }
    }

    /// The counts of the queues of all running controllers together.
    pub fn queues(&self) -> Counts {
        self.queues.counts()
    }

    /// Whether a key of a running controller waits because its last run failed, or because it is slowed down.
    pub fn awaits_retry(&self) -> bool {
        self.queues.awaits_retry()
    }

    /// Everything in the registry that these metrics were added to, in the text format of Prometheus.
    pub fn render(&self) -> String {
        self.registry.render()
    }
}

/// The metrics of one controller. A series exists from its first use, and is found by its labels only then.
pub(crate) struct ControllerMetrics {
    families: Families,
    labels: ControllerLabels,
    /// By result.
    runs: [OnceLock<Counter>; 4],
    errors: OnceLock<Counter>,
    run_seconds: OnceLock<Histogram>,
}

impl ControllerMetrics {
    pub(crate) fn reconciled(&self, result: RunResult, took: Duration) {
        let runs = self.runs[result as usize].get_or_init(|| {
            let labels = RunLabels { controller: self.labels.controller.clone(), result: result.as_str() };
            self.families.runs.get_or_create_owned(&labels)
        });
        runs.inc();
        if result == RunResult::Error {
            self.errors.get_or_init(|| self.families.errors.get_or_create_owned(&self.labels)).inc();
        }
        let seconds =
            self.run_seconds.get_or_init(|| self.families.run_seconds.get_or_create_owned(&self.labels));
        seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn panicked(&self) {
        self.families.panics.get_or_create(&self.labels).inc();
    }
}

/// A watch that is counted; dropping this counts its end.
pub struct CountedWatch {
    stopped: Family<WatchLabels, Counter>,
    labels: WatchLabels,
}

impl Drop for CountedWatch {
    fn drop(&mut self) {
        self.stopped.get_or_create(&self.labels).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, Pace};

    fn must_show(metrics: &Metrics, lines: &[&str]) {
        let text = metrics.render();
        for line in lines {
            assert!(text.lines().any(|l| l == *line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn metrics_are_shown_as_prometheus_reads_them() {
        let metrics = Metrics::default();
        let controller = metrics.of_controller("composite/x");
        controller.reconciled(RunResult::Error, Duration::from_millis(3));
        metrics.of_controller("a\"b\\c\nü").panicked();
        must_show(
            &metrics,
            &[
                "controller_runtime_reconcile_total{controller=\"composite/x\",result=\"error\"} 1",
                "controller_runtime_reconcile_errors_total{controller=\"composite/x\"} 1",
                "controller_runtime_reconcile_time_seconds_bucket{controller=\"composite/x\",le=\"0.0025\"} 0",
                "controller_runtime_reconcile_time_seconds_bucket{controller=\"composite/x\",le=\"0.005\"} 1",
                "controller_runtime_reconcile_time_seconds_bucket{controller=\"composite/x\",le=\"1\"} 1",
                "controller_runtime_reconcile_time_seconds_count{controller=\"composite/x\"} 1",
                "controller_runtime_reconcile_panics_total{controller=\"a\\\"b\\\\c\\nü\"} 1",
            ],
        );
    }

    #[tokio::test(start_paused = true)]
    async fn queues_are_counted_while_they_live_and_remembered_afterwards() {
        let metrics = Metrics::default();
        let queue = Arc::new(Queue::new(Pace { burst: 2, circuit_breaker: true, ..Pace::default() }));
        metrics.controller_started("composite/x", &queue);
        for _ in 0..3 {
            queue.wake(&Key::new("", "a"));
            if queue.counts().ready > 0 {
                let key = queue.next().await.unwrap();
                queue.done(&key, crate::Next::Wait, crate::SeenVersions::default());
            }
        }
        let slowed = [
            "workqueue_adds_total{controller=\"composite/x\",name=\"composite/x\"} 2",
            "circuit_breaker_opens_total{controller=\"composite/x\"} 1",
            "circuit_breaker_closes_total{controller=\"composite/x\"} 0",
            "circuit_breaker_events_total{controller=\"composite/x\",result=\"Allowed\"} 2",
            "circuit_breaker_events_total{controller=\"composite/x\",result=\"HalfOpenAllowed\"} 1",
        ];
        must_show(&metrics, &slowed);
        must_show(&metrics, &["workqueue_depth{controller=\"composite/x\",name=\"composite/x\"} 0"]);
        tokio::time::sleep(Duration::from_secs(5)).await;
        queue.wake(&Key::new("", "a"));
        must_show(
            &metrics,
            &[
                "circuit_breaker_closes_total{controller=\"composite/x\"} 1",
                "workqueue_depth{controller=\"composite/x\",name=\"composite/x\"} 1",
            ],
        );
        metrics.controller_stopped("composite/x", &queue);
        drop(queue);
        must_show(
            &metrics,
            &[
                "circuit_breaker_closes_total{controller=\"composite/x\"} 1",
                "engine_controllers_stopped_total{controller=\"composite/x\"} 1",
            ],
        );
        assert!(!metrics.render().contains("workqueue_depth"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_controller_that_starts_again_continues_its_counts() {
        let metrics = Metrics::default();
        for _ in 0..2 {
            let queue = Arc::new(Queue::new(Pace::default()));
            metrics.controller_started("claim/x", &queue);
            queue.wake(&Key::new("", "a"));
            drop(metrics.watching("claim/x", "Claim"));
            metrics.controller_stopped("claim/x", &queue);
        }
        let again = Arc::new(Queue::new(Pace::default()));
        metrics.controller_started("claim/x", &again);
        again.wake(&Key::new("", "a"));
        must_show(
            &metrics,
            &[
                "engine_controllers_started_total{controller=\"claim/x\"} 3",
                "engine_controllers_stopped_total{controller=\"claim/x\"} 2",
                "engine_watches_started_total{controller=\"claim/x\",type=\"Claim\"} 2",
                "engine_watches_stopped_total{controller=\"claim/x\",type=\"Claim\"} 2",
                "workqueue_adds_total{controller=\"claim/x\",name=\"claim/x\"} 3",
                "workqueue_depth{controller=\"claim/x\",name=\"claim/x\"} 1",
                "controller_runtime_active_workers{controller=\"claim/x\"} 0",
            ],
        );
        assert!(!metrics.render().contains("circuit_breaker"), "its queue has none");
    }
}
