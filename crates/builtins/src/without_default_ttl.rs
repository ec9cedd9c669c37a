//! Answers that hold as long as nothing changes.
//!
//! Most built-ins depend on nothing but what they are told. The TTL of a minute that every answer says unless told
//! otherwise would have a plane ask them again and again for the answer it has; one that learns of every change need not.

use std::sync::Arc;

use transom_function::{DEFAULT_TTL, Error, Function, RunFunctionRequest, RunFunctionResponse, async_trait};

/// A function whose answers change only with the request. A TTL that an input asks for stays.
pub struct Lasting(pub Arc<dyn Function>);

#[async_trait]
impl Function for Lasting {
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let mut response = self.0.run(request).await?;
        if let Some(meta) = response.meta.as_mut() {
            meta.ttl = meta.ttl.take().filter(|ttl| (*ttl).try_into() != Ok(DEFAULT_TTL));
        }
        Ok(response)
    }
}
