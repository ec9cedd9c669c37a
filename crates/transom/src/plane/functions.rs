//! The functions of a plane: built in, at endpoints, or from their packages.

use std::path::Path;
use std::sync::Arc;
use transom_builtins::{Builtins, Settings};
use transom_compose::FunctionRunner;
use transom_deploy::{ClusterRuntime, ClusterRuntimeOptions};
use transom_engine::{Clock, Cluster};
use transom_object::error_chain::chain;
use transom_packages::{PackageKind, Reference};
use transom_runner::{
    Account, Assembly, CacheOptions, Cached, Installer, Options, ReadTls, ReadTlsError, Resolver, Router,
    Source, Tls,
};
use transom_xapi::Function;
use transom_xapi::function::repository_name;

use super::args::ControllerArgs;
use crate::containers::FunctionRuntimes;
use transom_console::Failure;
use transom_machine::HostResources;
#[cfg(target_os = "linux")]
use transom_machine::PlaneAccess;

/// Where the packages of the built-in functions are published. Nothing is downloaded: only the name is used.
const PACKAGES: &str = "xpkg.crossplane.io/crossplane-contrib";

/// The kind of a package whose functions or controllers run in the process of a plane, which then needs no registry for it.
pub(crate) fn builtin_kind(package: &Reference) -> Option<PackageKind> {
    let of_provider = || transom_providers::names().any(|name| repository_name(&package.to_string()) == name);
    if is_builtin(package) {
        return Some(PackageKind::Function);
    }
    of_provider().then_some(PackageKind::Provider)
}

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
    runtimes: FunctionRuntimes,
}

/// How the plane's built-in functions are made. Authors of Compositions must not read the files of the host, so
/// templates are read below one directory only.
fn settings(templates: &Path) -> Settings {
    Settings { files_below: Some(templates.to_owned()), explain_refusals: true, without_default_ttl: true }
}

impl Functions {
    /// With a directory of certificates, functions at endpoints are called with mutual TLS, otherwise in plain text. Packages
    /// run in the cluster, if there is one, otherwise in containers on this machine.
    pub(super) fn new(
        templates: &Path,
        args: &ControllerArgs,
        place: HostResources,
        account: Account,
        cluster: Option<(Cluster, Clock)>,
    ) -> Result<Self, Failure> {
        let tls = args.tls_client_certs_dir.as_deref().map(certificates).transpose()?;
        let packages = transom_builtins::names().map(|name| (name.to_owned(), format!("{PACKAGES}/{name}")));
        let options = Options { deadline: args.function_call_timeout, ..Options::default() };
        let assembly = Assembly::new(Builtins::new(&settings(templates)), options);
        let router = assembly.counting_router(account).offering(packages);
        #[cfg(target_os = "linux")]
        let programs = args.containers.programs(place.clone());
        #[cfg(target_os = "linux")]
        let router = router.with_inline(Arc::new(transom_xfn::InlineFunctions::new(programs.clone())));
        let router = Arc::new(router);
        let runtime = assembly.runtime().with_tls(tls);
        let runtimes = match cluster {
            None => FunctionRuntimes::new(&args.containers, place, runtime, options),
            Some((cluster, clock)) => {
                let options =
                    ClusterRuntimeOptions { namespace: args.namespace.clone(), clock, call: options };
                FunctionRuntimes::on_cluster(ClusterRuntime::new(cluster, options, runtime))
            }
        };
        #[cfg(target_os = "linux")]
        let runtimes = runtimes.with_programs(programs);
        let installer = Installer::new(assembly.resolver(), runtimes.runtime(), router.clone());
        Ok(Self { router, installer, cache: None, runtimes })
    }

    /// Runs Providers as well.
    #[cfg(target_os = "linux")]
    pub(super) fn with_providers(mut self, args: &ControllerArgs, access: PlaneAccess) -> Self {
        self.runtimes = self.runtimes.with_providers(&args.containers, access);
        self
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
    pub(super) fn runtimes(&self) -> FunctionRuntimes {
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

/// Reads the certificates in a folder whenever they are asked for. They must be there at the start.
fn certificates(dir: &Path) -> Result<ReadTls, Failure> {
    read_certificates(dir).map_err(|error| {
        Failure::new(chain(&error))
            .remedy("--tls-client-certs-dir needs the files tls.crt, tls.key and ca.crt")
    })?;
    let dir = dir.to_owned();
    Ok(Arc::new(move || read_certificates(&dir)))
}

fn read_certificates(dir: &Path) -> Result<Tls, ReadTlsError> {
    let read = |name: &str| {
        let path = dir.join(name);
        std::fs::read(&path).map_err(|source| ReadTlsError {
            what: format!("cannot read {}", path.display()),
            source: Some(source.into()),
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
