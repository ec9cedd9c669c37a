//! The functions that can be called, by the name of their Function.

use crate::endpoint::{Endpoint, EndpointError, chain};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status};
use transom_compose::{FunctionRunner, RunError, StepRef};
use transom_function::client::{DEFAULT_MAX_MESSAGE_SIZE, FunctionClient};
use transom_function::{Function, RunFunctionRequest, RunFunctionResponse, answer, async_trait};

const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Limits for every call.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a call may take, waiting included.
    pub deadline: Duration,
    /// How long to wait for a function that nobody can reach yet.
    pub patience: Duration,
    /// How large an answer may be, in bytes.
    pub max_message_size: usize,
}

impl Default for Options {
    fn default() -> Self {
        let two_minutes = Duration::from_secs(120);
        Self { deadline: two_minutes, patience: two_minutes, max_message_size: DEFAULT_MAX_MESSAGE_SIZE }
    }
}

/// Where every function runs. Can be changed while calls are made; those that began keep to where they began.
#[derive(Default)]
pub struct Functions {
    routes: RwLock<BTreeMap<String, Route>>,
    options: Options,
}

#[derive(Clone)]
enum Route {
    InProcess(Arc<dyn Function>),
    Remote { endpoint: Endpoint, client: FunctionClient },
}

impl Functions {
    pub fn new(options: Options) -> Self {
        Self { routes: RwLock::default(), options }
    }

    /// Runs a function in this process.
    pub fn run_in_process(&self, name: impl Into<String>, function: Arc<dyn Function>) {
        self.set(name.into(), Route::InProcess(function));
    }

    /// Calls a function elsewhere. The connection to an endpoint that does not change is kept.
    pub fn call_at(&self, name: impl Into<String>, endpoint: Endpoint) -> Result<(), EndpointError> {
        let name = name.into();
        if matches!(self.route(&name), Some(Route::Remote { endpoint: known, .. }) if known == endpoint) {
            return Ok(());
        }
        let client =
            FunctionClient::new(endpoint.channel()?).with_max_message_size(self.options.max_message_size);
        self.set(name, Route::Remote { endpoint, client });
        Ok(())
    }

    /// Forgets a function, and its connection.
    pub fn remove(&self, name: &str) {
        self.routes.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    fn set(&self, name: String, route: Route) {
        self.routes.write().unwrap_or_else(PoisonError::into_inner).insert(name, route);
    }

    fn route(&self, name: &str) -> Option<Route> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Calls again as long as nobody can be reached: a function may just be starting. Any other answer is final.
    async fn call(
        &self,
        client: &FunctionClient,
        request: &RunFunctionRequest,
    ) -> Result<RunFunctionResponse, Status> {
        let give_up = Instant::now() + self.options.patience;
        loop {
            match client.run(request).await {
                Err(status) if status.code() == Code::Unavailable && Instant::now() < give_up => {
                    tracing::debug!(error = chain(&status), "the function cannot be reached yet");
                    sleep(RETRY_INTERVAL).await;
                }
                answer => return answer,
            }
        }
    }
}

#[async_trait]
impl FunctionRunner for Functions {
    async fn run(
        &self,
        step: StepRef<'_>,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let function = step.function.to_owned();
        let Some(route) = self.route(step.function) else {
            let reason = "no such Function is installed".to_owned();
            return Err(RunError::Unknown { function, reason });
        };
        let deadline = self.options.deadline;
        let (place, outcome) = match &route {
            Route::InProcess(built_in) => {
                ("in this process".to_owned(), timeout(deadline, answer(&**built_in, request)).await)
            }
            Route::Remote { endpoint, client } => {
                let place = format!("at {}", endpoint.address());
                (place, timeout(deadline, self.call(client, &request)).await)
            }
        };
        match outcome {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(status)) => Err(failed(function, &place, &status)),
            Err(_) => Err(RunError::Deadline { function, after: deadline }),
        }
    }
}

fn failed(function: String, place: &str, status: &Status) -> RunError {
    let mut message = format!("{} ({place})", status.message());
    // The transport keeps the interesting part, why there is no connection, to itself.
    if let Some(source) = std::error::Error::source(status) {
        message = format!("{message}: {}", chain(source));
    }
    RunError::Failed { function, code: format!("{:?}", status.code()), message }
}
