//! A program in a package: its image is prepared, its container supervised.

use crate::images::Image;
use crate::runtime::Shared;
use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use transom_container::{ContainerSpec, LogFile, Settings, Standing, Supervised};
use transom_runner::{PackageImage, Problem, Reason};

/// The first and the longest time between two attempts to pull an image.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The state of a program.
#[derive(Clone)]
pub(crate) enum Phase {
    /// Its image is being pulled and unpacked.
    Preparing,
    /// The image cannot be pulled; it is tried again.
    Unavailable(Problem),
    /// It can never be run.
    Invalid(Problem),
    Supervised(Arc<Supervised>),
    Stopped,
}

/// The container of a program, if there is one.
pub(crate) fn supervised(phase: &Phase) -> Option<Arc<Supervised>> {
    match phase {
        Phase::Supervised(supervised) => Some(supervised.clone()),
        _ => None,
    }
}

/// Says what the container of an image runs. It is asked again while it fails.
pub(crate) type Describe =
    Box<dyn Fn(Image) -> BoxFuture<'static, Result<ContainerSpec, Problem>> + Send + Sync>;

/// What a program is made from.
pub(crate) struct Recipe {
    pub(crate) image: PackageImage,
    pub(crate) describe: Describe,
    pub(crate) log: PathBuf,
    /// Is called whenever the program has become something else.
    pub(crate) changed: Arc<dyn Fn() + Send + Sync>,
}

/// A program that runs from its package, or is about to.
pub(crate) struct Program {
    pub(crate) image: PackageImage,
    phase: Arc<watch::Sender<Phase>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Program {
    /// Begins to run a program.
    pub(crate) fn start(recipe: Recipe, shared: &Arc<Shared>) -> Self {
        let phase = Arc::new(watch::Sender::new(Phase::Preparing));
        let image = recipe.image.clone();
        let preparing = Preparing { recipe, shared: shared.clone(), phase: phase.clone() };
        Self { image, phase, task: Mutex::new(Some(tokio::spawn(preparing.run()))) }
    }

    pub(crate) fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Whether it is the program of an image. How that is pulled matters until it has been pulled.
    pub(crate) fn is_of(&self, wanted: &PackageImage) -> bool {
        if matches!(*self.phase.borrow(), Phase::Unavailable(_)) && self.image != *wanted {
            return false;
        }
        match (&self.image.digest, &wanted.digest) {
            (Some(own), Some(wanted)) => own == wanted,
            _ => self.image.reference == wanted.reference,
        }
    }

    /// Waits until the program runs or it is clear that it does not, but not for long.
    pub(crate) async fn until_started_or_failed(&self, within: Duration) {
        let settled = async {
            let mut phase = self.phase.subscribe();
            let prepared =
                phase.wait_for(|phase| !matches!(phase, Phase::Preparing)).await.map(|p| p.clone());
            if let Ok(Phase::Supervised(supervised)) = prepared {
                supervised.until_started_or_ended().await;
            }
        };
        // Whatever it is by then is the state.
        let _ = timeout(within, settled).await;
    }

    /// Whether the program runs.
    pub(crate) fn standing(&self) -> Result<(), Problem> {
        let pending = |reason, message: &str| Err(Problem::new(reason, message));
        let standing = match self.phase.borrow().clone() {
            Phase::Preparing => {
                let message = format!("the image {} is being pulled", self.image.reference);
                return pending(Reason::Pulling, &message);
            }
            Phase::Unavailable(problem) | Phase::Invalid(problem) => return Err(problem),
            Phase::Supervised(supervised) => supervised.standing(),
            Phase::Stopped => Standing::Stopped,
        };
        let remarked = |reason, message: &str| {
            let all = [Some(message.to_owned()), self.remarks()].into_iter().flatten();
            pending(reason, &all.collect::<Vec<_>>().join("; "))
        };
        match standing {
            Standing::Starting(None) => remarked(Reason::Starting, "the program is starting"),
            Standing::Starting(Some(remarkable)) => remarked(Reason::Starting, &remarkable),
            Standing::Ended(problem) => remarked(Reason::Ended, &problem),
            Standing::Stopped => pending(Reason::Ended, "the program is stopped"),
            Standing::Running => Ok(()),
        }
    }

    /// The container, if there is one.
    fn supervised(&self) -> Option<Arc<Supervised>> {
        supervised(&self.phase.borrow())
    }

    /// What is remarkable about the container, such as the limits that it reached.
    pub(crate) fn remarks(&self) -> Option<String> {
        self.supervised()?.remarks()
    }

    /// Stops the container and waits until nothing of it is left. Returns what is remarkable about its end.
    pub(crate) async fn stop(&self) -> Option<String> {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.abort();
            // It may have been about to start the container.
            let _ = task.await;
        }
        if let Phase::Supervised(supervised) = self.phase.send_replace(Phase::Stopped) {
            supervised.stop().await;
            return supervised.remarks().filter(|_| supervised.was_killed());
        }
        None
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.abort();
        }
    }
}

/// A program until its container is supervised.
struct Preparing {
    recipe: Recipe,
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
        let changed = self.recipe.changed.clone();
        let supervised = Supervised::start(settings, move || changed());
        self.set(Phase::Supervised(Arc::new(supervised)));
    }

    fn set(&self, phase: Phase) {
        self.phase.send_replace(phase);
        (self.recipe.changed)();
    }

    async fn prepare(&self) -> Result<Settings, Problem> {
        let workspace = self.shared.workspace()?;
        let place = &self.shared.place;
        let image = self.shared.images.prepare(&workspace, place, &self.recipe.image).await?;
        let spec = (self.recipe.describe)(image).await?;
        Ok(Settings {
            workspace,
            engine: self.shared.containers.engine.clone(),
            may_fall_back: self.shared.containers.may_fall_back,
            spec,
            log: Arc::new(LogFile::new(self.recipe.log.clone())),
            grace: place.grace,
        })
    }
}
