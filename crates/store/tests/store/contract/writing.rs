//! Compare-and-swap, revisions, and what is refused.

use crate::fixture::{body, create, delete, key, on_every_store, put, text, update, write};
use transom_object::Header;
use transom_store::{Durability, Expect, Key, Options, Put, Write, WriteError, WriteOp};

#[tokio::test]
async fn revisions_increase_and_are_spliced_into_the_body() {
    on_every_store(Options::default(), |store| async move {
        let before = store.revision();
        let a = create(&store, key("a"), "1").await;
        assert!(a.revision > before);
        assert_eq!(text(&a), body(a.revision, "1"));
        let b = update(&store, key("a"), a.revision, "2").await;
        assert!(b.revision > a.revision);
        assert_eq!(text(&store.get(&key("a")).unwrap()), body(b.revision, "2"));
        let gone = delete(&store, key("a"), b.revision).await;
        assert!(gone.revision > b.revision && gone.new.is_none());
        assert_eq!(gone.old.unwrap().revision, b.revision);
        assert!(store.get(&key("a")).is_none());
        assert_eq!(store.revision(), gone.revision);
    })
    .await;
}

#[tokio::test]
async fn a_failed_precondition_changes_nothing_and_returns_what_is_stored() {
    on_every_store(Options::default(), |store| async move {
        let a = create(&store, key("a"), "1").await;
        let revision = store.revision();
        for expect in [Expect::Absent, Expect::Revision(a.revision + 1), Expect::Revision(0)] {
            match write(&store, key("a"), expect, put("2")).await {
                Err(WriteError::Mismatch(Some(entry))) => assert_eq!(entry.revision, a.revision),
                other => panic!("{expect:?}: {other:?}"),
            }
        }
        for op in [put("x"), WriteOp::Delete] {
            let answer = write(&store, key("missing"), Expect::Revision(a.revision), op).await;
            assert!(matches!(answer, Err(WriteError::Mismatch(None))), "{answer:?}");
        }
        assert_eq!(store.revision(), revision);
    })
    .await;
}

#[tokio::test]
async fn nonsense_is_refused() {
    on_every_store(Options::default(), |store| async move {
        let outside = WriteOp::Put(Put { body: vec![b'x'; 3], revision_at: 4, header: Header::default() });
        let cases = [
            (key("a"), Expect::Absent, outside),
            (key(""), Expect::Absent, put("x")),
            (Key::new("", "ns", "n"), Expect::Absent, put("x")),
            (key(&"n".repeat(5000)), Expect::Absent, put("x")),
            (key("a"), Expect::Absent, WriteOp::Delete),
        ];
        for (key, expect, op) in cases {
            let answer = write(&store, key.clone(), expect, op).await;
            assert!(matches!(answer, Err(WriteError::Invalid(_))), "{key:?}: {answer:?}");
        }
        create(&store, key("a"), "still works").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_concurrent_increments_none_is_lost() {
    on_every_store(Options::default(), |store| async move {
        create(&store, key("counter"), "0").await;
        let tasks = (0..16).map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut done = 0;
                let mut now = store.get(&key("counter")).unwrap();
                while done < 25 {
                    let written = text(&now);
                    let count: u64 = written.split('"').rev().nth(1).unwrap().parse().unwrap();
                    let durability = if task % 2 == 0 { Durability::Strict } else { Durability::Relaxed };
                    let op = put(&(count + 1).to_string());
                    let expect = Expect::Revision(now.revision);
                    match store.commit(Write { key: key("counter"), expect, op, durability }).await {
                        Ok(committed) => (now, done) = (committed.new.unwrap(), done + 1),
                        Err(WriteError::Mismatch(Some(entry))) => now = entry,
                        Err(other) => panic!("{other}"),
                    }
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        let last = store.get(&key("counter")).unwrap();
        assert_eq!(text(&last), body(last.revision, "400"));
    })
    .await;
}

#[tokio::test]
async fn after_a_shutdown_writes_are_refused_and_reads_go_on() {
    on_every_store(Options::default(), |store| async move {
        create(&store, key("a"), "1").await;
        store.shutdown().await;
        let answer = write(&store, key("b"), Expect::Absent, put("2")).await;
        assert!(
            matches!(&answer, Err(WriteError::Unavailable(why)) if why.contains("shut down")),
            "{answer:?}"
        );
        assert!(store.get(&key("a")).is_some());
        store.shutdown().await;
        assert_eq!(*store.failed().borrow(), None);
    })
    .await;
}
