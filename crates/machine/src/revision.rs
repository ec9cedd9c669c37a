//! One revision of a function that runs from its package.

use crate::config::Overrides;
use crate::images::Image;
use crate::logs::Printed;
use crate::program::{Phase, Program, Recipe, supervised};
use crate::runtime::Shared;
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::{Code, Status};
use transom_container::{ContainerSpec, Limits, Network, Supervised};
use transom_function::{RunFunctionRequest, RunFunctionResponse};
use transom_object::error_chain::chain;
use transom_runner::{
    Dial, Endpoint, Instance, Options, Problem, Reason, Remote, RevisionId, RevisionSpec, RuntimeState,
};
use transom_xapi::runtime_config::DeploymentRuntimeConfigSpec;

/// The port that functions listen on.
const PORT: u16 = 9443;
/// Has a function listen without TLS: its connections do not leave the machine.
const INSECURE: &str = "--insecure";
const DEFAULT_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Of a revision that runs, in a condition.
pub(crate) const RUNS_HERE: &str = "runs in a container on this machine";
/// How long calls may take to finish before their function is stopped.
const DRAIN_WITHIN: Duration = Duration::from_secs(30);

/// A revision that runs from its package, or is about to.
pub(crate) struct Revision {
    pub(crate) program: Program,
    pub(crate) config: Arc<DeploymentRuntimeConfigSpec>,
    instance: Arc<ContainerInstance>,
}

impl Revision {
    /// Begins to run a revision.
    pub(crate) fn start(revision: &RevisionSpec, shared: &Arc<Shared>) -> Result<Self, Problem> {
        let RevisionSpec { id, image, config, .. } = revision;
        let overrides = Overrides::of(config);
        let (describe, reference) =
            ((id.clone(), overrides.clone(), shared.containers.limits), image.reference.clone());
        let described = move |image: Image| {
            let (id, overrides, limits) = &describe;
            let spec = spec(id, &image, &reference, overrides, *limits);
            Box::pin(async move { spec }) as BoxFuture<'static, _>
        };
        let (notified, changed) = (shared.clone(), id.clone());
        let recipe = Recipe {
            image: image.clone(),
            describe: Box::new(described),
            log: Printed::Function.log(&shared.place.dir, &id.function, name(id)),
            changed: Arc::new(move || notified.changed(&changed)),
        };
        let program = Program::start(recipe, shared);
        let instance = ContainerInstance::new(id, program.phase(), &overrides, &shared.options)?;
        Ok(Self { program, config: config.clone(), instance: Arc::new(instance) })
    }

    /// The state of the revision now.
    pub(crate) async fn state(&self) -> RuntimeState {
        let instance: Arc<dyn Instance> = self.instance.clone();
        match self.program.standing() {
            Err(problem) if problem.reason == Reason::InvalidImage => RuntimeState::Failed(problem),
            Err(problem) => RuntimeState::Pending { problem, instance: Some(instance) },
            Ok(()) => match self.instance.probe().await {
                Ok(()) => RuntimeState::Ready(instance),
                Err(problem) => RuntimeState::Pending { problem, instance: Some(instance) },
            },
        }
    }

    /// Lets calls finish, then stops the container and waits until nothing of it is left. Returns what is remarkable about
    /// its end.
    pub(crate) async fn stop(&self, drain: bool) -> Option<String> {
        let reached = |step| transom_container::reached("supervised", step);
        if drain {
            reached("its calls are awaited");
            let mut calls = self.instance.calls.subscribe();
            // Calls that take longer are cut off.
            let _ = timeout(DRAIN_WITHIN, calls.wait_for(|calls| *calls == 0)).await;
            reached("its calls have ended");
        }
        self.program.stop().await
    }
}

/// The name of a revision; that of its function, where there are no revisions.
fn name(id: &RevisionId) -> &str {
    if id.revision.is_empty() { &id.function } else { &id.revision }
}

/// What the container of a revision runs.
fn spec(
    id: &RevisionId,
    image: &Image,
    reference: &str,
    overrides: &Overrides,
    limits: Limits,
) -> Result<ContainerSpec, Problem> {
    let config = &image.config;
    let program = if config.entrypoint.is_empty() { &config.cmd } else { &config.entrypoint };
    let program = overrides.command.as_ref().unwrap_or(program);
    if program.is_empty() {
        return Err(without_program(reference));
    }
    let arguments = overrides.args.iter().flatten().cloned().chain([INSECURE.to_owned()]);
    let own = [format!("FUNCTION_NAME={}", id.function), format!("REVISION_NAME={}", id.revision)];
    Ok(ContainerSpec {
        name: host_name(name(id)),
        root: image.root.clone(),
        args: program.iter().cloned().chain(arguments).collect(),
        env: environment(image, overrides, own),
        cwd: working_dir(image),
        port: Some(PORT),
        network: Network::None,
        mounts: Vec::new(),
        limits: limited(limits, overrides),
    })
}

/// An image that is a package and nothing else.
pub(crate) fn without_program(reference: &str) -> Problem {
    let message = format!(
        "the image {reference} has no program to run: its package was built without the image of its runtime; build it \
         with --embed-runtime-image-tarball"
    );
    Problem::new(Reason::InvalidImage, message)
}

/// A name as that of a host.
pub(crate) fn host_name(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(63).collect()
}

/// The variables of the image, those of a runtime config, and those that a program always gets.
pub(crate) fn environment(
    image: &Image,
    overrides: &Overrides,
    own: impl IntoIterator<Item = String>,
) -> Vec<String> {
    let mut env = image.config.env.clone();
    if !env.iter().any(|variable| variable.starts_with("PATH=")) {
        env.push(DEFAULT_PATH.to_owned());
    }
    for variable in overrides.env.iter().cloned().chain(own) {
        let name = variable.split_once('=').map_or(&*variable, |(name, _)| name).to_owned();
        env.retain(|other| other.split_once('=').map_or(&**other, |(other, _)| other) != name);
        env.push(variable);
    }
    env
}

pub(crate) fn working_dir(image: &Image) -> String {
    if image.config.working_dir.is_empty() { "/".to_owned() } else { image.config.working_dir.clone() }
}

/// Limits, of which a runtime config may change some.
pub(crate) fn limited(limits: Limits, overrides: &Overrides) -> Limits {
    Limits {
        memory_bytes: overrides.memory_bytes.unwrap_or(limits.memory_bytes),
        cpu_millis: overrides.cpu_millis.unwrap_or(limits.cpu_millis),
        ..limits
    }
}

/// Makes connections to the container of a revision, whichever that is now.
struct Dialler(watch::Receiver<Phase>);

#[async_trait]
impl Dial for Dialler {
    async fn dial(&self) -> io::Result<TcpStream> {
        let phase = self.0.borrow().clone();
        let refused = |why: String| Err(io::Error::new(io::ErrorKind::ConnectionRefused, why));
        match phase {
            Phase::Supervised(supervised) => supervised.connect().await,
            Phase::Unavailable(problem) | Phase::Invalid(problem) => refused(problem.message),
            Phase::Preparing => refused("the image is being pulled".to_owned()),
            Phase::Stopped => refused("the function is stopped".to_owned()),
        }
    }
}

/// A function in a container.
struct ContainerInstance {
    remote: Remote,
    /// Calls under way.
    calls: watch::Sender<usize>,
    phase: watch::Receiver<Phase>,
    note: String,
}

impl ContainerInstance {
    fn new(
        id: &RevisionId,
        phase: watch::Receiver<Phase>,
        overrides: &Overrides,
        options: &Options,
    ) -> Result<Self, Problem> {
        let endpoint = Endpoint::dialled(format!("container:{}", name(id)), Arc::new(Dialler(phase.clone())));
        let remote = Remote::new(endpoint, options);
        let remote = remote.map_err(|error| Problem::new(Reason::InvalidEndpoint, chain(&error)))?;
        let notes = [Some(RUNS_HERE.to_owned()), overrides.note()].into_iter().flatten();
        Ok(Self { remote, calls: watch::Sender::new(0), phase, note: notes.collect::<Vec<_>>().join("; ") })
    }
}

impl ContainerInstance {
    fn container(&self) -> Option<Arc<Supervised>> {
        supervised(&self.phase.borrow())
    }
}

/// A call under way, even if its caller gives up.
struct Call<'a> {
    instance: &'a ContainerInstance,
    has_ended: bool,
}

impl<'a> Call<'a> {
    fn begin(instance: &'a ContainerInstance) -> Self {
        instance.calls.send_modify(|calls| *calls += 1);
        Self { instance, has_ended: false }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.instance.calls.send_modify(|calls| *calls -= 1);
        // Its caller gave up.
        if !self.has_ended
            && let Some(container) = self.instance.container()
        {
            container.call_given_up();
        }
    }
}

#[async_trait]
impl Instance for ContainerInstance {
    async fn call(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let mut call = Call::begin(self);
        let response = self.remote.call(request).await;
        call.has_ended = true;
        response
    }

    async fn probe(&self) -> Result<(), Problem> {
        self.remote.probe().await
    }

    fn target(&self) -> &str {
        self.remote.target()
    }

    fn location(&self) -> String {
        "in a container on this machine".to_owned()
    }

    fn note(&self) -> String {
        let remarks = self.container().and_then(|container| container.remarks());
        [Some(self.note.clone()), remarks].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    fn record(&self, code: Code) -> bool {
        self.remote.record(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transom_oci::image::RunConfig;

    fn image(entrypoint: &[&str], cmd: &[&str]) -> Image {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let config = RunConfig { entrypoint: texts(entrypoint), cmd: texts(cmd), ..RunConfig::default() };
        Image { root: "/images/x/rootfs".into(), config }
    }

    #[test]
    fn a_function_is_run_as_its_image_says_without_tls() {
        let id = RevisionId { function: "function-x".into(), revision: "function-x-abc".into() };
        let limits = transom_container::Limits::default();
        let spec = |image| spec(&id, &image, "r.io/x:v1", &Overrides::default(), limits);
        assert_eq!(spec(image(&["/function"], &["--debug"])).unwrap().args, ["/function", "--insecure"]);
        let made = spec(image(&[], &["python", "main.py"])).unwrap();
        assert_eq!(made.args, ["python", "main.py", "--insecure"]);
        assert!(made.env.contains(&"FUNCTION_NAME=function-x".to_owned()), "{:?}", made.env);
        assert!(made.env.iter().any(|variable| variable.starts_with("PATH=")));
        assert_eq!((made.cwd.as_str(), made.name.as_str()), ("/", "function-x-abc"));
        assert_eq!(name(&RevisionId { revision: String::new(), ..id.clone() }), "function-x");
        let problem = spec(image(&[], &[])).unwrap_err();
        assert_eq!(problem.reason, Reason::InvalidImage);
        assert!(problem.message.contains("--embed-runtime-image-tarball"), "{problem}");
    }
}
