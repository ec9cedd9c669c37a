//! Runs and calls functions: in this process, or over gRPC; and caches their responses, if asked to.
//!
//! | module | what it holds |
//! |---|---|
//! | `source` | [`Resolver`]: from a Function or FunctionRevision to where its implementation comes from; pure |
//! | `revision` | [`RevisionSpec`]: one version of a function, the unit that is run and called |
//! | `runtime` | [`FunctionRuntime`]: starts and stops revisions; [`LocalRuntime`] needs no containers |
//! | `provider` | [`ProviderRuntime`]: starts and stops the programs of Providers, which are not called |
//! | `instance` | [`Instance`]: what a runtime returns, something that can be called |
//! | `balance` | calls spread over the addresses of a name |
//! | `routes` | the instances by function and revision, and the choice between them; pure |
//! | `router` | [`Router`]: calls the revision that a step wants |
//! | `failure` | what a gRPC status of a function means; pure |
//! | `assembly` | [`Assembly`]: the resolver, runtime and router of the functions of a process |
//! | `inline` | [`InlineRunner`]: runs the inline functions of steps |
//! | `installer` | [`Installer`]: resolver, runtime and router together; swaps revisions without a gap |
//! | `cached` | [`Cached`]: in front of a router, returns responses again within their TTL |
//!
//! Every call ends in a response or in an error that names the function. The crate must not know Kubernetes objects as they are stored,
//! or how they are read and written: the controllers of packages do that, and call the installer.

#![warn(missing_docs)]

mod account;
mod assembly;
mod balance;
mod cached;
mod endpoint;
mod failure;
mod health;
mod inline;
mod installer;
mod instance;
mod provider;
mod remote;
mod revision;
mod router;
mod routes;
mod runtime;
mod source;

pub use account::Account;
pub use assembly::Assembly;
pub use balance::Lookup;
pub use cached::{CacheOptions, Cached};
pub use endpoint::{Dial, Endpoint, EndpointError, ReadTls, ReadTlsError, Tls, UnreachableError};
pub use inline::{InlineCall, InlineRunner};
pub use installer::Installer;
pub use instance::{InProcess, Instance};
pub use provider::{ProviderChanged, ProviderRuntime, ProviderSpec, ProviderState, WithoutProviders};
pub use remote::Remote;
pub use revision::{PackageImage, RevisionId, RevisionSpec};
pub use router::{Callable, Options, Router};
pub use runtime::{
    Changed, FindBuiltin, FindVersion, FunctionRuntime, LocalRuntime, Problem, Reason, RuntimeState,
};
pub use source::{
    DEVELOPMENT_TARGET_ANNOTATION, ENDPOINT_ANNOTATION, FORCED_RUNTIME_ANNOTATION, RUNTIME_ANNOTATION,
    Resolver, SOURCE_ANNOTATIONS, Source,
};
