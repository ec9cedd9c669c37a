//! The one writer: orders writes, makes them durable, publishes them.
//!
//! Requests queue up while a batch is being synced, and the next batch takes them all: under load one sync
//! serves many writers, and an idle store commits at once. A batch is applied to a private clone of the
//! state, appended to the backend, synced if any write in it is strict, and only then published and
//! acknowledged. If the backend refuses it, the clone is dropped and the state stays as it was.

use crate::backend::{AppendError, Backend};
use crate::model::{Committed, Durability, Event, Write, WriteError, WriteOp};
use crate::options::Options;
use crate::state::State;
use crate::store::Shared;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// At most this many acknowledged writes wait for a sync. After a crash the store skips more revisions than
/// that, so that none that a client may have seen is assigned twice.
pub(crate) const MAX_UNSYNCED_WRITES: usize = 2048;

/// Between two checks of an idle store for expired history.
const IDLE_INTERVAL: Duration = Duration::from_secs(30);

/// Between two checks of a store that refuses writes whether it could accept them again.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Events of the past that are dropped at a time, beyond those that make room for new ones.
const MAX_TRIMMED_EVENTS: usize = 256;

pub(crate) enum Message {
    Write(Box<Request>),
    Shutdown(oneshot::Sender<()>),
}

pub(crate) struct Request {
    pub(crate) write: Write,
    pub(crate) reply: oneshot::Sender<Result<Committed, WriteError>>,
    /// Room in the queue, released after the response.
    pub(crate) permit: OwnedSemaphorePermit,
}

pub(crate) struct Sequencer {
    shared: Arc<Shared>,
    inbox: Receiver<Message>,
    backend: Box<dyn Backend>,
    options: Options,
    /// The newest state; the same as the published one between batches.
    state: State,
    unsynced: Unsynced,
    pace: Pace,
    /// Whether an idle store has more history to drop.
    trimming: bool,
}

/// Writes that were acknowledged before they were synced.
#[derive(Default)]
struct Unsynced {
    writes: usize,
    since: Option<Instant>,
}

/// The last two batches, from which the wait for further writes is computed.
#[derive(Default)]
struct Pace {
    writes: usize,
    writes_before: usize,
    sync: Duration,
}

type Reply = (oneshot::Sender<Result<Committed, WriteError>>, OwnedSemaphorePermit);

impl Sequencer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        inbox: Receiver<Message>,
        backend: Box<dyn Backend>,
        options: Options,
    ) -> Self {
        let state = State::clone(&shared.state.load());
        let (unsynced, pace) = (Unsynced::default(), Pace::default());
        Self { shared, inbox, backend, options, state, unsynced, pace, trimming: false }
    }

    /// Runs until a stop is requested, or every handle of the store is dropped.
    pub(crate) fn run(mut self) {
        let _alarm = Alarm(Arc::clone(&self.shared));
        let shutdown_reply = loop {
            match self.inbox.recv_timeout(self.until_due()) {
                Ok(Message::Write(first)) => {
                    let (batch, shutdown) = self.gather(*first);
                    self.commit(batch);
                    if shutdown.is_some() {
                        break shutdown;
                    }
                }
                Ok(Message::Shutdown(reply)) => break Some(reply),
                Err(RecvTimeoutError::Timeout) => self.idle(),
                Err(RecvTimeoutError::Disconnected) => break None,
            }
            self.sync_if_due();
        };
        self.close();
        if let Some(reply) = shutdown_reply {
            // The caller may have stopped waiting.
            let _ = reply.send(());
        }
    }

    /// Serves one message, on the thread of the sender.
    pub(crate) fn take(&mut self, message: Message) {
        match message {
            Message::Write(_) if self.shared.is_closed() => {}
            Message::Write(request) => {
                self.commit(vec![*request]);
                self.sync_if_due();
            }
            Message::Shutdown(reply) => {
                self.shared.close();
                // The caller may have stopped waiting.
                let _ = reply.send(());
            }
        }
    }

    fn until_due(&self) -> Duration {
        match self.unsynced.since {
            Some(since) => self.options.batch.relaxed_delay.saturating_sub(since.elapsed()),
            None if self.trimming => Duration::ZERO,
            None if self.shared.is_refusing() => PROBE_INTERVAL,
            None => IDLE_INTERVAL,
        }
    }

    fn sync_if_due(&mut self) {
        let due = self.unsynced.since.is_some() && self.until_due().is_zero();
        if due || self.unsynced.writes >= MAX_UNSYNCED_WRITES / 2 {
            // The reason is kept in `failed` and returned to every later write.
            let _ = self.sync();
        }
    }

    fn idle(&mut self) {
        // A timeout with unsynced writes means that their sync is due, not that the store is idle.
        if self.unsynced.since.is_some() || self.shared.failure().is_some() {
            return;
        }
        if self.shared.is_refusing() {
            self.probe();
        }
        let gone = self.state.trim(&self.options.history, now(), MAX_TRIMMED_EVENTS);
        self.trimming = gone == MAX_TRIMMED_EVENTS;
        if gone > 0 {
            self.shared.state.store(Arc::new(self.state.clone()));
        }
        if self.trimming {
            return;
        }
        self.backend.maintain(&self.state);
        if let Err(error) = self.backend.on_idle() {
            self.fail(&error);
        }
    }

    /// Takes what waits in the queue, up to the limits of a batch.
    fn gather(&mut self, first: Request) -> (Vec<Request>, Option<oneshot::Sender<()>>) {
        let limits = &self.options.batch;
        let max_wait = self.pace.max_wait();
        let started = Instant::now();
        let mut bytes = first.write.cost();
        let mut batch = vec![first];
        while batch.len() < limits.max_writes && bytes < limits.max_bytes {
            let message = match self.inbox.try_recv() {
                Ok(message) => message,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    // Clients whose writes were just acknowledged usually send the next one: wait briefly and sync
                    // them together.
                    let left = max_wait.saturating_sub(started.elapsed());
                    if left.is_zero() || batch.len() >= self.pace.steady_writers() {
                        break;
                    }
                    match self.inbox.recv_timeout(left) {
                        Ok(message) => message,
                        Err(_) => break,
                    }
                }
            };
            match message {
                Message::Write(request) => {
                    bytes += request.write.cost();
                    batch.push(*request);
                }
                Message::Shutdown(reply) => return (batch, Some(reply)),
            }
        }
        (batch, None)
    }

    fn commit(&mut self, batch: Vec<Request>) {
        let at = now();
        let mut next = self.state.clone();
        let mut events = Vec::with_capacity(batch.len());
        let mut answers = Vec::with_capacity(batch.len());
        let mut strict = false;
        self.pace.took(batch.len());
        for Request { write, reply, permit } in batch {
            let durability = write.durability;
            let answer = next.write(write, at).map(|(event, committed)| {
                strict |= durability == Durability::Strict;
                events.push(event);
                committed
            });
            answers.push(((reply, permit), answer));
        }
        if !events.is_empty() {
            if let Err(reason) = self.persist(&events, strict) {
                // A mismatch may be with a write of this batch that is now dropped, so it is not a valid response
                // either.
                return refuse(answers, &reason);
            }
            // The history of a burst expires at the same time; it is dropped in parts, so that no write waits for all of it.
            next.trim(&self.options.history, at, MAX_TRIMMED_EVENTS + 2 * events.len());
            self.publish(next, &events);
        }
        for ((reply, _permit), answer) in answers {
            let _ = reply.send(answer);
        }
        if !events.is_empty() {
            self.backend.maintain(&self.state);
        }
    }

    fn persist(&mut self, events: &[Arc<Event>], strict: bool) -> Result<(), String> {
        if let Some(reason) = self.shared.failure() {
            return Err(reason);
        }
        match self.backend.append(events) {
            Ok(()) => self.shared.accept(),
            Err(AppendError::Refused(error)) => {
                self.shared.refuse(&error);
                return Err(error.to_string());
            }
            Err(AppendError::Lost(error)) => return Err(self.fail(&error)),
        }
        self.unsynced.writes += events.len();
        if strict {
            return self.sync();
        }
        self.unsynced.since.get_or_insert_with(Instant::now);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), String> {
        let started = Instant::now();
        self.unsynced = Unsynced::default();
        self.backend.sync().map_err(|error| self.fail(&error))?;
        self.pace.sync = started.elapsed();
        Ok(())
    }

    /// Checks whether the backend accepts writes again. Clients that wait for that may send none.
    fn probe(&mut self) {
        match self.backend.probe() {
            Ok(()) => self.shared.accept(),
            Err(AppendError::Refused(error)) => self.shared.refuse(&error),
            Err(AppendError::Lost(error)) => {
                self.fail(&error);
            }
        }
    }

    /// After a failed sync the system may have dropped the data and report success next time, so the store accepts no
    /// more writes.
    fn fail(&self, error: &std::io::Error) -> String {
        let reason = format!("writing to disk failed, what was written last may be lost: {error}");
        tracing::error!(%error, "the store stops writing");
        self.shared.fail(reason.clone());
        reason
    }

    fn publish(&mut self, next: State, events: &[Arc<Event>]) {
        self.shared.state.store(Arc::new(next.clone()));
        self.state = next;
        self.shared.topics.wake(events);
    }

    fn close(mut self) {
        if self.shared.failure().is_none()
            && let Err(error) = self.backend.close()
        {
            self.fail(&error);
        }
        // Files and lock are released before callers are notified that the store is closed.
        drop(self.backend);
        self.shared.close();
    }
}

fn refuse(answers: Vec<(Reply, Result<Committed, WriteError>)>, reason: &str) {
    for ((reply, _permit), _) in answers {
        let _ = reply.send(Err(WriteError::Unavailable(reason.to_owned())));
    }
}

impl Pace {
    fn took(&mut self, writes: usize) {
        self.writes_before = std::mem::replace(&mut self.writes, writes);
    }

    /// The number of clients that write continuously, estimated as the smaller of two batches. One full batch is not
    /// enough: a client that sends a few writes at once usually continues with a single one that depends on all of them.
    fn steady_writers(&self) -> usize {
        self.writes.min(self.writes_before)
    }

    /// How long to wait for more writes: not at all if one of the last two batches was a single write, and always
    /// shorter than a sync.
    fn max_wait(&self) -> Duration {
        if self.steady_writers() < 2 {
            Duration::ZERO
        } else {
            (self.sync / 4).min(Duration::from_micros(500))
        }
    }
}

impl Write {
    /// About how many bytes this takes in the queue and in the log.
    pub(crate) fn cost(&self) -> usize {
        match &self.op {
            WriteOp::Put(put) => 512 + put.body.len(),
            WriteOp::Delete => 512,
        }
    }
}

/// Marks the store as failed if the sequencer panics, so that writers do not wait indefinitely.
struct Alarm(Arc<Shared>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("the store's writer panicked".to_owned());
            self.0.close();
        }
    }
}

/// Milliseconds since the Unix epoch.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steady_writers_are_waited_for() {
        let mut pace = Pace { sync: Duration::from_millis(1), ..Pace::default() };
        for writes in [1, 4, 1, 5, 1] {
            pace.took(writes);
            assert_eq!(pace.max_wait(), Duration::ZERO, "after a batch of {writes}");
        }
        pace.took(32);
        pace.took(30);
        assert_eq!((pace.max_wait(), pace.steady_writers()), (Duration::from_micros(250), 30));
    }
}
