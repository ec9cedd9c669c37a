//! Functions of tests: the built-in ones, as a control plane assembles them, and scripts that take their place.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use transom_builtins::{Builtins, Settings};
use transom_function::{Function, FunctionSet, async_trait};
use transom_runner::{
    Assembly, FunctionRuntime, Installer, LocalRuntime, RevisionId, RevisionSpec, Router, RuntimeState,
    Source,
};

/// The runtime configs that functions were run with last, by their names.
type RuntimeConfigs = Arc<Mutex<BTreeMap<String, Value>>>;
type Scripts = Arc<Mutex<BTreeMap<String, Arc<dyn Function>>>>;

/// Functions by the name of a package's repository: the built-in ones, and those of a test.
#[derive(Clone)]
pub(super) struct TestFunctions {
    pub router: Arc<Router>,
    pub scripts: Scripts,
    pub configs: RuntimeConfigs,
    pub installer: Installer,
}

impl Default for TestFunctions {
    fn default() -> Self {
        Self::new(transom_runner::Options::default())
    }
}

impl TestFunctions {
    pub(super) fn new(options: transom_runner::Options) -> Self {
        let scripts = Scripts::default();
        let builtins = Builtins::new(&Settings::default());
        let assembly = Assembly::new(WithScripts { scripts: scripts.clone(), builtins }, options);
        let router = Arc::new(assembly.router());
        let configs = RuntimeConfigs::default();
        let runtime = Arc::new(Packages { runtime: assembly.runtime(), configs: configs.clone() });
        let installer = Installer::new(assembly.resolver(), runtime, router.clone());
        Self { router, scripts, configs, installer }
    }
}

/// The built-in functions, and scripts that take their place. Only the built-in ones need no package.
struct WithScripts {
    scripts: Scripts,
    builtins: Builtins,
}

impl FunctionSet for WithScripts {
    fn names(&self) -> Vec<String> {
        self.builtins.names()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Function>> {
        let script = self.scripts.lock().unwrap().get(name).cloned();
        script.or_else(|| self.builtins.find(name))
    }

    fn original_version(&self, name: &str) -> Option<&'static str> {
        self.builtins.original_version(name)
    }

    fn templates(&self) -> Arc<dyn Function> {
        self.builtins.templates()
    }

    fn environment(&self) -> Arc<dyn Function> {
        self.builtins.environment()
    }
}

/// Runs the package of a scripted function in this process.
struct Packages {
    runtime: LocalRuntime,
    configs: RuntimeConfigs,
}

#[async_trait]
impl FunctionRuntime for Packages {
    async fn ensure(&self, revision: &RevisionSpec) -> RuntimeState {
        let mut revision = revision.clone();
        if let Source::Package { repository, .. } = revision.source {
            revision.source = Source::Builtin(repository);
        }
        self.configs.lock().unwrap().insert(revision.id.function.clone(), json!(*revision.config));
        self.runtime.ensure(&revision).await
    }

    async fn release(&self, revision: &RevisionId) {
        self.runtime.release(revision).await;
    }
}
