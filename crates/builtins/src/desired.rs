//! What functions written in Go do to the desired composed resources by merely reading and writing them back: each
//! has an object, if an empty one, and no connection details; an unknown readiness is left unspecified.

use transom_function::{Ready, RunFunctionResponse, State, Struct};

/// Writes the desired composed resources back as they were read.
pub(crate) fn write_back(response: &mut RunFunctionResponse) -> &mut State {
    let state = response.desired.get_or_insert_with(State::default);
    for resource in state.resources.values_mut() {
        resource.resource.get_or_insert_with(Struct::default);
        resource.connection_details.clear();
        resource.set_ready(Ready::try_from(resource.ready).unwrap_or_default());
    }
    state
}
