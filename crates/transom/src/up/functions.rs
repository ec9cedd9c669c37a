//! Functions in the embedded plane: built in, or listening somewhere.

use futures_util::future::BoxFuture;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use transom_builtins::{Explained, GoTemplating, Lasting};
use transom_compose::{FunctionRunner, environment, resources_mode};
use transom_controllers::FunctionRuntime;
use transom_engine::Metrics;
use transom_runner::{Account, CacheOptions, Cached, Endpoint, Functions, Tls};
use transom_xapi::Function;

use crate::failure::Failure;

/// Where a function listens, as `host:port`.
const ENDPOINT: &str = "transom.io/endpoint";
/// How `crossplane render` is told that a function listens somewhere.
const RENDER_RUNTIME: &str = "render.crossplane.io/runtime";
const RENDER_TARGET: &str = "render.crossplane.io/runtime-development-target";
/// Where functions under development listen unless told.
const DEVELOPMENT: &str = "localhost:9443";

/// Finds functions by the last segment of their package's repository, or at the address an annotation names.
pub(super) struct Embedded {
    functions: Arc<Functions>,
    cache: Option<Arc<Cached>>,
    templates: Arc<dyn transom_function::Function>,
    tls: Option<Tls>,
}

/// Where the packages of the built-in functions are published. Nothing is downloaded: the name alone counts.
const PACKAGES: &str = "xpkg.crossplane.io/crossplane-contrib";

/// The built-in that reads files. Whoever may write a Composition must not read those of the host.
const TEMPLATING: &str = "function-go-templating";

impl Embedded {
    /// Templates are read from files below one directory alone. With a directory of certificates functions are called
    /// with mutual TLS, otherwise in plain text.
    pub(super) fn new(
        templates: &Path,
        certificates: Option<&Path>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, Failure> {
        let tls = certificates.map(read_certificates).transpose()?;
        let templates = Arc::new(GoTemplating::default().with_files_below(templates));
        let templates = Arc::new(Explained::new(templates));
        let packages = transom_builtins::names().map(|name| (name.to_owned(), format!("{PACKAGES}/{name}")));
        let functions = Functions::default().counting(Arc::new(Counted(metrics))).offering(packages);
        let functions = Arc::new(functions);
        functions.run_in_process(resources_mode::FUNCTION, Arc::new(Lasting(transom_builtins::templates())));
        functions.run_in_process(environment::FUNCTION, Arc::new(Lasting(transom_builtins::environment())));
        Ok(Self { functions, cache: None, templates, tls })
    }

    /// Gives answers again while they hold.
    pub(super) fn cached(mut self, options: CacheOptions) -> Self {
        self.cache = Some(Arc::new(Cached::new(self.functions.clone(), options)));
        self
    }

    pub(super) fn cache(&self) -> Option<Arc<Cached>> {
        self.cache.clone()
    }

    fn built_in(&self, name: &str) -> Option<Arc<dyn transom_function::Function>> {
        if name == TEMPLATING { Some(self.templates.clone()) } else { transom_builtins::find_lasting(name) }
    }

    pub(super) fn runner(&self) -> Arc<dyn FunctionRunner> {
        match &self.cache {
            Some(cache) => cache.clone(),
            None => self.functions.clone(),
        }
    }
}

/// Calls are counted with what the controllers count.
struct Counted(Arc<Metrics>);

impl Account for Counted {
    fn add(&self, name: &'static str, labels: &[(&'static str, &str)], count: u64) {
        self.0.add(name, labels, count);
    }

    fn time(&self, name: &'static str, labels: &[(&'static str, &str)], took: Duration) {
        self.0.observe(name, labels, took);
    }
}

fn read_certificates(dir: &Path) -> Result<Tls, Failure> {
    let read = |name: &str| {
        let path = dir.join(name);
        std::fs::read(&path).map_err(|e| {
            Failure::new(format!("cannot read {}: {e}", path.display()))
                .remedy("--tls-client-certs-dir needs the files tls.crt, tls.key and ca.crt")
        })
    };
    Ok(Tls { ca: read("ca.crt")?, certificate: read("tls.crt")?, key: read("tls.key")? })
}

/// The address that the annotations of a function name.
fn address(function: &Function) -> Option<&str> {
    let annotation = |key: &str| function.metadata.annotation(key);
    let development = annotation(RENDER_RUNTIME) == Some("Development");
    annotation(ENDPOINT).or_else(|| development.then(|| annotation(RENDER_TARGET).unwrap_or(DEVELOPMENT)))
}

impl FunctionRuntime for Embedded {
    fn install(&self, function: &Function) -> Result<(), String> {
        let name = function.metadata.name.clone();
        if let Some(address) = address(function) {
            let endpoint = match &self.tls {
                Some(tls) => Endpoint::mutual_tls(address, tls.clone()),
                None => Endpoint::plaintext(address),
            };
            self.functions.call_at(&*name, endpoint).map_err(|e| e.to_string())?;
            self.functions.comes_from(&name, &function.spec.package);
            return Ok(());
        }
        let repository = function.repository_name();
        let built_in = self.built_in(repository).ok_or_else(|| {
            format!(
                "{repository:?} is not built in, and packages cannot be run yet; say where the function listens \
                 with the annotation {ENDPOINT}"
            )
        })?;
        self.functions.run_in_process(&*name, built_in);
        self.functions.comes_from(&name, &function.spec.package);
        Ok(())
    }

    fn remove(&self, name: &str) {
        self.functions.remove(name);
    }

    fn reach<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.functions.reach(name))
    }

    fn on_change(&self, changed: Arc<dyn Fn(&str) + Send + Sync>) {
        self.functions.on_change(changed);
    }
}

#[cfg(test)]
mod tests {
    //! What the embedded plane lets functions do.
    use super::*;
    use serde_json::json;
    use transom_function::testing::{RequestBuilder, run};

    #[tokio::test]
    async fn templates_are_read_from_their_directory_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let (templates, outside) = (dir.path().join("templates"), dir.path().join("outside"));
        let inside = templates.join("inside");
        for (folder, text) in [(&inside, "status: {found: inside}"), (&outside, "status: {found: outside}")] {
            std::fs::create_dir_all(folder).expect("a directory");
            let manifest = format!("apiVersion: example.org/v1\nkind: XR\n{text}\n");
            std::fs::write(folder.join("one.yaml"), manifest).expect("a file");
        }
        std::os::unix::fs::symlink(&outside, templates.join("link")).expect("a link");
        let plane = Embedded::new(&templates, None, Arc::default()).expect("no certificates are needed");
        let function = plane.built_in(TEMPLATING).expect("it is built in");
        let below = |path: &str| {
            let input = json!({
                "apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate",
                "source": "FileSystem", "fileSystem": {"dirPath": path},
            });
            let xr = json!({"apiVersion": "example.org/v1", "kind": "XR", "metadata": {"name": "x"}});
            RequestBuilder::new(xr).input(input).build()
        };
        for path in ["inside", "/inside"] {
            let answer = format!("{:?}", run(&function, below(path), &[]).await);
            assert!(answer.contains("found") && !answer.contains("cannot"), "{path}: {answer}");
        }
        let outside = outside.to_string_lossy();
        for path in [&*outside, "../outside", "/../outside", "link"] {
            let answer = format!("{:?}", run(&function, below(path), &[]).await);
            assert!(answer.contains("cannot read tmpl from the folder"), "{path}: {answer}");
        }
    }
}
