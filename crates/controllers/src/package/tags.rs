//! Lists of tags for the Lock. There is one Lock for all packages, so its reconciles must not wait for registries: slow lists
//! are fetched in background tasks, and failed ones are retried with backoff, independently of changes to the Lock. Every answer
//! belongs to the request that it was given to: one to other credentials, or of another mirror, says nothing about the next.

use super::Key;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};
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

/// A request, and its state.
struct Lookup {
    /// The words of the request: with other credentials or from another mirror it may succeed.
    request: String,
    state: State,
}

/// The state of a request.
enum State {
    Asked(AbortHandle),
    Answered(Result<Vec<String>>),
    Failed(Failure),
}

struct Failure {
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
            match lookups.get(source).filter(|lookup| lookup.request == words).map(|lookup| &lookup.state) {
                Some(State::Asked(_)) => return Tags::Waiting,
                Some(State::Failed(failure)) if !failure.is_over() => return failure.tags(),
                _ => lookups.remove(source),
            }
        };
        let times = match known {
            Some(Lookup { request, state: State::Answered(answer) }) if request == words => {
                return self.note(source, words, answer, 0);
            }
            Some(Lookup { request, state: State::Failed(failure) }) if request == words => failure.times,
            Some(Lookup { state: State::Asked(task), .. }) => {
                task.abort();
                0
            }
            _ => 0,
        };
        let mut request = request;
        match tokio::time::timeout(SLOW_AFTER, &mut request).await {
            Ok(answer) => self.note(source, words, answer, times),
            Err(_) => self.wait(source, words, request),
        }
    }

    /// Lets a request go on beside the runs of the Lock.
    fn wait<F>(&self, source: &str, words: String, request: F) -> Tags
    where
        F: Future<Output = Result<Vec<String>>> + Send + 'static,
    {
        let (lookups, queue) = (self.lookups.clone(), self.queue.clone());
        let (of, asked) = (source.to_owned(), words.clone());
        let mut tasks = locked(&self.tasks);
        while tasks.try_join_next().is_some() {}
        // The answer is noted after the request is.
        let mut known = locked(&self.lookups);
        let task = tasks.spawn(async move {
            let answer = request.await;
            if let Some(lookup) = locked(&lookups).get_mut(&of).filter(|lookup| lookup.request == asked) {
                lookup.state = State::Answered(answer);
            }
            queue.wake(&Key::new("", LOCK_NAME));
        });
        known.insert(source.to_owned(), Lookup { request: words, state: State::Asked(task) });
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
        let failure = Failure { words, times: times + 1, until: Instant::now() + backoff };
        let tags = failure.tags();
        let lookup = Lookup { request, state: State::Failed(failure) };
        locked(&self.lookups).insert(source.to_owned(), lookup);
        tags
    }

    /// Forgets sources that nothing depends on any longer.
    pub(super) fn retain(&self, sources: &BTreeSet<&str>) {
        let is_asked = |lookup: &Lookup| matches!(lookup.state, State::Asked(_));
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::sync::oneshot;
    use transom_engine::{Error, Pace};

    const SOURCE: &str = "r.io/acme/a";
    const HOURS: Duration = Duration::from_secs(6 * 60 * 60);

    type Answer = Result<Vec<String>>;

    fn lookups() -> TagLookups {
        TagLookups::new(Arc::new(Queue::new(Pace::default())))
    }

    fn refused() -> Answer {
        Err(Error::deferred("too many requests", HOURS))
    }

    impl TagLookups {
        /// A request that is answered at once.
        async fn ask(&self, words: &str, answer: Answer) -> Tags {
            self.tags(SOURCE, words.to_owned(), std::future::ready(answer)).await
        }

        /// A request that is answered later.
        async fn ask_slowly(&self, words: &str) -> oneshot::Sender<Answer> {
            let (sender, answer) = oneshot::channel();
            let request = async move { answer.await.expect("an answer") };
            assert!(matches!(self.tags(SOURCE, words.to_owned(), request.boxed()).await, Tags::Waiting));
            sender
        }

        async fn until_answered(&self) {
            let is_asked = |lookup: &Lookup| matches!(lookup.state, State::Asked(_));
            while locked(&self.lookups).values().any(is_asked) {
                tokio::task::yield_now().await;
            }
        }
    }

    fn listed(tags: &Tags) -> Option<&[String]> {
        match tags {
            Tags::Listed(tags) => Some(tags),
            _ => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_is_that_of_its_request() {
        let lookups = lookups();
        let sender = lookups.ask_slowly("right").await;
        assert!(matches!(lookups.ask("right", Ok(vec![])).await, Tags::Waiting), "one request at a time");
        sender.send(Ok(vec!["v1".to_owned()])).unwrap();
        lookups.until_answered().await;
        let tags = lookups.ask("right", refused()).await;
        assert_eq!(listed(&tags), Some(&["v1".to_owned()][..]));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_to_other_credentials_says_nothing_about_the_next_request() {
        let lookups = lookups();
        let sender = lookups.ask_slowly("wrong").await;
        sender.send(refused()).unwrap();
        lookups.until_answered().await;
        assert!(listed(&lookups.ask("right", Ok(vec![])).await).is_some());
        // As long as the credentials are the same, it does.
        let sender = lookups.ask_slowly("wrong").await;
        sender.send(refused()).unwrap();
        lookups.until_answered().await;
        for _ in 0..2 {
            let Tags::Failed(_, after) = lookups.ask("wrong", Ok(vec![])).await else {
                panic!("it is refused")
            };
            assert!(after > HOURS / 2, "{after:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_with_other_credentials_does_not_wait_for_the_one_before() {
        let lookups = lookups();
        let before = lookups.ask_slowly("wrong").await;
        let now = lookups.ask_slowly("right").await;
        // Whether the one before is still answered does not matter.
        drop(before.send(refused()));
        now.send(Ok(vec!["v1".to_owned()])).unwrap();
        lookups.until_answered().await;
        let tags = lookups.ask("right", refused()).await;
        assert_eq!(listed(&tags), Some(&["v1".to_owned()][..]));
    }
}
