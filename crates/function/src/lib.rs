//! The composition function protocol, and the SDK to write a function with.
//!
//! A function is one step of a composition pipeline: it is given the observed state ([`RunFunctionRequest`]) and
//! returns the desired state ([`RunFunctionResponse`]). Implement [`Function`], then either call it in process ([`answer`]) or
//! serve it to any control plane that speaks the protocol ([`serve`]).
//!
//! ```
//! use transom_function::{Error, Function, Resource, RunFunctionRequest, RunFunctionResponse, async_trait};
//! use serde_json::json;
//!
//! struct Buckets;
//!
//! #[async_trait]
//! impl Function for Buckets {
//!     async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
//!         let mut response = request.start_response();
//!         let region = request.observed_composite().get_str("spec.region")?;
//!         let bucket = json!({"apiVersion": "example.org/v1", "kind": "Bucket", "spec": {"region": region}});
//!         response.set_composed("bucket", Resource::new(bucket)?);
//!         Ok(response)
//!     }
//! }
//! ```
//!
//! An error returned with `?` becomes a fatal result, which stops the pipeline and changes nothing.
//!
//! This crate must not know how pipelines are run, or how a control plane finds and starts functions.

#![warn(missing_docs)]

pub mod client;
mod function;
mod grpc_code;
pub mod json;
mod metrics;
pub mod proto;
mod request;
mod resource;
mod response;
mod serve;
mod set;
mod struct_value;
pub mod testing;
mod tls;

pub use function::{Error, Function, answer};
pub use grpc_code::grpc_code_name;
pub use proto::v1::{
    Capability, Condition, Credentials, Ready, RequestMeta, Requirements, Resource, ResourceSelector,
    Resources, ResponseMeta, RunFunctionRequest, RunFunctionResponse, Schema, SchemaSelector, Severity,
    State, Status, Target,
};
pub use request::ENVIRONMENT;
pub use response::{DEFAULT_TTL, InvalidTtl};
pub use serve::{ServeError, ServeOptions, Server, serve};
pub use set::FunctionSet;
pub use struct_value::{NotAnObject, Struct};
pub use tonic::async_trait;
pub use transom_object::error_chain;
