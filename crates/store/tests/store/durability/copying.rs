//! Copies of a store that is in use.

use crate::fixture::{key, put, write};
use transom_store::{Expect, LogLimits, Options, Store, copy, verify};

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_a_store_in_use_are_whole_and_have_all_that_was_acknowledged() {
    let home = tempfile::tempdir().unwrap();
    let from = home.path().join("store");
    let log = LogLimits { segment_bytes: 32 << 10, compact_bytes: 64 << 10 };
    let store = Store::open(&from, Options { log, ..Options::default() }).unwrap();
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            let text = "x".repeat(2_000);
            for i in 0..1_000 {
                let name = format!("w{i}");
                write(&store, key(&name), Expect::Absent, put(&text)).await.unwrap();
            }
        }
    });
    let mut copies = 0;
    while !writer.is_finished() || copies == 0 {
        let to = home.path().join(format!("copy{copies}"));
        std::fs::create_dir(&to).unwrap();
        let acknowledged = store.revision();
        copy(&from, &to).unwrap();
        let report = verify(&to).unwrap();
        assert!(report.damage.is_empty() && report.opens, "{report:?}");
        assert!(report.revision >= acknowledged, "{} < {acknowledged}", report.revision);
        copies += 1;
    }
    writer.await.unwrap();
    store.shutdown().await;
    let empty = tempfile::tempdir().unwrap();
    assert!(copy(empty.path(), home.path()).is_err(), "there is no store");
}
