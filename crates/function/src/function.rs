//! What a function is, and how a call of one ends: a response, a fatal result, or a gRPC status.

use crate::{DEFAULT_TTL, ResponseMeta, RunFunctionRequest, RunFunctionResponse};
use futures_util::FutureExt;
use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;

/// One step of a composition pipeline.
#[tonic::async_trait]
pub trait Function: Send + Sync + 'static {
    /// Decides the desired state. It may be called again for the same request, and concurrently.
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Error>;
}

#[tonic::async_trait]
impl<F: Function + ?Sized> Function for std::sync::Arc<F> {
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        (**self).run(request).await
    }
}

/// Why a function has no response. Any error converts to one with `?`.
///
/// An error caused by its input is [fatal](Error::fatal): a result that users see. A
/// [`tonic::Status`] is kept and fails the call itself.
#[derive(Debug)]
pub struct Error(Kind);

#[derive(Debug)]
enum Kind {
    Fatal(String),
    Status(Box<tonic::Status>),
}

impl Error {
    /// An error that users see as a fatal result.
    pub fn fatal(message: impl Into<String>) -> Self {
        Self(Kind::Fatal(message.into()))
    }

    /// Puts what was attempted in front of a fatal message.
    #[must_use]
    pub fn context(self, words: impl fmt::Display) -> Self {
        match self.0 {
            Kind::Fatal(message) => Self::fatal(format!("{words}: {message}")),
            status @ Kind::Status(_) => Self(status),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Fatal(message) => f.write_str(message),
            Kind::Status(status) => write!(f, "{status}"),
        }
    }
}

/// `Error` does not implement `std::error::Error`: this conversion would overlap with the one to itself.
impl<E: std::error::Error + Any> From<E> for Error {
    fn from(error: E) -> Self {
        match (&error as &dyn Any).downcast_ref::<tonic::Status>() {
            Some(status) => Self(Kind::Status(Box::new(status.clone()))),
            None => Self::fatal(error.to_string()),
        }
    }
}

/// Calls a function as a server does: the request's tag is returned, an error becomes a fatal result, a panic becomes
/// an internal status and goes no further.
pub async fn answer(
    function: &(impl Function + ?Sized),
    request: RunFunctionRequest,
) -> Result<RunFunctionResponse, tonic::Status> {
    let tag = request.tag().to_owned();
    let outcome = AssertUnwindSafe(function.run(request)).catch_unwind().await;
    let mut response = match outcome {
        Ok(Ok(response)) => response,
        Ok(Err(Error(Kind::Status(status)))) => return Err(*status),
        Ok(Err(Error(Kind::Fatal(message)))) => {
            let mut response = RunFunctionResponse::default();
            response.set_ttl(DEFAULT_TTL);
            response.fatal(message);
            response
        }
        Err(panic) => {
            return Err(tonic::Status::internal(format!("the function panicked: {}", words(&*panic))));
        }
    };
    response.meta.get_or_insert_with(ResponseMeta::default).tag = tag;
    Ok(response)
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("for no stated reason")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestMeta, Severity};

    struct Scripted(fn() -> Result<RunFunctionResponse, Error>);

    #[tonic::async_trait]
    impl Function for Scripted {
        async fn run(&self, _: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
            (self.0)()
        }
    }

    async fn call(
        script: fn() -> Result<RunFunctionResponse, Error>,
    ) -> Result<RunFunctionResponse, tonic::Status> {
        let meta = RequestMeta { tag: "t1".to_owned(), ..RequestMeta::default() };
        answer(&Scripted(script), RunFunctionRequest { meta: Some(meta), ..Default::default() }).await
    }

    #[tokio::test]
    async fn the_tag_comes_back() {
        let response = call(|| Ok(RunFunctionResponse::default())).await.unwrap();
        assert_eq!(response.meta.unwrap().tag, "t1");
    }

    #[tokio::test]
    async fn an_error_is_a_fatal_result() {
        let response = call(|| {
            "x".parse::<u8>()?;
            Ok(RunFunctionResponse::default())
        });
        let response = response.await.unwrap();
        assert_eq!(response.results[0].severity(), Severity::Fatal);
        assert_eq!(response.results[0].message, "invalid digit found in string");
        assert_eq!(response.meta.unwrap().tag, "t1");
        let response = call(|| Err(Error::fatal("no").context("cannot"))).await.unwrap();
        assert_eq!(response.results[0].message, "cannot: no");
    }

    #[tokio::test]
    async fn a_status_stays_one() {
        let status = call(|| Err(tonic::Status::unavailable("later"))?).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (tonic::Code::Unavailable, "later"));
    }

    #[tokio::test]
    async fn a_panic_stays_inside() {
        let status = call(|| panic!("oh {}", "no")).await.unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (tonic::Code::Internal, "the function panicked: oh no")
        );
    }
}
