//! The registry that all crates of a process add their metrics to.

use crate::text::prometheus_text;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Metric, Registry};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All metrics of a process. Clones share their content.
#[derive(Clone, Debug, Default)]
pub struct MetricsRegistry(Arc<Mutex<Content>>);

#[derive(Debug, Default)]
struct Content {
    registry: Registry,
    families: BTreeMap<&'static str, &'static str>,
}

/// A family of metrics that a [`Collector`] encodes.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// The name, for counters with `_total`.
    pub name: &'static str,
    /// What is measured, without a full stop.
    pub help: &'static str,
    /// The type of all series.
    pub metric_type: MetricType,
}

impl Descriptor {
    /// A family of counters; the name ends in `_total`.
    pub const fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, help, metric_type: MetricType::Counter }
    }

    /// A family of gauges.
    pub const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, help, metric_type: MetricType::Gauge }
    }

    /// Writes HELP and TYPE. The series are written to the returned encoder.
    pub fn encode<'a>(
        &self,
        encoder: &'a mut DescriptorEncoder<'_>,
    ) -> Result<MetricEncoder<'a>, fmt::Error> {
        let help = format!("{}.", self.help);
        encoder.encode_descriptor(without_total(self.name), &help, None, self.metric_type)
    }
}

impl MetricsRegistry {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a metric or a family of metrics under the name that it is exposed with: the names of counters end in
    /// `_total`. The help text has no full stop at its end.
    pub fn register(&self, name: &'static str, help: &'static str, metric: impl Metric) {
        let metric_type = metric.metric_type();
        debug_assert_eq!(name.ends_with("_total"), matches!(metric_type, MetricType::Counter), "{name}");
        let mut content = self.lock();
        content.families.insert(name, type_name(metric_type));
        content.registry.register(without_total(name), help, metric);
    }

    /// Adds a collector, which computes the series of these families when they are rendered.
    pub fn register_collector(&self, families: &[Descriptor], collector: Box<dyn Collector>) {
        let mut content = self.lock();
        content.families.extend(families.iter().map(|family| (family.name, type_name(family.metric_type))));
        content.registry.register_collector(collector);
    }

    /// The types of all families by name, including families that have no series yet.
    pub fn families(&self) -> BTreeMap<&'static str, &'static str> {
        self.lock().families.clone()
    }

    /// All families that have series, in the text format of Prometheus and in order.
    pub fn render(&self) -> String {
        let mut encoded = String::new();
        if text::encode_registry(&mut encoded, &self.lock().registry).is_err() {
            // Only a collector could fail, by its own decision.
            return String::new();
        }
        prometheus_text(&encoded)
    }
}

/// The encoder appends `_total` to the names of counters.
fn without_total(name: &str) -> &str {
    name.strip_suffix("_total").unwrap_or(name)
}

fn type_name(metric_type: MetricType) -> &'static str {
    match metric_type {
        MetricType::Counter => "counter",
        MetricType::Gauge => "gauge",
        MetricType::Histogram => "histogram",
        MetricType::Info | MetricType::Unknown => "untyped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LabelValue;
    use prometheus_client::encoding::EncodeLabelSet;
    use prometheus_client::metrics::counter::{ConstCounter, Counter};
    use prometheus_client::metrics::family::Family;
    use prometheus_client::metrics::histogram::Histogram;

    #[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
    struct Name {
        name: LabelValue,
    }

    fn name(name: &str) -> Name {
        Name { name: name.into() }
    }

    #[test]
    fn counters_are_named_as_exposed_and_escaped() {
        let registry = MetricsRegistry::default();
        let counters = Family::<Name, Counter>::default();
        registry.register("odd_total", "Odd things", counters.clone());
        registry.register("empty_total", "Nothing", Family::<Name, Counter>::default());
        counters.get_or_create(&name("a\"b\\c\nü")).inc_by(2);
        counters.get_or_create(&name("}, {le=\"1.0\"} ")).inc();
        let expected = "# HELP odd_total Odd things.\n# TYPE odd_total counter\n\
                        odd_total{name=\"a\\\"b\\\\c\\nü\"} 2\nodd_total{name=\"}, {le=\\\"1.0\\\"} \"} 1\n";
        assert_eq!(registry.render(), expected);
        let families = [("empty_total", "counter"), ("odd_total", "counter")];
        assert_eq!(registry.families(), BTreeMap::from(families));
    }

    #[test]
    fn histograms_are_written_as_prometheus_writes_them() {
        let registry = MetricsRegistry::default();
        let family = Family::<Name, Histogram>::new_with_constructor(|| Histogram::new([0.0025, 1.0]));
        registry.register("h_seconds", "Times", family.clone());
        for series in ["b", "a", "c"] {
            family.get_or_create(&name(series)).observe(0.5);
        }
        family.get_or_create(&name("a")).observe(2.5);
        let alone = Histogram::new([10.0]);
        alone.observe(1.0);
        registry.register("alone_seconds", "One series", alone);
        let series = |name: &str, infinite: u32, sum: &str| {
            format!(
                "h_seconds_bucket{{name=\"{name}\",le=\"0.0025\"}} 0\nh_seconds_bucket{{name=\"{name}\",le=\"1\"}} 1\n\
                 h_seconds_bucket{{name=\"{name}\",le=\"+Inf\"}} {infinite}\nh_seconds_sum{{name=\"{name}\"}} {sum}\n\
                 h_seconds_count{{name=\"{name}\"}} {infinite}\n"
            )
        };
        let expected = [
            "# HELP alone_seconds One series.\n# TYPE alone_seconds histogram\nalone_seconds_bucket{le=\"10\"} 1\n",
            "alone_seconds_bucket{le=\"+Inf\"} 1\nalone_seconds_sum 1\nalone_seconds_count 1\n",
            "# HELP h_seconds Times.\n# TYPE h_seconds histogram\n",
            &series("a", 2, "3"),
            &series("b", 1, "0.5"),
            &series("c", 1, "0.5"),
        ];
        assert_eq!(registry.render(), expected.concat());
    }

    #[test]
    fn collectors_describe_their_families() {
        const FAMILY: Descriptor = Descriptor::counter("collected_total", "Collected things");

        #[derive(Debug)]
        struct Collecting;

        impl Collector for Collecting {
            fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
                use prometheus_client::encoding::EncodeMetric;
                let mut family = FAMILY.encode(&mut encoder)?;
                ConstCounter::new(3_u64).encode(family.encode_family(&name("x"))?)
            }
        }

        let registry = MetricsRegistry::default();
        registry.register_collector(&[FAMILY], Box::new(Collecting));
        let expected = "# HELP collected_total Collected things.\n# TYPE collected_total counter\n\
                        collected_total{name=\"x\"} 3\n";
        assert_eq!(registry.render(), expected);
        assert_eq!(registry.families(), BTreeMap::from([("collected_total", "counter")]));
    }
}
