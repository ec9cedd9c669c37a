//! Random histories against a model that is too simple to be wrong: a map, and a list of what happened.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use transom_object::Header;
use transom_store::{
    Durability, Expect, HistoryLimits, Key, LogLimits, OpenError, Options, Put, Store, Write, WriteError,
    WriteOp,
};

const KEPT_EVENTS: usize = 12;
const RESOURCES: [&str; 2] = ["a", "b"];

#[derive(Clone, Debug)]
enum Action {
    /// Writes to one of a few keys, with what the key holds as precondition or with something else.
    Put {
        key: u8,
        honest: bool,
        size: u16,
        relaxed: bool,
    },
    Delete {
        key: u8,
        honest: bool,
    },
    /// Shuts the store down and opens it again.
    Restart,
    /// Goes on with a copy of the files as they are in the middle of things.
    Crash,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let put = (0..6u8, prop::bool::weighted(0.9), 0..300u16, any::<bool>())
        .prop_map(|(key, honest, size, relaxed)| Action::Put { key, honest, size, relaxed });
    let delete = (0..6u8, prop::bool::weighted(0.9)).prop_map(|(key, honest)| Action::Delete { key, honest });
    prop::collection::vec(
        prop_oneof![12 => put, 5 => delete, 1 => Just(Action::Restart), 1 => Just(Action::Crash)],
        1..60,
    )
}

fn options() -> Options {
    Options {
        history: HistoryLimits { max_events: KEPT_EVENTS, ..HistoryLimits::default() },
        log: LogLimits { segment_bytes: 900, compact_bytes: 900 },
        ..Options::default()
    }
}

fn key(index: u8) -> Key {
    Key::new(RESOURCES[usize::from(index % 2)], ["", "ns"][usize::from(index / 2 % 2)], &index.to_string())
}

type Objects = BTreeMap<String, (u64, String)>;

/// What happened to a key of a resource, and the revision before which clients have to list anew.
#[derive(Default)]
struct Model {
    objects: Objects,
    events: Vec<(u64, String, Option<String>)>,
    /// The objects after each revision that was given out.
    past: Vec<(u64, Objects)>,
}

fn name(key: &Key) -> String {
    format!("{}/{}/{}", key.resource, key.object.namespace, key.object.name)
}

fn objects(store: &Store, at: Option<u64>) -> Option<Objects> {
    let mut all = Objects::new();
    for resource in RESOURCES {
        let snapshot = match at {
            Some(revision) => store.snapshot_at(resource, revision).ok()?,
            None => store.snapshot(resource),
        };
        for (object, entry) in &snapshot.objects {
            let name = name(&Key { resource: resource.into(), object: object.clone() });
            all.insert(name, (entry.revision, String::from_utf8(entry.body.to_vec()).unwrap()));
        }
    }
    Some(all)
}

impl Model {
    async fn write(&mut self, store: &Store, key: Key, honest: bool, body: Option<String>, relaxed: bool) {
        let held = self.objects.get(&name(&key)).map(|(revision, _)| *revision);
        let expect = match (held, honest) {
            (Some(revision), true) => Expect::Revision(revision),
            (Some(revision), false) => Expect::Revision(revision + 1),
            (None, true) if body.is_some() => Expect::Absent,
            (None, _) => Expect::Revision(1),
        };
        let op = match &body {
            Some(text) => WriteOp::Put(Put {
                body: format!(r#"""{text}"#).into_bytes(),
                revision_at: 1,
                header: Header::default(),
            }),
            None => WriteOp::Delete,
        };
        let durability = if relaxed { Durability::Relaxed } else { Durability::Strict };
        let before = store.revision();
        let fits = matches!((expect, held), (Expect::Absent, None))
            || matches!((expect, held), (Expect::Revision(expected), Some(held)) if expected == held);
        match store.commit(Write { key: key.clone(), expect, op, durability }).await {
            Ok(committed) => {
                assert!(fits && committed.revision == before + 1);
                let stored = body.map(|text| format!(r#""{}"{text}"#, committed.revision));
                match &stored {
                    Some(text) => self.objects.insert(name(&key), (committed.revision, text.clone())),
                    None => self.objects.remove(&name(&key)),
                };
                self.events.push((committed.revision, name(&key), stored));
                self.past.push((committed.revision, self.objects.clone()));
            }
            Err(WriteError::Mismatch(found)) => {
                assert!(!fits);
                assert_eq!(found.map(|entry| entry.revision), held);
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// Everything the store says must agree with what happened.
    fn check(&self, store: &Store) {
        assert_eq!(objects(store, None).unwrap(), self.objects);
        let kept = self.past.len().saturating_sub(KEPT_EVENTS);
        for (index, (revision, past)) in self.past.iter().enumerate() {
            match objects(store, Some(*revision)) {
                Some(found) => assert_eq!(found, *past, "at {revision}"),
                // The last twelve events are kept, so the state before them is known.
                None => assert!(index + 1 < kept, "revision {revision} is gone too early"),
            }
            self.check_watch(store, *revision, index + 1 >= kept);
        }
    }

    fn check_watch(&self, store: &Store, after: u64, must_work: bool) {
        let mut watch = match store.watch_all(after) {
            Ok(watch) => watch,
            Err(_) if !must_work => return,
            Err(gone) => panic!("{gone}"),
        };
        let expected: Vec<_> =
            self.events.iter().filter(|(revision, ..)| *revision > after).cloned().collect();
        let mut before = self.past.iter().find(|(revision, _)| *revision == after).unwrap().1.clone();
        let mut seen = Vec::new();
        while let Some(event) = watch.try_next() {
            let name = name(&event.key);
            let text = |entry: &transom_store::Entry| String::from_utf8(entry.body.to_vec()).unwrap();
            let old = event.old.as_ref().map(|entry| (entry.revision, text(entry)));
            assert_eq!(old, before.remove(&name));
            let new = event.new.as_ref().map(|entry| text(entry));
            if let Some(new) = &new {
                before.insert(name.clone(), (event.revision, new.clone()));
            }
            seen.push((event.revision, name, new));
        }
        assert_eq!(seen, expected);
    }
}

fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    // A snapshot may replace segments while they are being copied; a real crash sees one moment.
    'again: loop {
        let names = || {
            let mut names: Vec<_> =
                std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names();
        for name in &before {
            if std::fs::copy(from.join(name), to.path().join(name)).is_err() {
                continue 'again;
            }
        }
        if before == names() {
            return to;
        }
        for name in before {
            std::fs::remove_file(to.path().join(name)).unwrap();
        }
    }
}

fn reopen(dir: &Path) -> Store {
    loop {
        match Store::open(dir, options()) {
            Ok(store) => return store,
            Err(OpenError::Locked { .. }) => std::thread::sleep(std::time::Duration::from_millis(1)),
            Err(other) => panic!("{other}"),
        }
    }
}

async fn play(actions: Vec<Action>, mut dir: Option<tempfile::TempDir>) {
    let mut store = match &dir {
        Some(dir) => reopen(dir.path()),
        None => Store::in_memory(options()),
    };
    let mut model = Model::default();
    for action in actions {
        match action {
            Action::Put { key: index, honest, size, relaxed } => {
                let text = "x".repeat(usize::from(size));
                model.write(&store, key(index), honest, Some(text), relaxed).await;
            }
            Action::Delete { key: index, honest } => {
                model.write(&store, key(index), honest, None, false).await;
            }
            Action::Restart => {
                if let Some(dir) = &dir {
                    let before = store.revision();
                    store.shutdown().await;
                    store = reopen(dir.path());
                    assert!(store.revision() >= before);
                    model.check(&store);
                }
            }
            Action::Crash => {
                if let Some(now) = &mut dir {
                    let before = store.revision();
                    *now = copy(now.path());
                    store = reopen(now.path());
                    assert!(store.revision() >= before);
                    model.check(&store);
                }
            }
        }
    }
    model.check(&store);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_store_in_memory_does_what_the_model_does(actions in actions()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(play(actions, None));
    }

    #[test]
    fn a_store_on_disk_does_what_the_model_does(actions in actions()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(play(actions, Some(tempfile::tempdir().unwrap())));
    }
}
