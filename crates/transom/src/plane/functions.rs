//! The functions of the embedded plane: built in, at endpoints, or from their packages.

use std::path::Path;
use std::sync::Arc;
use transom_builtins::{Builtins, Settings, WithoutDefaultTtl};
use transom_compose::{FunctionRunner, environment, resources_mode};
use transom_packages::Reference;
use transom_runner::{
    Account, CacheOptions, Cached, Installer, LocalRuntime, Options, Resolver, Router, Source, Tls,
};
use transom_xapi::Function;

use super::args::ControllerArgs;
use crate::containers::{FunctionRuntimes, Place};
use crate::failure::Failure;

/// Where the packages of the built-in functions are published. Nothing is downloaded: only the name is used.
const PACKAGES: &str = "xpkg.crossplane.io/crossplane-contrib";

/// Whether a function with this package runs in the process of a plane, which then needs no registry for it.
pub(crate) fn is_builtin(package: &Reference) -> bool {
    let mut function = Function::default();
    function.spec.package = package.to_string();
    matches!(Resolver::new(transom_builtins::names()).resolve(&function), Source::Builtin(_))
}

/// Makes Functions callable, and calls them.
pub(super) struct Functions {
    router: Arc<Router>,
    installer: Installer,
    cache: Option<Arc<Cached>>,
    runtimes: Arc<FunctionRuntimes>,
}

/// How the plane's built-in functions are made. Authors of Compositions must not read the files of the host, so
/// templates are read below one directory only.
fn settings(templates: &Path) -> Settings {
    Settings { files_below: Some(templates.to_owned()), explain_refusals: true, without_default_ttl: true }
}

impl Functions {
    /// With a directory of certificates, functions at endpoints are called with mutual TLS, otherwise in plain text.
    pub(super) fn new(
        templates: &Path,
        args: &ControllerArgs,
        place: Place,
        account: Account,
    ) -> Result<Self, Failure> {
        let tls = args.tls_client_certs_dir.as_deref().map(read_certificates).transpose()?;
        let packages = transom_builtins::names().map(|name| (name.to_owned(), format!("{PACKAGES}/{name}")));
        let options = Options { deadline: args.function_call_timeout, ..Options::default() };
        let router = Router::new(options).counting(account).offering(packages);
        for (name, function) in [
            (resources_mode::FUNCTION, transom_builtins::templates()),
            (environment::FUNCTION, transom_builtins::environment()),
        ] {
            router.run_in_process(name, Arc::new(WithoutDefaultTtl(function)));
        }
        let router = Arc::new(router);
        let builtins = Builtins::new(&settings(templates));
        let runtime = LocalRuntime::new(move |name| builtins.find(name), router.options())
            .with_versions(transom_builtins::upstream_version)
            .with_tls(tls);
        let resolver = Resolver::new(transom_builtins::names());
        let runtimes = FunctionRuntimes::new(&args.containers, place, runtime, router.options());
        let installer = Installer::new(resolver, runtimes.runtime(), router.clone());
        Ok(Self { router, installer, cache: None, runtimes: Arc::new(runtimes) })
    }

    /// Returns responses again within their TTL.
    pub(super) fn cached(mut self, options: CacheOptions) -> Self {
        self.cache = Some(Arc::new(Cached::new(self.router.clone(), options)));
        self
    }

    pub(super) fn cache(&self) -> Option<Arc<Cached>> {
        self.cache.clone()
    }

    /// What runs the functions, to be stopped with the plane.
    pub(super) fn runtimes(&self) -> Arc<FunctionRuntimes> {
        self.runtimes.clone()
    }

    pub(super) fn installer(&self) -> Installer {
        self.installer.clone()
    }

    pub(super) fn runner(&self) -> Arc<dyn FunctionRunner> {
        match &self.cache {
            Some(cache) => cache.clone(),
            None => self.router.clone(),
        }
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
        let function = Builtins::new(&settings(&templates)).find("function-go-templating");
        let function = function.expect("it is built in");
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
