//! Carries out a rollout: looks at the objects, asks [`decide`] what comes next, does it, and records it.

use crate::decide::{Action, Moved, Objects, Write, decide, too_slow, unwritable};
use crate::record::{Phase, Problem, Record};
use crate::storage::{Held, RENEW_INTERVAL};
use crate::writing::{FIELD_MANAGER, explain, write};
use futures_util::FutureExt;
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use transom_console::control_plane::within;
use transom_console::{Failure, Progress, Signals};
use transom_engine::{Change, Cluster, Depth, Key, Mirror, Subscription, Watches};
use transom_object::{GroupVersionKind, meta};

/// Objects that are written at the same time.
const MAX_PARALLEL_WRITES: usize = 16;
/// Changes that come within this time are looked at together.
const COALESCE_INTERVAL: Duration = Duration::from_millis(20);
/// How long the watch may take to report what was written.
const WATCH_LAG_TIMEOUT: Duration = Duration::from_secs(10);
/// How often an object is written in one wave before it is clear that something else changes it back.
const MAX_WRITES: usize = 5;

/// How the work of a command on a rollout ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The record says how.
    Decided,
    /// It was asked to pause.
    Paused,
    /// The user interrupted it.
    Interrupted,
    /// The previous revision of an object could not be restored; the record names the object.
    Blocked,
}

/// A rollout that this command works on.
pub(crate) struct Drive {
    held: Held,
    watched: Watched,
    progress: Progress,
    signals: Signals,
    /// Whether one of these signals has arrived.
    stopping: bool,
    /// When the wave began, for this command.
    began: Instant,
    /// How often each object was written in this wave.
    writes: BTreeMap<(Moved, Key), usize>,
    /// Why the server refused to change some of them.
    refusals: BTreeMap<(Moved, Key), String>,
}

/// The objects of a rollout, as a watch shows them.
struct Watched {
    changed: Arc<Notify>,
    composites: Subscription,
    claims: Option<Subscription>,
}

impl Watched {
    async fn start(cluster: &Cluster, record: &Record) -> Result<Self, Failure> {
        let watches = Watches::new(cluster.clone());
        let changed = Arc::new(Notify::new());
        let follow = async |kind: &GroupVersionKind| {
            let notify = changed.clone();
            let observer = Arc::new(move |_: &Change<'_>| notify.notify_one());
            let subscription = watches.subscribe(kind, Depth::Whole, observer);
            let listed = within(&kind.kind, subscription.mirror().ready()).await?;
            listed.map_err(|e| explain(&kind.kind, &e))?;
            Ok::<_, Failure>(subscription)
        };
        let composites = follow(&record.kind).await?;
        // Claims matter only to those that have one.
        let claims = match &record.claim_kind {
            Some(kind) if record.targets.iter().any(|target| target.claim.is_some()) => {
                Some(follow(kind).await?)
            }
            _ => None,
        };
        Ok(Self { changed, composites, claims })
    }

    /// Each composite resource that may have been moved, and its claim.
    fn look(&self, record: &Record) -> Vec<[Option<Arc<Value>>; 2]> {
        let claims = self.claims.as_ref().map(Subscription::mirror);
        let of = |mirror: &Mirror, key: &Key| mirror.get(key).map(|seen| seen.object.clone());
        let each = record.begun().iter().map(|target| {
            let claim = target.claim.as_ref().zip(claims).and_then(|((key, _), claims)| of(claims, key));
            [of(self.composites.mirror(), &target.xr), claim]
        });
        each.collect()
    }

    /// Waits until the watches show all that was written.
    async fn catch_up(&self, cluster: &Cluster) {
        let all = [Some(&self.composites), self.claims.as_ref()];
        for mirror in all.into_iter().flatten().map(Subscription::mirror) {
            // If they do not, what was written is written again.
            mirror.reaches(cluster.newest_written(mirror.gvk()), WATCH_LAG_TIMEOUT).await;
        }
    }
}

impl Drive {
    pub(crate) async fn start(held: Held, progress: Progress) -> Result<Self, Failure> {
        let signals = Signals::handle()?;
        let watched = match Watched::start(held.cluster(), held.record()).await {
            Ok(watched) => watched,
            Err(failure) => {
                // The first failure is the one to report.
                let _ = held.release().await;
                return Err(failure);
            }
        };
        Ok(Self {
            held,
            watched,
            progress,
            signals,
            stopping: false,
            began: Instant::now(),
            writes: BTreeMap::new(),
            refusals: BTreeMap::new(),
        })
    }

    /// Works on the rollout until nothing is left to do, or it is to be left alone. Then another command may.
    pub(crate) async fn run(mut self) -> Result<(Record, Ending), Failure> {
        let ended = self.work().await;
        self.progress.clear();
        match ended {
            Ok(ending) => Ok((self.held.release().await?, ending)),
            Err(failure) => {
                // The first failure is the one to report.
                let _ = self.held.release().await;
                Err(failure)
            }
        }
    }

    async fn work(&mut self) -> Result<Ending, Failure> {
        self.announce();
        loop {
            self.held.renew().await?;
            if self.held.record().paused {
                return Ok(Ending::Paused);
            }
            if self.is_interrupted() {
                return Ok(Ending::Interrupted);
            }
            match self.next() {
                Action::Write(writes) => match self.futile(&writes) {
                    None => self.write(writes).await?,
                    Some(problem) => {
                        let rolls_back = self.held.record().phase == Phase::RollingBack;
                        self.record(unwritable(self.held.record(), problem)).await?;
                        if rolls_back {
                            return Ok(Ending::Blocked);
                        }
                    }
                },
                Action::Wait { ready, first } => {
                    self.show(ready);
                    if let Some(ending) = self.wait(first).await? {
                        return Ok(ending);
                    }
                }
                action @ Action::Record { .. } => self.record(action).await?,
                Action::End => return Ok(Ending::Decided),
            }
        }
    }

    fn next(&self) -> Action {
        let record = self.held.record();
        let seen = self.watched.look(record);
        let objects: Vec<Objects<'_>> =
            seen.iter().map(|[xr, claim]| Objects { xr: xr.as_deref(), claim: claim.as_deref() }).collect();
        decide(record, &objects)
    }

    /// Whether the user wants the command to end.
    fn is_interrupted(&mut self) -> bool {
        self.stopping |= self.signals.received().now_or_never().is_some();
        self.stopping
    }

    /// Waits for a change. Returns how the work ends, if it does.
    async fn wait(&mut self, first: Problem) -> Result<Option<Ending>, Failure> {
        let deadline = self.began + self.held.record().timeout;
        tokio::select! {
            () = self.watched.changed.notified() => tokio::time::sleep(COALESCE_INTERVAL).await,
            () = tokio::time::sleep(RENEW_INTERVAL) => {}
            () = tokio::time::sleep_until(deadline) => {
                let after = format!("not ready after {:?}", self.held.record().timeout);
                let problem = Problem { message: format!("{after}: {}", first.message), ..first };
                self.record(too_slow(self.held.record(), problem)).await?;
            }
            () = self.signals.received() => return Ok(Some(Ending::Interrupted)),
        }
        Ok(None)
    }

    /// Why objects are not written once more: the server refused to change one of them, or it was written too often. A
    /// rollback restores all others before it reports that.
    fn futile(&mut self, writes: &[Write]) -> Option<Problem> {
        for write in writes {
            let key = (write.of, write.key.clone());
            let count = self.writes.entry(key.clone()).or_default();
            *count += 1;
            let message = match (self.refusals.get(&key), *count > MAX_WRITES) {
                (Some(why), _) => format!("its revision cannot be changed: {why}"),
                (None, true) => "something else changes its revision back again and again; \
                                 metadata.managedFields shows who wrote spec"
                    .to_owned(),
                (None, false) => continue,
            };
            let resource = format!("{} {}", self.kind(write.of).kind, write.key);
            return Some(Problem { resource, message });
        }
        None
    }

    fn kind(&self, of: Moved) -> &GroupVersionKind {
        let record = self.held.record();
        match (of, &record.claim_kind) {
            (Moved::Claim, Some(kind)) => kind,
            _ => &record.kind,
        }
    }

    async fn write(&mut self, writes: Vec<Write>) -> Result<(), Failure> {
        let total = writes.len();
        for (n, part) in writes.chunks(MAX_PARALLEL_WRITES).enumerate() {
            self.held.renew().await?;
            if self.held.record().paused || self.is_interrupted() {
                return Ok(());
            }
            let each = part.iter().map(|write| patch(self.held.cluster(), self.kind(write.of), write));
            let refusals = try_join_all(each).await?;
            let refused = part
                .iter()
                .zip(refusals)
                .filter_map(|(write, why)| why.map(|why| ((write.of, write.key.clone()), why)));
            self.refusals.extend(refused);
            let written = total.min((n + 1) * MAX_PARALLEL_WRITES);
            self.progress.show(&format!("{}: {written} of {total} written", self.title()));
        }
        self.watched.catch_up(self.held.cluster()).await;
        Ok(())
    }

    async fn record(&mut self, action: Action) -> Result<(), Failure> {
        let Action::Record { phase, wave, problem } = action else { return Ok(()) };
        let record = self.held.record();
        let next_wave = (record.phase, record.wave) != (phase, wave);
        let change = |record: &mut Record| {
            (record.phase, record.wave) = (phase, wave);
            record.problem.clone_from(&problem);
        };
        self.held.change(change).await?;
        if next_wave {
            self.began = Instant::now();
            self.writes.clear();
            self.refusals.clear();
            self.announce();
        }
        Ok(())
    }

    /// `wave 2 of 4`.
    fn title(&self) -> String {
        let record = self.held.record();
        match record.phase {
            Phase::RollingBack => "rolling back".to_owned(),
            _ => format!("wave {} of {}", record.wave + 1, record.waves()),
        }
    }

    /// Says what is done from now on.
    fn announce(&mut self) {
        let record = self.held.record();
        let text = match record.phase {
            Phase::Progressing => {
                let count = record.begun().iter().filter(|target| target.wave == record.wave).count();
                format!("{}: {count} {} to {}", self.title(), record.kind.kind, record.to)
            }
            Phase::RollingBack => {
                let why =
                    record.problem.as_ref().map(|p| format!(", because of {}: {}", p.resource, p.message));
                format!(
                    "rolling back {} {}{}",
                    record.begun().len(),
                    record.kind.kind,
                    why.unwrap_or_default()
                )
            }
            Phase::Stopped | Phase::Done | Phase::RolledBack => return,
        };
        self.progress.say(&text);
    }

    fn show(&mut self, ready: usize) {
        let total = self.held.record().begun().len();
        let text = format!("{}: {ready} of {total} ready", self.title());
        self.progress.show(&text);
    }
}

/// Patches an object, or says why the server does not accept that. One that is gone needs no patch.
async fn patch(cluster: &Cluster, kind: &GroupVersionKind, due: &Write) -> Result<Option<String>, Failure> {
    let subject = format!("{} {}", kind.kind, due.key);
    let object = identity(kind, &due.key);
    let answer = write(&subject, cluster.merge_patch(&object, &due.patch, FIELD_MANAGER)).await?;
    match answer {
        Err(e) if e.is_not_found() => Ok(None),
        // An admission webhook refuses with 400 or 403, a rule of the definition with 422.
        Err(e) if e.refusal().is_some_and(|(code, _)| [400, 403, 422].contains(&code)) => {
            Ok(Some(e.chain().to_string()))
        }
        Err(e) => Err(explain(&subject, &e)),
        Ok(_) => Ok(None),
    }
}

/// What names an object.
pub(crate) fn identity(kind: &GroupVersionKind, key: &Key) -> Value {
    let mut object =
        json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": &*key.name}});
    if !key.namespace.is_empty() {
        meta::set_namespace(&mut object, &key.namespace);
    }
    object
}
