//! The metrics of calls, with the names and labels that Crossplane uses.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tonic::Code;
use transom_function::{RunFunctionResponse, Severity, grpc_code_name};
use transom_metrics::{LabelValue, MetricsRegistry};

/// Upper bounds of the buckets of durations, in seconds: Prometheus' own, and some on either side.
const BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];
/// The value of the label `grpc_method`, for functions in this process too.
const METHOD: &str = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    function_name: LabelValue,
    function_package: LabelValue,
    grpc_target: LabelValue,
    grpc_method: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    #[prometheus(flatten)]
    request: RequestLabels,
    grpc_code: &'static str,
    result_severity: &'static str,
}

/// The label of everything about the response cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct FunctionLabels {
    function_name: LabelValue,
}

impl FunctionLabels {
    pub(crate) fn of(function: &str) -> Self {
        Self { function_name: function.into() }
    }
}

type Counters<S> = Family<S, Counter>;
type Durations<S> = Family<S, Histogram>;

/// The metrics of calls and of the response cache. Clones share their content.
#[derive(Clone)]
pub struct Account {
    requests: Counters<RequestLabels>,
    responses: Counters<ResponseLabels>,
    seconds: Durations<ResponseLabels>,
    pub(crate) cache: CacheAccount,
}

/// The metrics of the response cache.
#[derive(Clone)]
pub(crate) struct CacheAccount {
    pub(crate) hits: Counters<FunctionLabels>,
    pub(crate) misses: Counters<FunctionLabels>,
    pub(crate) errors: Counters<FunctionLabels>,
    pub(crate) writes: Counters<FunctionLabels>,
    pub(crate) deletes: Counters<FunctionLabels>,
    pub(crate) bytes_written: Counters<FunctionLabels>,
    pub(crate) bytes_deleted: Counters<FunctionLabels>,
    pub(crate) read_seconds: Durations<FunctionLabels>,
    pub(crate) write_seconds: Durations<FunctionLabels>,
}

fn durations<S: Clone + std::hash::Hash + Eq>() -> Durations<S> {
    Family::new_with_constructor(|| Histogram::new(BUCKETS))
}

impl Default for Account {
    /// Metrics that are counted and not served.
    fn default() -> Self {
        Self::new(&MetricsRegistry::default())
    }
}

impl Account {
    /// Adds the families of functions to a registry.
    pub fn new(registry: &MetricsRegistry) -> Self {
        let account = Self {
            requests: Family::default(),
            responses: Family::default(),
            seconds: durations(),
            cache: CacheAccount::new(registry),
        };
        let Self { requests, responses, seconds, .. } = account.clone();
        registry.register("function_run_function_request_total", "Calls of functions", requests);
        registry.register(
            "function_run_function_response_total",
            "Calls of functions that ended, by code and severity",
            responses,
        );
        registry.register("function_run_function_seconds", "How long calls of functions took", seconds);
        account
    }

    /// The metrics of the calls of one revision.
    pub(crate) fn calls(&self, function: &str, package: &str, target: &str) -> CallAccount {
        CallAccount {
            account: self.clone(),
            labels: RequestLabels {
                function_name: function.into(),
                function_package: package.into(),
                grpc_target: target.into(),
                grpc_method: METHOD,
            },
            requests: OnceLock::new(),
            responses: Mutex::default(),
        }
    }
}

impl CacheAccount {
    fn new(registry: &MetricsRegistry) -> Self {
        let counter = |name, help| {
            let counters = Counters::default();
            registry.register(name, help, counters.clone());
            counters
        };
        let histogram = |name, help| {
            let histograms = durations();
            registry.register(name, help, histograms.clone());
            histograms
        };
        Self {
            hits: counter(
                "function_run_function_response_cache_hits_total",
                "Requests that were answered from the cache",
            ),
            misses: counter(
                "function_run_function_response_cache_misses_total",
                "Requests that were not answered from the cache",
            ),
            errors: counter(
                "function_run_function_response_cache_errors_total",
                "Cached responses that could not be read",
            ),
            writes: counter(
                "function_run_function_response_cache_writes_total",
                "Responses that were added to the cache",
            ),
            deletes: counter(
                "function_run_function_response_cache_deletes_total",
                "Responses that were removed from the cache",
            ),
            bytes_written: counter(
                "function_run_function_response_cache_bytes_written_total",
                "Bytes of responses that were added to the cache",
            ),
            bytes_deleted: counter(
                "function_run_function_response_cache_bytes_deleted_total",
                "Bytes of responses that were removed from the cache",
            ),
            read_seconds: histogram(
                "function_run_function_response_cache_read_seconds",
                "How long reading a response from the cache took",
            ),
            write_seconds: histogram(
                "function_run_function_response_cache_write_seconds",
                "How long adding a response to the cache took",
            ),
        }
    }
}

/// How a call ended: its code and the severity of its response.
type Outcome = (Code, &'static str);

/// The metrics of the calls of one revision. A series exists from its first use, and is found by its labels only then.
pub(crate) struct CallAccount {
    account: Account,
    labels: RequestLabels,
    requests: OnceLock<Counter>,
    /// Few: most calls end in the same way.
    responses: Mutex<Vec<(Outcome, Arc<ResponseHandles>)>>,
}

struct ResponseHandles {
    responses: Counter,
    seconds: Histogram,
}

impl CallAccount {
    pub(crate) fn sent(&self) {
        self.requests.get_or_init(|| self.account.requests.get_or_create_owned(&self.labels)).inc();
    }

    pub(crate) fn ended(&self, code: Code, severity: &'static str, took: Duration) {
        let handles = self.handles((code, severity));
        handles.responses.inc();
        handles.seconds.observe(took.as_secs_f64());
    }

    fn handles(&self, outcome: Outcome) -> Arc<ResponseHandles> {
        let mut known = self.responses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, handles)) = known.iter().find(|(known, _)| *known == outcome) {
            return handles.clone();
        }
        let (code, result_severity) = outcome;
        let labels =
            ResponseLabels { request: self.labels.clone(), grpc_code: grpc_code_name(code), result_severity };
        let handles = Arc::new(ResponseHandles {
            responses: self.account.responses.get_or_create_owned(&labels),
            seconds: self.account.seconds.get_or_create_owned(&labels),
        });
        known.push((outcome, handles.clone()));
        handles
    }
}

/// The severity of a response: that of its worst result.
pub(crate) fn severity(response: &RunFunctionResponse) -> &'static str {
    let any = |severity| response.results.iter().any(|result| result.severity() == severity);
    if any(Severity::Fatal) {
        "Fatal"
    } else if any(Severity::Warning) {
        "Warning"
    } else {
        "Normal"
    }
}
