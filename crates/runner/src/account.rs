//! The metrics of calls, with the names and labels that Crossplane uses.

use std::time::Duration;
use tonic::Code;
use transom_function::{RunFunctionResponse, Severity};

/// Counts what happens.
pub trait Account: Send + Sync {
    /// Adds to a counter.
    fn add(&self, name: &'static str, labels: &[(&'static str, &str)], count: u64);

    /// Adds to a histogram of durations.
    fn time(&self, name: &'static str, labels: &[(&'static str, &str)], took: Duration);
}

/// Counts nothing.
pub(crate) struct NoopAccount;

impl Account for NoopAccount {
    fn add(&self, _: &'static str, _: &[(&'static str, &str)], _: u64) {}

    fn time(&self, _: &'static str, _: &[(&'static str, &str)], _: Duration) {}
}

/// The value of the label `grpc_method`, for functions in this process too.
const METHOD: &str = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

/// What is called: the labels of a call.
pub(crate) struct Call<'a> {
    pub(crate) function: &'a str,
    pub(crate) package: &'a str,
    pub(crate) target: &'a str,
}

impl Call<'_> {
    fn labels(&self) -> [(&'static str, &str); 4] {
        [
            ("function_name", self.function),
            ("function_package", self.package),
            ("grpc_target", self.target),
            ("grpc_method", METHOD),
        ]
    }

    pub(crate) fn sent(&self, account: &dyn Account) {
        account.add("function_run_function_request_total", &self.labels(), 1);
    }

    pub(crate) fn ended(&self, account: &dyn Account, code: Code, severity: &str, took: Duration) {
        let [name, package, target, method] = self.labels();
        let outcome = [("grpc_code", code_name(code)), ("result_severity", severity)];
        let labels = [name, package, target, method, outcome[0], outcome[1]];
        account.add("function_run_function_response_total", &labels, 1);
        account.time("function_run_function_seconds", &labels, took);
    }
}

/// A code as gRPC for Go writes it.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
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
