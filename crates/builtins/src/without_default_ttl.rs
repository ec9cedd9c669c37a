//! Drops the default TTL of responses: a control plane with watches calls a function again when its request changes, so
//! polling is unnecessary for functions that depend on the request alone.

use std::sync::Arc;

use transom_function::{DEFAULT_TTL, Error, Function, RunFunctionRequest, RunFunctionResponse, async_trait};

/// A function whose responses depend on the request alone. Their default TTL is dropped; a TTL that an input sets
/// is kept.
pub(crate) struct WithoutDefaultTtl(pub(crate) Arc<dyn Function>);

#[async_trait]
impl Function for WithoutDefaultTtl {
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let mut response = self.0.run(request).await?;
        if let Some(meta) = response.meta.as_mut() {
            meta.ttl = meta.ttl.take().filter(|ttl| (*ttl).try_into() != Ok(DEFAULT_TTL));
        }
        Ok(response)
    }
}
