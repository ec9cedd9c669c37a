//! The one place where resolver, runtime and router are made of the functions of this process, so that whatever runs
//! pipelines (a control plane, `render`, a plan of a rollout, tests) resolves and runs them alike.

use crate::account::Account;
use crate::router::{Options, Router};
use crate::runtime::LocalRuntime;
use crate::source::Resolver;
use std::sync::Arc;
use transom_compose::{environment, resources_mode};
use transom_function::FunctionSet;

/// The functions of this process, and the limits for every call.
pub struct Assembly {
    functions: Arc<dyn FunctionSet>,
    options: Options,
}

impl Assembly {
    /// For these functions.
    pub fn new(functions: impl FunctionSet, options: Options) -> Self {
        Self { functions: Arc::new(functions), options }
    }

    /// The limits for every call.
    pub fn options(&self) -> Options {
        self.options
    }

    /// From Functions to where their implementations come from.
    pub fn resolver(&self) -> Resolver {
        Resolver::new(self.functions.names())
    }

    /// Runs the functions of this process, and calls those at endpoints.
    pub fn runtime(&self) -> LocalRuntime {
        let (found, versioned) = (self.functions.clone(), self.functions.clone());
        LocalRuntime::new(move |name| found.find(name), self.options)
            .with_versions(move |name| versioned.original_version(name))
    }

    /// A router without Functions. It runs Compositions of Crossplane v1: no Function object stands for what runs these.
    pub fn router(&self) -> Router {
        self.counting_router(Account::default())
    }

    /// The same, and calls are counted.
    pub fn counting_router(&self, account: Account) -> Router {
        let router = Router::new(self.options).counting(account);
        router.run_in_process(resources_mode::FUNCTION, self.functions.templates());
        router.run_in_process(environment::FUNCTION, self.functions.environment());
        router
    }
}
