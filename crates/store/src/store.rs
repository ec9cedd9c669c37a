//! `Store`: the handle through which all other crates read and write.

use crate::backend::{Backend, Memory};
use crate::log::Log;
use crate::model::{Committed, Compacted, Entry, Key, Snapshot, Write, WriteError};
use crate::open_error::OpenError;
use crate::options::Options;
use crate::sequencer::{Message, Request, Sequencer};
use crate::state::State;
use crate::watch::{Topics, Watch};
use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::{fmt, io};
use tokio::sync::{Semaphore, oneshot, watch};

/// The queue of writes may hold this many units of [`UNIT_BYTES`] bytes; later writers wait.
const QUEUE_UNITS: u32 = 16 * 1024;
const UNIT_BYTES: usize = 4096;

/// A revisioned, watchable set of objects. Cloning gives another handle to the same store. Reads come from
/// the newest published state and never wait; writes go through one sequencer.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
    outbox: Outbox,
}

/// Where writes go.
#[derive(Clone)]
enum Outbox {
    /// To the sequencer's own thread.
    Thread(mpsc::Sender<Message>),
    /// To a sequencer without a thread, which runs on the caller's thread.
    Here(Arc<Mutex<Sequencer>>),
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Thread(_) => "Thread",
            Self::Here(_) => "Here",
        })
    }
}

impl Outbox {
    /// Sends a message. Returns whether the sequencer still runs.
    fn send(&self, message: Message) -> bool {
        match self {
            Self::Thread(outbox) => outbox.send(message).is_ok(),
            Self::Here(sequencer) => {
                sequencer.lock().unwrap_or_else(PoisonError::into_inner).take(message);
                true
            }
        }
    }
}

/// State that handles, watches and the sequencer share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: ArcSwap<State>,
    pub(crate) topics: Topics,
    queue: Arc<Semaphore>,
    failed: watch::Sender<Option<String>>,
    /// Why the last write was refused, until one would be accepted again.
    refusing: watch::Sender<Option<String>>,
    closed: AtomicBool,
}

impl Shared {
    fn new(state: State) -> Self {
        Self {
            state: ArcSwap::from_pointee(state),
            topics: Topics::default(),
            queue: Arc::new(Semaphore::new(QUEUE_UNITS as usize)),
            failed: watch::channel(None).0,
            refusing: watch::channel(None).0,
            closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.failed.borrow().clone()
    }

    pub(crate) fn fail(&self, reason: String) {
        self.failed.send_replace(Some(reason));
    }

    pub(crate) fn is_refusing(&self) -> bool {
        self.refusing.borrow().is_some()
    }

    pub(crate) fn refuse(&self, error: &io::Error) {
        let reason = error.to_string();
        self.refusing.send_if_modified(|refusing| {
            if refusing.is_none() {
                tracing::warn!(%error, "the store refuses writes");
            }
            let changed = refusing.as_ref() != Some(&reason);
            *refusing = Some(reason);
            changed
        });
    }

    pub(crate) fn accept(&self) {
        if self.is_refusing() {
            tracing::info!("the store accepts writes again");
            self.refusing.send_replace(None);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Ends watches; they see every event that was published before.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.topics.wake_all();
    }
}

impl Store {
    /// The store in `dir`, created if it does not exist. The directory stays locked until the store is shut down
    /// or its last handle is gone. Blocks while it reads.
    pub fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        let (state, log) = Log::open(dir, &options)?;
        Ok(Self::start(state, Box::new(log), options))
    }

    /// A store whose content is dropped with its last handle.
    pub fn in_memory(options: Options) -> Self {
        Self::start(State::empty(), Box::new(Memory), options)
    }

    #[expect(clippy::expect_used, reason = "a process that cannot start a thread cannot serve")]
    fn start(state: State, backend: Box<dyn Backend>, options: Options) -> Self {
        let shared = Arc::new(Shared::new(state));
        let (outbox, inbox) = mpsc::channel();
        let sequencer = Sequencer::new(Arc::clone(&shared), inbox, backend, options);
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || sequencer.run())
            .expect("a thread for the store's writer");
        Self { shared, outbox: Outbox::Thread(outbox) }
    }

    /// A store in memory without a thread: a write is made when its future is first polled. For simulations, in which
    /// everything must run on their scheduler.
    pub fn in_step(options: Options) -> Self {
        let shared = Arc::new(Shared::new(State::empty()));
        let (_, inbox) = mpsc::channel();
        let sequencer = Sequencer::new(Arc::clone(&shared), inbox, Box::new(Memory), options);
        Self { shared, outbox: Outbox::Here(Arc::new(Mutex::new(sequencer))) }
    }

    /// Checks the precondition and makes the write; a strict write is durable before this returns. Dropping the
    /// future does not cancel a write that is already queued.
    pub async fn commit(&self, write: Write) -> Result<Committed, WriteError> {
        let units = u32::try_from(write.cost().div_ceil(UNIT_BYTES)).unwrap_or(QUEUE_UNITS).min(QUEUE_UNITS);
        let room = Arc::clone(&self.shared.queue).acquire_many_owned(units).await;
        let permit = room.map_err(|_| self.stopped())?;
        let (reply, answer) = oneshot::channel();
        let request = Box::new(Request { write, reply, permit });
        if !self.outbox.send(Message::Write(request)) {
            return Err(self.stopped());
        }
        answer.await.map_err(|_| self.stopped())?
    }

    fn stopped(&self) -> WriteError {
        let reason = self.shared.failure().unwrap_or_else(|| "the store is shut down".to_owned());
        WriteError::Unavailable(reason)
    }

    /// The object with this key, as of the newest revision.
    pub fn get(&self, key: &Key) -> Option<Arc<Entry>> {
        self.shared.state.load().get(key).cloned()
    }

    /// All objects of a resource as of the newest revision, in O(1).
    pub fn snapshot(&self, resource: &str) -> Snapshot {
        self.shared.state.load().snapshot(resource)
    }

    /// All objects of a resource exactly as of `revision`. A revision yet to come gives the newest.
    pub fn snapshot_at(&self, resource: &str, revision: u64) -> Result<Snapshot, Compacted> {
        self.shared.state.load().snapshot_at(resource, revision)
    }

    /// The newest published revision.
    pub fn revision(&self) -> u64 {
        self.shared.state.load().revision
    }

    /// Waits until the store has reached `revision`, indefinitely if necessary. Cancel safe.
    pub async fn wait_for(&self, revision: u64) {
        loop {
            let mut woken = std::pin::pin!(self.shared.topics.all.notified());
            woken.as_mut().enable();
            if self.revision() >= revision {
                return;
            }
            woken.await;
        }
    }

    /// The changes of a resource after a revision, which may be yet to come.
    pub fn watch(&self, resource: &str, after: u64) -> Result<Watch, Compacted> {
        Watch::new(Arc::clone(&self.shared), Some(resource.into()), after)
    }

    /// The changes of every resource after a revision.
    pub fn watch_all(&self, after: u64) -> Result<Watch, Compacted> {
        Watch::new(Arc::clone(&self.shared), None, after)
    }

    /// The resources that hold objects, in order.
    pub fn resources(&self) -> Vec<Arc<str>> {
        let state = self.shared.state.load();
        let held = state.resources.iter().filter(|(_, resource)| !resource.objects.is_empty());
        held.map(|(name, _)| Arc::clone(name)).collect()
    }

    /// Changes to `Some(reason)` when durability can no longer be guaranteed: every later write is refused, and
    /// the process should report the reason and exit.
    pub fn failed(&self) -> watch::Receiver<Option<String>> {
        self.shared.failed.subscribe()
    }

    /// `Some(reason)` while the disk accepts no writes, for example because it is full: writes fail, reads continue.
    /// Changes back to `None` within about a second after the cause is removed.
    pub fn refusing(&self) -> watch::Receiver<Option<String>> {
        self.shared.refusing.subscribe()
    }

    /// Completes the writes already queued, makes everything durable, ends watches and releases the directory.
    /// Later writes are refused; reads continue.
    pub async fn shutdown(&self) {
        let (reply, done) = oneshot::channel();
        if self.outbox.send(Message::Shutdown(reply)) {
            // An error means that the sequencer has ended already.
            let _ = done.await;
        }
    }
}
