//! One revision of a function that runs from its package.

use super::images::Image;
use super::runtime::Shared;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tonic::{Code, Status};
use transom_container::{ContainerSpec, LogFile, Settings, Standing, Supervised};
use transom_function::{RunFunctionRequest, RunFunctionResponse, async_trait};
use transom_object::error_chain::chain;
use transom_runner::{
    Dial, Endpoint, Instance, Options, PackageImage, Problem, Reason, Remote, RevisionId, RuntimeState,
};

/// The port that functions listen on.
const PORT: u16 = 9443;
/// Has a function listen without TLS: its connections do not leave the machine.
const INSECURE: &str = "--insecure";
const DEFAULT_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How long calls may take to finish before their function is stopped.
const DRAIN_WITHIN: Duration = Duration::from_secs(30);
/// The first and the longest time between two attempts to pull an image.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// What becomes of a revision.
#[derive(Clone)]
enum Phase {
    /// Its image is being pulled and unpacked.
    Preparing,
    /// The image cannot be pulled; it is tried again.
    Unavailable(Problem),
    /// It can never be run.
    Invalid(Problem),
    Supervised(Arc<Supervised>),
    Stopped,
}

/// A revision that runs from its package, or is about to.
pub(super) struct Revision {
    pub(super) image: PackageImage,
    phase: Arc<watch::Sender<Phase>>,
    instance: Arc<ContainerInstance>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Revision {
    /// Begins to run a revision.
    pub(super) fn start(id: &RevisionId, image: PackageImage, shared: &Arc<Shared>) -> Result<Self, Problem> {
        let (phase, seen) = watch::channel(Phase::Preparing);
        let phase = Arc::new(phase);
        let instance = ContainerInstance::new(id, seen, &shared.options)?;
        let preparing =
            Preparing { id: id.clone(), image: image.clone(), shared: shared.clone(), phase: phase.clone() };
        let task = tokio::spawn(preparing.run());
        Ok(Self { image, phase, instance: Arc::new(instance), task: Mutex::new(Some(task)) })
    }

    /// Waits until the revision runs or it is clear that it does not, but not for long.
    pub(super) async fn settle(&self, within: Duration) {
        let settled = async {
            let mut phase = self.phase.subscribe();
            let prepared =
                phase.wait_for(|phase| !matches!(phase, Phase::Preparing)).await.map(|p| p.clone());
            if let Ok(Phase::Supervised(supervised)) = prepared {
                supervised.settled().await;
            }
        };
        // Whatever it is by then is the state.
        let _ = timeout(within, settled).await;
    }

    /// The state of the revision now.
    pub(super) async fn state(&self) -> RuntimeState {
        let instance: Arc<dyn Instance> = self.instance.clone();
        let pending = |reason, message: String| RuntimeState::Pending {
            problem: Problem::new(reason, message),
            instance: Some(instance.clone()),
        };
        let phase = self.phase.borrow().clone();
        let standing = match phase {
            Phase::Preparing => {
                return pending(
                    Reason::Pulling,
                    format!("the image {} is being pulled", self.image.reference),
                );
            }
            Phase::Unavailable(problem) => return pending(problem.reason, problem.message),
            Phase::Invalid(problem) => return RuntimeState::Failed(problem),
            Phase::Supervised(supervised) => supervised.standing(),
            Phase::Stopped => Standing::Stopped,
        };
        match standing {
            Standing::Starting(None) => pending(Reason::Starting, "the function is starting".to_owned()),
            Standing::Starting(Some(remarkable)) => pending(Reason::Starting, remarkable),
            Standing::Ended(problem) => pending(Reason::Ended, problem),
            Standing::Stopped => pending(Reason::Ended, "the function is stopped".to_owned()),
            Standing::Running => match self.instance.probe().await {
                Ok(()) => RuntimeState::Ready(instance),
                Err(problem) => RuntimeState::Pending { problem, instance: Some(instance) },
            },
        }
    }

    /// Lets calls finish, then stops the container and waits until nothing of it is left.
    pub(super) async fn stop(&self, drain: bool) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.abort();
            // It may have been about to start the container.
            let _ = task.await;
        }
        if drain {
            let mut calls = self.instance.calls.subscribe();
            // Calls that take longer are cut off.
            let _ = timeout(DRAIN_WITHIN, calls.wait_for(|calls| *calls == 0)).await;
        }
        if let Phase::Supervised(supervised) = self.phase.send_replace(Phase::Stopped) {
            supervised.stop().await;
        }
    }
}

/// A revision until its container is supervised.
struct Preparing {
    id: RevisionId,
    image: PackageImage,
    shared: Arc<Shared>,
    phase: Arc<watch::Sender<Phase>>,
}

impl Preparing {
    async fn run(self) {
        let mut delay = FIRST_DELAY;
        let settings = loop {
            let problem = match self.prepare().await {
                Ok(settings) => break settings,
                Err(problem) => problem,
            };
            if problem.reason == Reason::InvalidImage {
                return self.set(Phase::Invalid(problem));
            }
            self.set(Phase::Unavailable(problem));
            sleep(delay).await;
            delay = (delay * 2).min(LONGEST_DELAY);
        };
        let (shared, id) = (self.shared.clone(), self.id.clone());
        let supervised = Supervised::start(settings, move || shared.changed(&id));
        self.set(Phase::Supervised(Arc::new(supervised)));
    }

    fn set(&self, phase: Phase) {
        self.phase.send_replace(phase);
        self.shared.changed(&self.id);
    }

    async fn prepare(&self) -> Result<Settings, Problem> {
        let workspace = self.shared.workspace()?;
        let place = &self.shared.place;
        let image = self.shared.images.prepare(&workspace, place, &self.image).await?;
        let reference = &self.image.reference;
        let spec = spec(&self.id, &image, reference, self.shared.limits)?;
        let log = Arc::new(LogFile::new(super::logs::file(&place.dir, &self.id)));
        Ok(Settings {
            workspace,
            engine: self.shared.engine.clone(),
            may_fall_back: self.shared.may_fall_back,
            spec,
            log,
            grace: place.grace,
        })
    }
}

/// What the container of a revision runs.
fn spec(
    id: &RevisionId,
    image: &Image,
    reference: &str,
    limits: transom_container::Limits,
) -> Result<ContainerSpec, Problem> {
    let config = &image.config;
    let program = if config.entrypoint.is_empty() { &config.cmd } else { &config.entrypoint };
    if program.is_empty() {
        let message = format!(
            "the image {reference} has no program to run: its package was built without the image of a function; build it \
             with --embed-runtime-image-tarball"
        );
        return Err(Problem::new(Reason::InvalidImage, message));
    }
    let mut env = config.env.clone();
    if !env.iter().any(|variable| variable.starts_with("PATH=")) {
        env.push(DEFAULT_PATH.to_owned());
    }
    env.push(format!("FUNCTION_NAME={}", id.function));
    env.push(format!("REVISION_NAME={}", id.revision));
    let name = if id.revision.is_empty() { &id.function } else { &id.revision };
    Ok(ContainerSpec {
        name: name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(63).collect(),
        root: image.root.clone(),
        args: program.iter().cloned().chain([INSECURE.to_owned()]).collect(),
        env,
        cwd: if config.working_dir.is_empty() { "/".to_owned() } else { config.working_dir.clone() },
        port: PORT,
        limits,
    })
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
}

impl ContainerInstance {
    fn new(id: &RevisionId, phase: watch::Receiver<Phase>, options: &Options) -> Result<Self, Problem> {
        let name = if id.revision.is_empty() { &id.function } else { &id.revision };
        let endpoint = Endpoint::dialled(format!("container:{name}"), Arc::new(Dialler(phase)));
        let remote = Remote::new(endpoint, options);
        let remote = remote.map_err(|error| Problem::new(Reason::InvalidEndpoint, chain(&error)))?;
        Ok(Self { remote, calls: watch::Sender::new(0) })
    }
}

/// A call under way, even if its caller gives up.
struct Call<'a>(&'a watch::Sender<usize>);

impl<'a> Call<'a> {
    fn begin(calls: &'a watch::Sender<usize>) -> Self {
        calls.send_modify(|calls| *calls += 1);
        Self(calls)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls -= 1);
    }
}

#[async_trait]
impl Instance for ContainerInstance {
    async fn call(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let _call = Call::begin(&self.calls);
        self.remote.call(request).await
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
        "runs in a container on this machine".to_owned()
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
        let spec = |image| spec(&id, &image, "r.io/x:v1", limits);
        assert_eq!(spec(image(&["/function"], &["--debug"])).unwrap().args, ["/function", "--insecure"]);
        let made = spec(image(&[], &["python", "main.py"])).unwrap();
        assert_eq!(made.args, ["python", "main.py", "--insecure"]);
        assert!(made.env.contains(&"FUNCTION_NAME=function-x".to_owned()), "{:?}", made.env);
        assert!(made.env.iter().any(|variable| variable.starts_with("PATH=")));
        assert_eq!((made.cwd.as_str(), made.name.as_str()), ("/", "function-x-abc"));
        let problem = spec(image(&[], &[])).unwrap_err();
        assert_eq!(problem.reason, Reason::InvalidImage);
        assert!(problem.message.contains("--embed-runtime-image-tarball"), "{problem}");
    }
}
