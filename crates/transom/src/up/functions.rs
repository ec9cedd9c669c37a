//! Functions in the embedded plane: built in, or listening somewhere.

use std::path::Path;
use std::sync::Arc;
use transom_compose::FunctionRunner;
use transom_controllers::FunctionRuntime;
use transom_runner::{Endpoint, Functions, Tls};
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
    tls: Option<Tls>,
}

impl Embedded {
    /// With a directory of certificates functions are called with mutual TLS, otherwise in plain text.
    pub(super) fn new(certificates: Option<&Path>) -> Result<Self, Failure> {
        let tls = certificates.map(read_certificates).transpose()?;
        Ok(Self { functions: Arc::default(), tls })
    }

    pub(super) fn runner(&self) -> Arc<dyn FunctionRunner> {
        self.functions.clone()
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
            return self.functions.call_at(name, endpoint).map_err(|e| e.to_string());
        }
        let repository = function.repository_name();
        let built_in = transom_builtins::find(repository).ok_or_else(|| {
            format!(
                "{repository:?} is not built in, and packages cannot be run yet; say where the function listens \
                 with the annotation {ENDPOINT}"
            )
        })?;
        self.functions.run_in_process(name, built_in);
        Ok(())
    }

    fn remove(&self, name: &str) {
        self.functions.remove(name);
    }
}
