//! Calls functions: in this process, or over gRPC; and gives answers again while they hold, if asked to.
//!
//! [`Functions`] knows, for every Function by name, where it runs. A call has a deadline, and ends in an answer or in
//! an error that names the function; whatever a function does, it cannot do more than that.
//! [`Cached`] is in front of them, if answers are to be kept. An [`Account`] is told what to count.

mod account;
mod cached;
mod endpoint;
mod functions;

pub use account::Account;
pub use cached::{CacheOptions, Cached};
pub use endpoint::{Endpoint, EndpointError, Tls};
pub use functions::{Functions, Options};
