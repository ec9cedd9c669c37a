//! The metrics of requests, under the names that kube-apiserver uses where they mean the same.

use crate::body::ApiBody;
use crate::request::RequestInfo;
use http::{HeaderValue, Response, StatusCode, header};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use transom_metrics::{CONTENT_TYPE, LabelValue, MetricsRegistry};

/// Upper bounds of the buckets of durations, in seconds.
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

    fn encodable(&self) -> RequestLabels {
        RequestLabels {
            verb: self.verb.to_uppercase().into(),
            group: self.group.as_str().into(),
            version: self.version.as_str().into(),
            resource: self.resource.as_str().into(),
            subresource: self.subresource.as_str().into(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: LabelValue,
    group: LabelValue,
    version: LabelValue,
    resource: LabelValue,
    subresource: LabelValue,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    #[prometheus(flatten)]
    request: RequestLabels,
    code: u16,
}

/// The metrics of requests with the same labels.
struct Handles {
    labels: RequestLabels,
    by_code: BTreeMap<u16, Counter>,
    seconds: Histogram,
}

pub(crate) struct Metrics {
    registry: MetricsRegistry,
    requests: Family<ResponseLabels, Counter>,
    seconds: Family<RequestLabels, Histogram>,
    /// A request costs one lookup here and none in the families.
    handles: Mutex<BTreeMap<Label, Handles>>,
}

impl Metrics {
    /// Adds the families of requests to a registry, which is served at `/metrics`.
    pub(crate) fn new(registry: MetricsRegistry) -> Self {
        let requests = Family::default();
        let seconds = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        registry.register(
            "apiserver_request_total",
            "Requests by verb, resource and code",
            Family::clone(&requests),
        );
        registry.register(
            "apiserver_request_duration_seconds",
            "How long requests took; for watches, until they were open",
            Family::clone(&seconds),
        );
        Self { registry, requests, seconds, handles: Mutex::default() }
    }

    pub(crate) fn observe(&self, label: Label, code: StatusCode, took: Duration) {
        let mut all = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_SERIES && !all.contains_key(&label) {
            return;
        }
        let Handles { labels, by_code, seconds } = all.entry(label).or_insert_with_key(|label| {
            let labels = label.encodable();
            let seconds = self.seconds.get_or_create_owned(&labels);
            Handles { labels, by_code: BTreeMap::new(), seconds }
        });
        let code = code.as_u16();
        let requests = by_code.entry(code).or_insert_with(|| {
            self.requests.get_or_create_owned(&ResponseLabels { request: labels.clone(), code })
        });
        requests.inc();
        seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn answer(&self) -> Response<ApiBody> {
        let mut response = Response::new(ApiBody::from(self.registry.render().into_bytes()));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(verb: &'static str, resource: &str) -> Label {
        Label { verb, resource: resource.to_owned(), ..Label::of(None) }
    }

    #[test]
    fn requests_are_counted_by_code_and_time() {
        let registry = MetricsRegistry::default();
        let metrics = Metrics::new(registry.clone());
        for (code, millis) in [(200, 2), (404, 1), (200, 700)] {
            let code = StatusCode::from_u16(code).unwrap();
            metrics.observe(label("get", "odd\"name"), code, Duration::from_millis(millis));
        }
        let text = registry.render();
        let labels = "verb=\"GET\",group=\"\",version=\"\",resource=\"odd\\\"name\",subresource=\"\"";
        for line in [
            format!("apiserver_request_total{{{labels},code=\"200\"}} 2"),
            format!("apiserver_request_total{{{labels},code=\"404\"}} 1"),
            format!("apiserver_request_duration_seconds_bucket{{{labels},le=\"0.001\"}} 1"),
            format!("apiserver_request_duration_seconds_bucket{{{labels},le=\"1\"}} 3"),
            format!("apiserver_request_duration_seconds_count{{{labels}}} 3"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn made_up_paths_do_not_fill_memory() {
        let registry = MetricsRegistry::default();
        let metrics = Metrics::new(registry.clone());
        for n in 0..MAX_SERIES + 10 {
            metrics.observe(label("list", &n.to_string()), StatusCode::NOT_FOUND, Duration::ZERO);
        }
        metrics.observe(label("list", "0"), StatusCode::NOT_FOUND, Duration::ZERO);
        let text = registry.render();
        let counted = text.lines().filter(|line| line.starts_with("apiserver_request_total{"));
        assert_eq!(counted.count(), MAX_SERIES);
        assert!(
            text.contains("resource=\"0\",subresource=\"\",code=\"404\"} 2\n"),
            "known ones are still counted"
        );
    }
}
