//! What can be called: a built-in in this process, a function at an address, one from its package, or that of a project.

use super::process::{Project, Served, free_address};
use crate::containers::ContainerArgs;
use crate::render::runtime::Runtimes;
use crate::xpkg::{origin, push};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::Endpoint;
use transom_compose::{FunctionRunner, StepRef};
use transom_console::Failure;
use transom_function::client::FunctionClient;
use transom_function::{RunFunctionRequest, RunFunctionResponse, answer};
use transom_machine::{DockerCredentials, HostResources};
use transom_object::error_chain::chain;
use transom_runner::{FORCED_RUNTIME_ANNOTATION, Router};
use transom_xapi::Function;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The name of the Function that a package is run as.
const NAME: &str = "function";
/// The repository that a package in a file is referred to by.
const FILE_REPOSITORY: &str = "file.invalid/function";

/// A function that can be called until it is stopped.
pub(super) enum Called {
    InProcess(Arc<dyn transom_function::Function>),
    Remote(FunctionClient, Option<Box<Served>>),
    Package(Arc<Router>, Box<Runtimes>),
}

impl Called {
    /// A function at an address.
    pub(super) async fn at(address: &str) -> Result<Self, Failure> {
        client(address).await.map(|client| Self::Remote(client, None))
    }

    /// The function that is named: a folder with a project, a package file, a built-in, or a reference to a package.
    pub(super) async fn named(name: &str, containers: &ContainerArgs) -> Result<Self, Failure> {
        let path = Path::new(name);
        if path.is_dir() {
            return Self::project(path).await;
        }
        if path.is_file() {
            return Self::file(path, containers).await;
        }
        if let Some(function) = transom_builtins::find(name) {
            return Ok(Self::InProcess(function));
        }
        if !name.contains('/') {
            return Err(super::find(name).map_or_else(
                |failure| failure,
                |_| Failure::new(format!("{name} is neither a folder, a package nor a built-in function")),
            ));
        }
        let reference = origin::reference(name)?;
        let (registry, config) = origin::remote_for_images()?;
        Self::package(&reference.to_string(), Arc::new(registry), DockerCredentials(config), containers).await
    }

    async fn project(folder: &Path) -> Result<Self, Failure> {
        let project = Project::open(folder)?;
        project.build().await?;
        let served = project.serve(&free_address()?).await?;
        let client = client(&served.address).await?;
        Ok(Self::Remote(client, Some(Box::new(served))))
    }

    async fn file(path: &Path, containers: &ContainerArgs) -> Result<Self, Failure> {
        let (image, _) = push::load(path, &BTreeMap::new())?;
        // No registry has it: the image answers for any reference.
        let reference = format!("{FILE_REPOSITORY}@{}", image.digest);
        let none = DockerCredentials(transom_oci::credentials::DockerConfig::default());
        Self::package(&reference, Arc::new(image), none, containers).await
    }

    async fn package(
        reference: &str,
        images: Arc<dyn transom_oci::ImageSource>,
        credentials: DockerCredentials,
        containers: &ContainerArgs,
    ) -> Result<Self, Failure> {
        let dir = origin::containers_folder(None)?;
        // Nothing is under way when all requests are answered.
        let place = HostResources { dir, images, credentials: Arc::new(credentials), grace: Duration::ZERO };
        let runtimes = Runtimes::of_packages(containers, place);
        let mut function = Function::default();
        NAME.clone_into(&mut function.metadata.name);
        reference.clone_into(&mut function.spec.package);
        let from_package = (FORCED_RUNTIME_ANNOTATION.to_owned(), "Package".to_owned());
        function.metadata.annotations = Some(BTreeMap::from([from_package]));
        match runtimes.start(&function).await {
            Ok(router) => Ok(Self::Package(router, Box::new(runtimes))),
            Err(problem) => {
                runtimes.stop().await;
                Err(Failure::new(format!("{reference} cannot be run: {problem}"))
                    .remedy("--container-runtime sets how packages are run"))
            }
        }
    }

    pub(super) async fn call(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, String> {
        match self {
            Self::InProcess(function) => answer(&**function, request).await.map_err(|e| e.to_string()),
            Self::Remote(client, _) => client.run(&request).await.map_err(|e| e.to_string()),
            Self::Package(router, _) => {
                let answer = router.run(StepRef::calling(NAME), request).await;
                answer.map(|answer| answer.response).map_err(|e| chain(&e))
            }
        }
    }

    pub(super) async fn stop(self) {
        match self {
            Self::InProcess(_) | Self::Remote(_, None) => {}
            Self::Remote(_, Some(served)) => served.stop().await,
            Self::Package(_, runtimes) => runtimes.stop().await,
        }
    }
}

async fn client(address: &str) -> Result<FunctionClient, Failure> {
    let cannot = |e: &(dyn std::error::Error + 'static)| {
        Failure::new(format!("cannot call the function at {address}: {}", chain(e)))
            .remedy("start it with --insecure, and write the address like localhost:9443")
    };
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|e| cannot(&e))?;
    let channel = endpoint.connect_timeout(CONNECT_TIMEOUT).connect().await.map_err(|e| cannot(&e))?;
    Ok(FunctionClient::new(channel))
}
