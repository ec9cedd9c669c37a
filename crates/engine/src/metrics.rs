//! The metrics of controllers, under the names that Crossplane and controller-runtime use.
//!
//! Counters and histograms are updated as things happen. The counts of a [`Queue`] are read when the metrics are
//! rendered, and are added to the counters when its controller stops.

use crate::{Counts, Queue};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Upper bounds of the buckets of durations, in seconds: Prometheus' own, and some on either side.
const BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];

#[derive(Default)]
struct Histogram {
    counts: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

impl Histogram {
    fn observe(&mut self, seconds: f64) {
        for (count, bound) in self.counts.iter_mut().zip(BUCKETS) {
            *count += u64::from(seconds <= bound);
        }
        self.count += 1;
        self.sum += seconds;
    }
}

/// Labels in the order they are shown.
type Labels = Vec<(&'static str, String)>;
type Counters = BTreeMap<&'static str, BTreeMap<Labels, u64>>;

#[derive(Default)]
struct Series {
    counters: Counters,
    histograms: BTreeMap<&'static str, BTreeMap<Labels, Histogram>>,
    queues: Vec<(String, Weak<Queue>)>,
}

/// Counters and histograms by name and labels.
#[derive(Default)]
pub struct Metrics(Mutex<Series>);

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, Series> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to a counter.
    pub fn add(&self, name: &'static str, labels: &[(&'static str, &str)], count: u64) {
        add(&mut self.lock().counters, name, labels, count);
    }

    /// Adds to a histogram.
    pub fn observe(&self, name: &'static str, labels: &[(&'static str, &str)], took: Duration) {
        let mut series = self.lock();
        let histograms = series.histograms.entry(name).or_default();
        histograms.entry(owned(labels)).or_default().observe(took.as_secs_f64());
    }

    pub(crate) fn controller_started(&self, controller: &str, queue: &Arc<Queue>) {
        self.add("engine_controllers_started_total", &[("controller", controller)], 1);
        self.lock().queues.push((controller.to_owned(), Arc::downgrade(queue)));
    }

    pub(crate) fn controller_stopped(&self, controller: &str, queue: &Arc<Queue>) {
        self.add("engine_controllers_stopped_total", &[("controller", controller)], 1);
        let mut series = self.lock();
        let this = Arc::downgrade(queue);
        series.queues.retain(|(_, queue)| !queue.ptr_eq(&this));
        add_counts(&mut series.counters, controller, queue);
    }

    /// Counts a watch until the returned value is dropped.
    pub fn watching(self: &Arc<Self>, controller: &str, kind: &'static str) -> CountedWatch {
        self.add("engine_watches_started_total", &[("controller", controller), ("type", kind)], 1);
        CountedWatch { metrics: self.clone(), controller: controller.to_owned(), kind }
    }

    pub(crate) fn reconciled(&self, controller: &str, result: &str, took: Duration) {
        let name = ("controller", controller);
        self.add("controller_runtime_reconcile_total", &[name, ("result", result)], 1);
        if result == "error" {
            self.add("controller_runtime_reconcile_errors_total", &[name], 1);
        }
        self.observe("controller_runtime_reconcile_time_seconds", &[name], took);
    }

    pub(crate) fn panicked(&self, controller: &str) {
        self.add("controller_runtime_reconcile_panics_total", &[("controller", controller)], 1);
    }

    /// The counts of the queues of all running controllers together.
    pub fn queues(&self) -> Counts {
        let queues = self.lock().queues.clone();
        let counts = queues.iter().filter_map(|(_, queue)| queue.upgrade()).map(|queue| queue.counts());
        counts.fold(Counts::default(), |sum, counts| sum + counts)
    }

    /// Everything in the text format of Prometheus.
    pub fn render(&self) -> String {
        let series = self.lock();
        let mut counters = series.counters.clone();
        let mut gauges = Counters::new();
        for (controller, queue) in &series.queues {
            let Some(queue) = queue.upgrade() else { continue };
            add_counts(&mut counters, controller, &queue);
            let counts = queue.counts();
            let name = ("controller", controller.as_str());
            add(&mut gauges, "controller_runtime_active_workers", &[name], counts.running);
            add(&mut gauges, "workqueue_depth", &[name, ("name", controller)], counts.ready);
        }
        let mut out = String::new();
        show(&mut out, "counter", &counters);
        show(&mut out, "gauge", &gauges);
        for (name, values) in &series.histograms {
            let _ = writeln!(out, "# TYPE {name} histogram");
            for (labels, histogram) in values {
                for (count, bound) in histogram.counts.iter().zip(BUCKETS) {
                    let _ = writeln!(out, "{name}_bucket{} {count}", shown(labels, Some(&bound)));
                }
                let _ = writeln!(out, "{name}_bucket{} {}", shown(labels, Some(&"+Inf")), histogram.count);
                let _ = writeln!(out, "{name}_sum{} {}", shown(labels, None), histogram.sum);
                let _ = writeln!(out, "{name}_count{} {}", shown(labels, None), histogram.count);
            }
        }
        out
    }
}

/// A watch that is counted; dropping this counts its end.
pub struct CountedWatch {
    metrics: Arc<Metrics>,
    controller: String,
    kind: &'static str,
}

impl Drop for CountedWatch {
    fn drop(&mut self) {
        let labels = [("controller", self.controller.as_str()), ("type", self.kind)];
        self.metrics.add("engine_watches_stopped_total", &labels, 1);
    }
}

fn owned(labels: &[(&'static str, &str)]) -> Labels {
    labels.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
}

fn add(counters: &mut Counters, name: &'static str, labels: &[(&'static str, &str)], count: u64) {
    *counters.entry(name).or_default().entry(owned(labels)).or_default() += count;
}

/// Adds the counts of a queue. Where Crossplane opens a circuit breaker and drops changes, a queue slows a key down and
/// drops nothing.
fn add_counts(counters: &mut Counters, controller: &str, queue: &Queue) {
    let counts = queue.counts();
    let name = ("controller", controller);
    let labels = [name, ("name", controller)];
    add(counters, "workqueue_adds_total", &labels, counts.adds);
    add(counters, "workqueue_retries_total", &labels, counts.retries);
    if queue.has_circuit_breaker() {
        add(counters, "circuit_breaker_opens_total", &[name], counts.slowed);
        add(counters, "circuit_breaker_closes_total", &[name], counts.recovered);
        let events = "circuit_breaker_events_total";
        add(counters, events, &[name, ("result", "Allowed")], counts.at_once);
        add(counters, events, &[name, ("result", "HalfOpenAllowed")], counts.delayed);
    }
}

fn show(out: &mut String, kind: &str, values: &Counters) {
    for (name, values) in values {
        let _ = writeln!(out, "# TYPE {name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(out, "{name}{} {value}", shown(labels, None));
        }
    }
}

fn shown(labels: &Labels, bound: Option<&dyn Display>) -> String {
    let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let mut parts: Vec<String> = labels.iter().map(|(k, v)| format!("{k}=\"{}\"", escape(v))).collect();
    parts.extend(bound.map(|b| format!("le=\"{b}\"")));
    if parts.is_empty() { String::new() } else { format!("{{{}}}", parts.join(",")) }
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
        metrics.reconciled("composite/x", "error", Duration::from_millis(3));
        metrics.add("odd_total", &[("name", "a\"b\\c\nü")], 2);
        must_show(
            &metrics,
            &[
                "controller_runtime_reconcile_total{controller=\"composite/x\",result=\"error\"} 1",
                "controller_runtime_reconcile_errors_total{controller=\"composite/x\"} 1",
                "controller_runtime_reconcile_time_seconds_bucket{controller=\"composite/x\",le=\"0.0025\"} 0",
                "controller_runtime_reconcile_time_seconds_bucket{controller=\"composite/x\",le=\"0.005\"} 1",
                "controller_runtime_reconcile_time_seconds_bucket{controller=\"composite/x\",le=\"1\"} 1",
                "controller_runtime_reconcile_time_seconds_count{controller=\"composite/x\"} 1",
                "odd_total{name=\"a\\\"b\\\\c\\nü\"} 2",
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
}
