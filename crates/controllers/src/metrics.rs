//! What the controllers count, under the names that Crossplane and controller-runtime use.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Upper bounds of the buckets of durations, in seconds.
const BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0];

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

#[derive(Default)]
struct Series {
    counters: BTreeMap<&'static str, BTreeMap<Labels, u64>>,
    histograms: BTreeMap<&'static str, BTreeMap<Labels, Histogram>>,
}

#[derive(Default)]
pub struct Metrics(Mutex<Series>);

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, Series> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one to a counter.
    pub fn count(&self, name: &'static str, labels: Labels) {
        *self.lock().counters.entry(name).or_default().entry(labels).or_default() += 1;
    }

    pub fn observe(&self, name: &'static str, labels: Labels, duration: Duration) {
        let mut series = self.lock();
        series.histograms.entry(name).or_default().entry(labels).or_default().observe(duration.as_secs_f64());
    }

    pub(crate) fn controller_started(&self, controller: &str) {
        self.count("engine_controllers_started_total", vec![("controller", controller.to_owned())]);
    }

    pub(crate) fn controller_stopped(&self, controller: &str) {
        self.count("engine_controllers_stopped_total", vec![("controller", controller.to_owned())]);
    }

    pub(crate) fn reconciled(&self, controller: &str, result: &str, took: Duration) {
        let name = ("controller", controller.to_owned());
        self.count("controller_runtime_reconcile_total", vec![name.clone(), ("result", result.to_owned())]);
        if result == "error" {
            self.count("controller_runtime_reconcile_errors_total", vec![name.clone()]);
        }
        self.observe("controller_runtime_reconcile_time_seconds", vec![name], took);
    }

    /// Everything in the text format of Prometheus.
    pub fn render(&self) -> String {
        let series = self.lock();
        let mut out = String::new();
        for (name, values) in &series.counters {
            let _ = writeln!(out, "# TYPE {name} counter");
            for (labels, value) in values {
                let _ = writeln!(out, "{name}{} {value}", shown(labels, None));
            }
        }
        for (name, values) in &series.histograms {
            let _ = writeln!(out, "# TYPE {name} histogram");
            for (labels, histogram) in values {
                for (count, bound) in histogram.counts.iter().zip(BUCKETS) {
                    let _ = writeln!(out, "{name}_bucket{} {count}", shown(labels, Some(&bound.to_string())));
                }
                let _ = writeln!(out, "{name}_bucket{} {}", shown(labels, Some("+Inf")), histogram.count);
                let _ = writeln!(out, "{name}_sum{} {}", shown(labels, None), histogram.sum);
                let _ = writeln!(out, "{name}_count{} {}", shown(labels, None), histogram.count);
            }
        }
        out
    }
}

fn shown(labels: &Labels, bound: Option<&str>) -> String {
    let mut parts: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v:?}")).collect();
    parts.extend(bound.map(|b| format!("le=\"{b}\"")));
    if parts.is_empty() { String::new() } else { format!("{{{}}}", parts.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_shown_as_prometheus_reads_them() {
        let metrics = Metrics::default();
        metrics.reconciled("composite/x", "error", Duration::from_millis(3));
        let text = metrics.render();
        for line in [
            "controller_runtime_reconcile_total{controller=\"composite/x\",result=\"error\"} 1",
            "controller_runtime_reconcile_errors_total{controller=\"composite/x\"} 1",
            "controller_runtime_reconcile_time_seconds_bucket{controller=\"composite/x\",le=\"0.0025\"} 0",
            "controller_runtime_reconcile_time_seconds_bucket{controller=\"composite/x\",le=\"0.005\"} 1",
            "controller_runtime_reconcile_time_seconds_count{controller=\"composite/x\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
