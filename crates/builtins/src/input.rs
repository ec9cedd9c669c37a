//! How most functions begin and end: their input is decoded, or refused with the original's message, and an error
//! becomes the step's fatal result.

use serde::de::DeserializeOwned;
use transom_function::{RunFunctionRequest, RunFunctionResponse};

use crate::strict;

/// The input as a type; `go` is what the original calls that type.
pub(crate) fn read<T: DeserializeOwned>(request: &RunFunctionRequest, go: &str) -> Result<T, String> {
    strict::input(request, go)
        .map_err(|error| format!("cannot get Function input from *v1.RunFunctionRequest: {error}"))
}

/// The response that `work` makes of what earlier steps want, with a fatal result if it fails.
pub(crate) fn answer(
    request: &mut RunFunctionRequest,
    work: impl FnOnce(&RunFunctionRequest, &mut RunFunctionResponse) -> Result<(), String>,
) -> RunFunctionResponse {
    let mut response = request.start_response();
    if let Err(error) = work(request, &mut response) {
        response.fatal(error);
    }
    response
}
