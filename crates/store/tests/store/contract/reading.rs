//! Snapshots, now and in the past.

use crate::fixture::{create, delete, key, on_every_store, text, update};
use std::time::Duration;
use transom_store::{Compacted, HistoryLimits, Key, Options, Snapshot, Store};

const WIDGETS: &str = "widgets.example.org";

fn names(snapshot: &Snapshot) -> Vec<String> {
    snapshot.objects.keys().map(|key| format!("{}/{}", key.namespace, key.name)).collect()
}

#[tokio::test]
async fn lists_order_by_namespace_then_name_and_do_not_change_under_the_reader() {
    on_every_store(Options::default(), |store| async move {
        for (namespace, name) in [("b", "a"), ("a", "z"), ("a-b", "a"), ("", "c"), ("a", "b")] {
            create(&store, Key::new(WIDGETS, namespace, name), "x").await;
        }
        create(&store, Key::new("configmaps", "a", "other"), "x").await;
        let snapshot = store.snapshot(WIDGETS);
        assert_eq!(names(&snapshot), ["/c", "a/b", "a/z", "a-b/a", "b/a"]);
        assert_eq!(snapshot.revision, store.revision());
        create(&store, key("later"), "x").await;
        assert_eq!(snapshot.objects.len(), 5);
        assert!(store.revision() > snapshot.revision);
        assert_eq!(store.snapshot("nothing").objects.len(), 0);
        assert_eq!(store.resources().iter().map(|name| &**name).collect::<Vec<_>>(), ["configmaps", WIDGETS]);
    })
    .await;
}

async fn a_little_history(store: &Store) -> [u64; 4] {
    let first = create(store, key("a"), "1").await.revision;
    let second = create(store, key("b"), "1").await.revision;
    let third = update(store, key("a"), first, "2").await.revision;
    let fourth = delete(store, key("b"), second).await.revision;
    [first, second, third, fourth]
}

#[tokio::test]
async fn the_history_is_reported_exactly() {
    on_every_store(Options::default(), |store| async move {
        let origin = store.revision();
        let [first, second, third, fourth] = a_little_history(&store).await;
        for (revision, expected) in [
            (origin, vec![]),
            (first, vec![("a", first)]),
            (second, vec![("a", first), ("b", second)]),
            (third, vec![("a", third), ("b", second)]),
            (fourth, vec![("a", third)]),
        ] {
            let snapshot = store.snapshot_at(WIDGETS, revision).unwrap();
            assert_eq!(snapshot.revision, revision);
            let found = snapshot.objects.iter().map(|(key, entry)| (&*key.name, entry.revision));
            assert_eq!(found.collect::<Vec<_>>(), expected, "at {revision}");
        }
        assert!(
            text(&store.snapshot_at(WIDGETS, second).unwrap().objects[&key("a").object]).contains("\"1\"")
        );
        let future = store.snapshot_at(WIDGETS, fourth + 100).unwrap();
        assert_eq!((future.revision, future.objects.len()), (fourth, 1));
    })
    .await;
}

#[tokio::test]
async fn history_ends_at_its_limits_resource_by_resource() {
    let history = HistoryLimits { max_events: 2, ..HistoryLimits::default() };
    on_every_store(Options { history, ..Options::default() }, |store| async move {
        let quiet = create(&store, Key::new("quiet", "", "q"), "1").await.revision;
        let [_, second, third, _] = a_little_history(&store).await;
        assert!(store.snapshot_at(WIDGETS, third).is_ok());
        assert!(store.snapshot_at(WIDGETS, second).is_ok());
        let before = store.snapshot_at(WIDGETS, second - 1).unwrap_err();
        assert_eq!(before, Compacted { requested: second - 1, oldest: second });
        assert_eq!(before.to_string(), format!("too old resource version: {} ({second})", second - 1));
        assert!(store.watch(WIDGETS, second - 1).is_err());
        assert!(store.watch_all(quiet).is_err());
        // Nothing happened to it since, so it can be resumed however long ago that was.
        assert!(store.watch("quiet", quiet).is_ok());
        assert!(store.watch("quiet", quiet - 1).is_err());
    })
    .await;
}

#[tokio::test]
async fn waiting_for_a_revision_ends_when_it_is_published() {
    on_every_store(Options::default(), |store| async move {
        let goal = store.revision() + 2;
        let mut waiting = std::pin::pin!(store.wait_for(goal));
        create(&store, key("a"), "1").await;
        assert!(tokio::time::timeout(Duration::ZERO, &mut waiting).await.is_err());
        create(&store, key("b"), "1").await;
        tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap();
        store.wait_for(goal).await;
    })
    .await;
}

fn kept(store: &Store, count: u64) -> u64 {
    let newest = store.revision();
    (0..=count).rev().find(|back| store.watch_all(newest - back).is_ok()).unwrap()
}

#[tokio::test]
async fn history_is_kept_by_age_and_by_count() {
    let keeping = |min_age| Options {
        history: HistoryLimits { min_age, min_events: 3, ..HistoryLimits::default() },
        ..Options::default()
    };
    let ten = async |store: &Store| {
        for index in 0..10 {
            create(store, key(&index.to_string()), "x").await;
        }
    };
    on_every_store(keeping(Duration::from_secs(3600)), |store| async move {
        ten(&store).await;
        assert_eq!(kept(&store, 10), 10, "younger than an hour");
    })
    .await;
    on_every_store(keeping(Duration::ZERO), |store| async move {
        ten(&store).await;
        // Events of the millisecond of the last write are not old yet, so this may take more than one write.
        for index in 0.. {
            assert!(index < 10_000, "{} events are kept", kept(&store, 10));
            tokio::time::sleep(Duration::from_millis(1)).await;
            create(&store, key(&format!("more-{index}")), "x").await;
            if kept(&store, 10) == 3 {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn history_is_bounded_in_bytes() {
    let history = HistoryLimits { max_bytes: 20_000, ..HistoryLimits::default() };
    on_every_store(Options { history, ..Options::default() }, |store| async move {
        let mut revision = create(&store, key("a"), &"x".repeat(3000)).await.revision;
        for _ in 0..20 {
            revision = update(&store, key("a"), revision, &"y".repeat(3000)).await.revision;
        }
        // Each event keeps one old body of 3 KB, and a little more.
        assert_eq!(kept(&store, 20), 6);
    })
    .await;
}
