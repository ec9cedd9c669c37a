//! Watches see every change once, in order, or end.

use crate::fixture::{create, delete, key, on_every_store, update};
use std::time::Duration;
use tokio::time::timeout;
use transom_store::{HistoryLimits, Key, Options, Store, Watch};

const WIDGETS: &str = "widgets.example.org";
const SOON: Duration = Duration::from_secs(60);

async fn revisions(watch: &mut Watch, count: usize) -> Vec<u64> {
    let mut seen = Vec::new();
    while seen.len() < count {
        seen.push(timeout(SOON, watch.next()).await.unwrap().unwrap().revision);
    }
    seen
}

#[tokio::test]
async fn a_watch_delivers_the_past_then_what_comes() {
    on_every_store(Options::default(), |store| async move {
        let start = store.revision();
        let mut live = store.watch(WIDGETS, start).unwrap();
        let a = create(&store, key("a"), "1").await.revision;
        create(&store, Key::new("other", "", "x"), "1").await;
        let b = update(&store, key("a"), a, "2").await.revision;
        let mut resumed = store.watch(WIDGETS, a).unwrap();
        let c = delete(&store, key("a"), b).await.revision;
        assert_eq!(revisions(&mut live, 3).await, [a, b, c]);
        assert_eq!(revisions(&mut resumed, 2).await, [b, c]);
        assert!(live.try_next().is_none());

        let mut again = store.watch(WIDGETS, start).unwrap();
        let (first, second, third) =
            (again.try_next().unwrap(), again.try_next().unwrap(), again.try_next().unwrap());
        assert!(first.old.is_none() && first.new.as_ref().unwrap().revision == a);
        assert!(second.old.as_ref().unwrap().revision == a && second.new.as_ref().unwrap().revision == b);
        assert!(third.old.as_ref().unwrap().revision == b && third.new.is_none());
        assert_eq!(third.key, key("a"));
    })
    .await;
}

#[tokio::test]
async fn a_watch_of_everything_sees_all_resources_in_one_order() {
    on_every_store(Options::default(), |store| async move {
        let mut all = store.watch_all(store.revision()).unwrap();
        let mut expected = Vec::new();
        for index in 0..30 {
            let resource = ["a", "b", "c"][index % 3];
            expected.push(create(&store, Key::new(resource, "", &index.to_string()), "x").await.revision);
        }
        assert_eq!(revisions(&mut all, 30).await, expected);
    })
    .await;
}

#[tokio::test]
async fn progress_moves_with_the_store_once_everything_is_delivered() {
    on_every_store(Options::default(), |store| async move {
        let mut watch = store.watch(WIDGETS, store.revision()).unwrap();
        let a = create(&store, key("a"), "1").await.revision;
        assert!(watch.revision() < a);
        watch.next().await;
        assert_eq!(watch.revision(), a);
        let other = create(&store, Key::new("other", "", "x"), "1").await.revision;
        assert_eq!(watch.revision(), other);
    })
    .await;
}

#[tokio::test]
async fn a_watch_may_start_in_the_future() {
    on_every_store(Options::default(), |store| async move {
        let mut watch = store.watch(WIDGETS, store.revision() + 2).unwrap();
        for name in ["a", "b", "c"] {
            create(&store, key(name), "x").await;
        }
        assert_eq!(revisions(&mut watch, 1).await, [store.revision()]);
    })
    .await;
}

#[tokio::test]
async fn a_watch_that_falls_out_of_the_history_ends() {
    let history = HistoryLimits { max_events: 10, ..HistoryLimits::default() };
    on_every_store(Options { history, ..Options::default() }, |store| async move {
        let mut slow = store.watch(WIDGETS, store.revision()).unwrap();
        let mut never_existed = store.watch("unborn", store.revision()).unwrap();
        for index in 0..11 {
            create(&store, Key::new("unborn", "", &index.to_string()), "x").await;
        }
        assert!(timeout(SOON, never_existed.next()).await.unwrap().is_none());
        for index in 0..30 {
            create(&store, key(&index.to_string()), "x").await;
        }
        assert!(timeout(SOON, slow.next()).await.unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn a_shutdown_ends_watches_after_their_last_event() {
    on_every_store(Options::default(), |store| async move {
        let mut watch = store.watch(WIDGETS, store.revision()).unwrap();
        let a = create(&store, key("a"), "1").await.revision;
        let waiting = tokio::spawn(async move {
            let first = watch.next().await.map(|event| event.revision);
            (first, watch.next().await.is_none())
        });
        store.shutdown().await;
        assert_eq!(timeout(SOON, waiting).await.unwrap().unwrap(), (Some(a), true));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_watches_all_see_the_same_order() {
    async fn follow(store: Store, from: u64, count: usize) -> Vec<u64> {
        revisions(&mut store.watch(WIDGETS, from).unwrap(), count).await
    }
    on_every_store(Options::default(), |store| async move {
        let from = store.revision();
        let watchers: Vec<_> = (0..1000).map(|_| tokio::spawn(follow(store.clone(), from, 60))).collect();
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let store = store.clone();
                tokio::spawn(async move {
                    for index in 0..15 {
                        create(&store, key(&format!("{writer}-{index}")), "x").await;
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        let expected: Vec<u64> = (from + 1..=from + 60).collect();
        for watcher in watchers {
            assert_eq!(watcher.await.unwrap(), expected);
        }
    })
    .await;
}
