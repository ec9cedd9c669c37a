//! Runs programs of images on this machine, once for every call.

use crate::host::{Host, HostError, Image, WantedImage};
use crate::settings::RunSettings;
use std::sync::Arc;
use transom_container::{
    ContainerSpec, Engine, EngineError, Mount, Network, OnceError, OnceLimits, OnceSettings, run_once,
};
use transom_packages::Credentials;

/// How much a program may write: the largest message that functions over gRPC may answer with is as large.
const STDOUT_BYTES_MAX: usize = 64 << 20;
const STDERR_BYTES_MAX: usize = 1 << 20;
/// The host name of a container.
const NAME: &str = "xfn";
const DEFAULT_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What is done where the limits of a function cannot be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// The function is not run.
    Required,
    /// It is run, and each of its processes is limited by itself.
    Accepted,
}

/// Why the program of an image has no output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Nothing runs containers here.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The image or the directories of its container are not there.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The image names no program.
    #[error("its image names no program: it has neither an entrypoint nor a command")]
    NoProgram,
    /// The limits of the function cannot be enforced here.
    #[error(
        "{0}; run Transom as root where cgroups can be made, use type: Chroot, or accept that with \
         --accept-unenforced-limits"
    )]
    Limits(OnceError),
    /// The program failed.
    #[error(transparent)]
    Program(OnceError),
}

impl From<OnceError> for RunError {
    fn from(error: OnceError) -> Self {
        match error {
            OnceError::Limits(_) => Self::Limits(error),
            _ => Self::Program(error),
        }
    }
}

/// Runs programs of images.
pub struct Programs {
    host: Arc<dyn Host>,
    /// What runs containers, or why there is nothing.
    engine: Result<Engine, EngineError>,
    may_fall_back: bool,
    enforcement: Enforcement,
}

impl Programs {
    /// Runs programs with this engine, or with namespaces without an OCI runtime if it does not work and that is allowed.
    pub fn new(
        host: Arc<dyn Host>,
        engine: Result<Engine, EngineError>,
        may_fall_back: bool,
        enforcement: Enforcement,
    ) -> Self {
        Self { host, engine, may_fall_back, enforcement }
    }

    pub(crate) fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    /// Waits until nothing of any container is left. To be called when no function is called any more.
    pub async fn idle(&self) {
        self.host.idle().await;
    }

    /// What an image is pulled with, without any Secrets.
    pub async fn credentials(&self, reference: &str) -> Result<Vec<Credentials>, HostError> {
        self.host.credentials(reference, &[]).await
    }

    /// Runs the program of an image, and returns what it wrote. `is_chroot` runs it in namespaces without an OCI runtime and cgroups.
    pub async fn run(
        &self,
        image: &WantedImage,
        settings: &RunSettings,
        is_chroot: bool,
        input: Vec<u8>,
    ) -> Result<Vec<u8>, RunError> {
        // `--container-runtime none` also excludes namespaces without an OCI runtime.
        let configured = self.engine.clone()?;
        let engine = if is_chroot { Engine::Chroot } else { configured };
        let workspace = self.host.workspace()?;
        let unpacked = self.host.image(image).await?;
        let limits = match (is_chroot, self.enforcement) {
            (true, _) => OnceLimits::PerProcess,
            (false, Enforcement::Required) => OnceLimits::Required,
            (false, Enforcement::Accepted) => OnceLimits::WherePossible,
        };
        let mut once = OnceSettings {
            engine,
            spec: spec(&unpacked, settings)?,
            limits,
            timeout: settings.timeout,
            stdout_bytes_max: STDOUT_BYTES_MAX,
            stderr_bytes_max: STDERR_BYTES_MAX,
        };
        let falls_back = self.may_fall_back && once.engine != Engine::Chroot;
        let again = if falls_back { Some(input.clone()) } else { None };
        match (run_once(&workspace, &once, input).await, again) {
            (Err(OnceError::NotStarted { problem, .. }), Some(input)) => {
                tracing::warn!(engine = %once.engine, problem, "the OCI runtime cannot be used; falling back to namespaces without one");
                once.engine = Engine::Chroot;
                run_once(&workspace, &once, input).await
            }
            (outcome, _) => outcome,
        }
        .map_err(RunError::from)
    }
}

/// The file that names are resolved with in the network of this machine.
fn resolver() -> Mount {
    let file = "/etc/resolv.conf";
    Mount { source: file.into(), target: file.to_owned() }
}

fn spec(image: &Image, settings: &RunSettings) -> Result<ContainerSpec, RunError> {
    if image.args.is_empty() {
        return Err(RunError::NoProgram);
    }
    let mut env = image.env.clone();
    if !env.iter().any(|variable| variable.starts_with("PATH=")) {
        env.push(DEFAULT_PATH.to_owned());
    }
    Ok(ContainerSpec {
        name: NAME.to_owned(),
        root: image.root.clone(),
        args: image.args.clone(),
        env,
        cwd: if image.cwd.is_empty() { "/".to_owned() } else { image.cwd.clone() },
        port: None,
        network: if settings.host_network { Network::Host } else { Network::None },
        mounts: if settings.host_network { vec![resolver()] } else { Vec::new() },
        limits: settings.limits,
    })
}
