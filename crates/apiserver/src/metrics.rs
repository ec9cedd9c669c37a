//! Counters in Prometheus' text form, under the names kube-apiserver uses where they mean the same.

use crate::body::ApiBody;
use crate::bootstrap::MoreMetrics;
use crate::request::RequestInfo;
use http::{HeaderValue, Response, StatusCode, header};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const BUCKETS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0];
/// Label sets kept at most, so that made-up paths cannot fill memory.
const MAX_SERIES: usize = 2_000;

/// What a request is counted under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Label {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
}

impl Label {
    pub(crate) fn of(info: Option<&RequestInfo>) -> Self {
        match info {
            Some(RequestInfo::Resource { verb, target }) => Self {
                verb: verb.as_str(),
                group: target.gvr.group.clone(),
                version: target.gvr.version.clone(),
                resource: target.gvr.resource.clone(),
                subresource: target.subresource.clone(),
            },
            _ => Self {
                verb: "other",
                group: String::new(),
                version: String::new(),
                resource: String::new(),
                subresource: String::new(),
            },
        }
    }
}

#[derive(Default)]
struct Series {
    by_code: BTreeMap<u16, u64>,
    buckets: [u64; BUCKETS.len()],
    seconds: f64,
    count: u64,
}

#[derive(Default)]
pub(crate) struct Metrics {
    series: Mutex<BTreeMap<Label, Series>>,
    /// What others in the process count.
    more: Option<MoreMetrics>,
}

impl Metrics {
    pub(crate) fn with(more: Option<MoreMetrics>) -> Self {
        Self { series: Mutex::default(), more }
    }

    pub(crate) fn observe(&self, label: Label, code: StatusCode, took: Duration) {
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_SERIES && !all.contains_key(&label) {
            return;
        }
        let series = all.entry(label).or_default();
        *series.by_code.entry(code.as_u16()).or_default() += 1;
        let seconds = took.as_secs_f64();
        for (bucket, bound) in series.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= bound);
        }
        series.seconds += seconds;
        series.count += 1;
    }

    pub(crate) fn answer(&self) -> Response<ApiBody> {
        let mut text = self.render();
        if let Some(more) = &self.more {
            text.push_str(&more());
        }
        let mut response = Response::new(ApiBody::from(text.into_bytes()));
        let ty = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, ty);
        response
    }

    fn render(&self) -> String {
        let all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        out.push_str("# HELP apiserver_request_total Requests by verb, resource and code.\n# TYPE apiserver_request_total counter\n");
        for (label, series) in all.iter() {
            for (code, n) in &series.by_code {
                let _ = writeln!(out, "apiserver_request_total{{{},code=\"{code}\"}} {n}", labels(label));
            }
        }
        out.push_str("# HELP apiserver_request_duration_seconds Time to answer (watches: to open).\n# TYPE apiserver_request_duration_seconds histogram\n");
        for (label, series) in all.iter() {
            let name = "apiserver_request_duration_seconds";
            let l = labels(label);
            for (bound, n) in BUCKETS.iter().zip(series.buckets) {
                let _ = writeln!(out, "{name}_bucket{{{l},le=\"{bound}\"}} {n}");
            }
            let _ = writeln!(out, "{name}_bucket{{{l},le=\"+Inf\"}} {}", series.count);
            let _ =
                writeln!(out, "{name}_sum{{{l}}} {}\n{name}_count{{{l}}} {}", series.seconds, series.count);
        }
        out
    }
}

fn labels(l: &Label) -> String {
    let escape = |s: &str| s.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!(
        "verb=\"{}\",group=\"{}\",version=\"{}\",resource=\"{}\",subresource=\"{}\"",
        l.verb.to_uppercase(),
        escape(&l.group),
        escape(&l.version),
        escape(&l.resource),
        escape(&l.subresource)
    )
}
