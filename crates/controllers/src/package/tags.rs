//! Lists of tags for the Lock. There is one Lock for all packages, so its reconciles must not wait for registries: slow lists
//! are fetched in background tasks, and failed ones are retried with backoff, independently of changes to the Lock.

use super::Key;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use transom_engine::{Queue, Result};
use transom_xapi::constants::LOCK_NAME;

/// How long a run of the Lock waits for a list of tags.
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// The backoff after the tags of a source could not be listed for the first time. Doubled each time.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// The longest backoff, unless the registry asks for a longer one.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// What is known of the tags of a source.
pub(super) enum Tags {
    /// All of them.
    Listed(Vec<String>),
    /// The registry takes long. The Lock is woken when it has responded.
    Waiting,
    /// Why they could not be listed, and when that is tried again.
    Failed(String, Duration),
}

/// The state of a list.
enum Lookup {
    Asked,
    Answered(Result<Vec<String>>),
    Failed(Failure),
}

struct Failure {
    /// The request: with other credentials or from another mirror it may succeed.
    request: String,
    words: String,
    times: u32,
    until: Instant,
}

type Lookups = Arc<Mutex<BTreeMap<String, Lookup>>>;

/// The lists that registries take long for or refuse, by source. They end with this.
pub(super) struct TagLookups {
    queue: Arc<Queue>,
    lookups: Lookups,
    tasks: Mutex<JoinSet<()>>,
}

impl TagLookups {
    /// Without lists. The queue is that of the Lock.
    pub(super) fn new(queue: Arc<Queue>) -> Self {
        Self { queue, lookups: Arc::default(), tasks: Mutex::default() }
    }

    /// The tags of a source. The words tell requests apart, and contain no credentials, only a digest of them.
    pub(super) async fn tags<F>(&self, source: &str, words: String, request: F) -> Tags
    where
        F: Future<Output = Result<Vec<String>>> + Send + Unpin + 'static,
    {
        let known = {
            let mut lookups = locked(&self.lookups);
            match lookups.get(source) {
                Some(Lookup::Asked) => return Tags::Waiting,
                Some(Lookup::Failed(failure)) if failure.request == words && !failure.is_over() => {
                    return failure.tags();
                }
                _ => lookups.remove(source),
            }
        };
        let times = match known {
            Some(Lookup::Answered(answer)) => return self.note(source, words, answer, 0),
            Some(Lookup::Failed(failure)) if failure.request == words => failure.times,
            _ => 0,
        };
        let mut request = request;
        match tokio::time::timeout(SLOW_AFTER, &mut request).await {
            Ok(answer) => self.note(source, words, answer, times),
            Err(_) => self.wait(source.to_owned(), request),
        }
    }

    /// Lets a request go on beside the runs of the Lock.
    fn wait<F>(&self, source: String, request: F) -> Tags
    where
        F: Future<Output = Result<Vec<String>>> + Send + 'static,
    {
        locked(&self.lookups).insert(source.clone(), Lookup::Asked);
        let (lookups, queue) = (self.lookups.clone(), self.queue.clone());
        let mut tasks = locked(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let answer = request.await;
            locked(&lookups).insert(source, Lookup::Answered(answer));
            queue.wake(&Key::new("", LOCK_NAME));
        });
        Tags::Waiting
    }

    fn note(&self, source: &str, request: String, answer: Result<Vec<String>>, times: u32) -> Tags {
        let error = match answer {
            Ok(tags) => return Tags::Listed(tags),
            Err(error) => error,
        };
        let words = error.chain().to_string();
        let backoff = FIRST_BACKOFF.saturating_mul(1 << times.min(16)).min(LONGEST_BACKOFF);
        let backoff = backoff.max(error.retry_after().unwrap_or_default());
        let failure = Failure { request, words, times: times + 1, until: Instant::now() + backoff };
        let tags = failure.tags();
        locked(&self.lookups).insert(source.to_owned(), Lookup::Failed(failure));
        tags
    }

    /// Forgets sources that nothing depends on any longer.
    pub(super) fn retain(&self, sources: &BTreeSet<&str>) {
        let is_asked = |lookup: &Lookup| matches!(lookup, Lookup::Asked);
        locked(&self.lookups).retain(|source, lookup| is_asked(lookup) || sources.contains(source.as_str()));
    }
}

impl Failure {
    fn is_over(&self) -> bool {
        self.until <= Instant::now()
    }

    fn tags(&self) -> Tags {
        Tags::Failed(self.words.clone(), self.until.duration_since(Instant::now()))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
