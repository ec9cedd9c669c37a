//! What a gRPC status of a function means.

use crate::endpoint::connection_causes;
use tonic::{Code, Status};
use transom_compose::{GrpcCode, RunError};

/// A call that ended in a status, by a function at a location.
pub(crate) fn failed(function: String, location: &str, status: &Status) -> RunError {
    // A status with a source was made from it in this process: its message is the text of one of the sources.
    let why = match std::error::Error::source(status) {
        Some(source) => connection_causes(source),
        None => status.message().to_owned(),
    };
    let remedy = if is_request_refused(status) { REQUEST_REFUSED } else { "" };
    RunError::Failed {
        function,
        code: grpc_code(status.code()),
        message: format!("{why} ({location}){remedy}"),
    }
}

/// What helps when a function refuses a request for its size.
const REQUEST_REFUSED: &str =
    "; the function does not accept requests of this size: start it with a larger --max-recv-message-size";

/// Whether a function in Go has refused a request for its size. It accepts 4 MiB unless it is started otherwise.
fn is_request_refused(status: &Status) -> bool {
    status.code() == Code::ResourceExhausted && status.message().contains("received message larger than max")
}

/// The code of a call that failed. A status that is an error although its code is `Ok` has no known code.
pub(crate) fn grpc_code(code: Code) -> GrpcCode {
    match code {
        Code::Ok | Code::Unknown => GrpcCode::Unknown,
        Code::Cancelled => GrpcCode::Cancelled,
        Code::InvalidArgument => GrpcCode::InvalidArgument,
        Code::DeadlineExceeded => GrpcCode::DeadlineExceeded,
        Code::NotFound => GrpcCode::NotFound,
        Code::AlreadyExists => GrpcCode::AlreadyExists,
        Code::PermissionDenied => GrpcCode::PermissionDenied,
        Code::ResourceExhausted => GrpcCode::ResourceExhausted,
        Code::FailedPrecondition => GrpcCode::FailedPrecondition,
        Code::Aborted => GrpcCode::Aborted,
        Code::OutOfRange => GrpcCode::OutOfRange,
        Code::Unimplemented => GrpcCode::Unimplemented,
        Code::Internal => GrpcCode::Internal,
        Code::Unavailable => GrpcCode::Unavailable,
        Code::DataLoss => GrpcCode::DataLoss,
        Code::Unauthenticated => GrpcCode::Unauthenticated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_a_function_in_go_refuses_has_a_remedy() {
        let refused = "grpc: received message larger than max (5000000 vs. 4194304)";
        for (message, has_remedy) in [(refused, true), ("quota exceeded", false)] {
            let error = failed("f".to_owned(), "at f:9443", &Status::resource_exhausted(message)).to_string();
            assert!(error.contains(message) && error.contains("(at f:9443)"), "{error}");
            assert_eq!(error.contains("--max-recv-message-size"), has_remedy, "{error}");
        }
    }
}
