//! A step's input, with the words by which most functions refuse it.

use serde::de::DeserializeOwned;
use transom_function::RunFunctionRequest;

use crate::strict;

/// The input as a type; `go` is what the original calls that type.
pub fn read<T: DeserializeOwned>(request: &RunFunctionRequest, go: &str) -> Result<T, String> {
    strict::input(request, go)
        .map_err(|error| format!("cannot get Function input from *v1.RunFunctionRequest: {error}"))
}
