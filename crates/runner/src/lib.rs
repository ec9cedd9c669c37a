//! Calls functions: in this process, or over gRPC.
//!
//! [`Functions`] knows, for every Function by name, where it runs. A call has a deadline, and ends in an answer or in
//! an error that names the function; whatever a function does, it cannot do more than that.

mod endpoint;
mod functions;

pub use endpoint::{Endpoint, EndpointError, Tls};
pub use functions::{Functions, Options};
