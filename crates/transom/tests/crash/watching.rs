//! A watch that outlives the server: it resumes from the last revision it saw, and remembers what it was shown.

use crate::ledger::{Change, Ledger};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::task::JoinHandle;
use transom_testkit::process::Client;

pub(crate) struct Watching {
    path: String,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    last: u64,
    changes: BTreeMap<String, Vec<Change>>,
}

impl Watching {
    pub(crate) fn new(path: String, after: u64) -> Self {
        Self { path, seen: Arc::new(Mutex::new(Seen { last: after, ..Seen::default() })) }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("no holder panicked")
    }

    /// The newest revision it was shown.
    pub(crate) fn last(&self) -> u64 {
        self.lock().last
    }

    /// Goes on until the server is gone.
    pub(crate) fn resume(&self, client: Client) -> JoinHandle<()> {
        let path = format!("{}?watch=1&resourceVersion={}", self.path, self.last());
        let seen = Arc::clone(&self.seen);
        tokio::spawn(async move {
            let Ok(mut lines) = client.watch(&path).await else { return };
            while let Some(event) = lines.next().await {
                assert_ne!(event["type"], "ERROR", "{path}: {event}");
                let metadata = &event["object"]["metadata"];
                let revision: u64 =
                    metadata["resourceVersion"].as_str().and_then(|s| s.parse().ok()).expect("a revision");
                let mut seen = seen.lock().expect("no holder panicked");
                assert!(revision > seen.last, "{path}: {revision} after {}", seen.last);
                seen.last = revision;
                let name = metadata["name"].as_str().unwrap_or_default().to_owned();
                // The server publishes its certificate authority in every namespace.
                if name != "kube-root-ca.crt" {
                    seen.changes.entry(name).or_default().push(Ledger::seen(&event));
                }
            }
        })
    }

    /// Whether as much was seen of each object as happened to it.
    pub(crate) fn has_caught_up(&self, ledgers: &[&Ledger]) -> bool {
        let seen = self.lock();
        ledgers.iter().all(|l| seen.changes.get(&l.name).map_or(0, Vec::len) >= l.changes.len())
    }

    /// Takes what was seen of an object since the last time.
    pub(crate) fn take(&self, name: &str) -> Vec<Change> {
        self.lock().changes.remove(name).unwrap_or_default()
    }
}
