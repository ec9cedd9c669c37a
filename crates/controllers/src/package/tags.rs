//! Lists of tags that take long. The Lock is one object for all packages: while a registry is slow or does not respond, the
//! dependencies that come from others are resolved without waiting for it.

use super::Key;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use transom_engine::{Queue, Result};
use transom_xapi::constants::LOCK_NAME;

/// How long a run of the Lock waits for a list of tags.
const SLOW_AFTER: Duration = Duration::from_secs(1);

/// A list of tags that took longer than a run waits.
enum Lookup {
    Asked,
    Answered(Result<Vec<String>>),
}

type Lookups = Arc<Mutex<BTreeMap<String, Lookup>>>;

/// The lists that registries take long for, by source. They end with this.
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

    /// The tags of a source, or nothing if the registry takes long: the Lock is woken when it has responded.
    pub(super) async fn tags<F>(&self, source: &str, request: F) -> Option<Result<Vec<String>>>
    where
        F: Future<Output = Result<Vec<String>>> + Send + Unpin + 'static,
    {
        match locked(&self.lookups).get(source) {
            Some(Lookup::Asked) => return None,
            Some(Lookup::Answered(_)) | None => {}
        }
        if let Some(Lookup::Answered(answer)) = locked(&self.lookups).remove(source) {
            return Some(answer);
        }
        let mut request = request;
        if let Ok(answer) = tokio::time::timeout(SLOW_AFTER, &mut request).await {
            return Some(answer);
        }
        locked(&self.lookups).insert(source.to_owned(), Lookup::Asked);
        let (lookups, queue, source) = (self.lookups.clone(), self.queue.clone(), source.to_owned());
        let mut tasks = locked(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let answer = request.await;
            locked(&lookups).insert(source, Lookup::Answered(answer));
            queue.wake(&Key::new("", LOCK_NAME));
        });
        None
    }

    /// Forgets the answers about sources that nothing depends on any longer.
    pub(super) fn retain(&self, sources: &BTreeSet<&str>) {
        let is_asked = |lookup: &Lookup| matches!(lookup, Lookup::Asked);
        locked(&self.lookups).retain(|source, lookup| is_asked(lookup) || sources.contains(source.as_str()));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
