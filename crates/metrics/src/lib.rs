//! The metrics of a process: one registry, and its text form for Prometheus.
//!
//! Counters, gauges and histograms are those of `prometheus-client`. That crate writes OpenMetrics, where families of
//! counters have no `_total`, bounds of buckets are written as `1.0`, label values are not escaped and the order of
//! series is random. Scrapers and dashboards of kube-apiserver and Crossplane read Prometheus' own text format, so the
//! registry is rendered in that: in order, and escaped where labels are [`LabelValue`]s.
//!
//! This crate knows no metric: each crate registers its own. It does no I/O.

#![warn(missing_docs)]

mod label;
mod registry;
mod text;

pub use label::LabelValue;
pub use registry::{Descriptor, MetricsRegistry};

/// The media type of [`MetricsRegistry::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
