//! Files that are cut, torn and rotten: torn tails are dropped, lost data is never passed over in silence.

use super::{crash_image, files};
use crate::fixture::{create, key, text, update};
use proptest::prelude::*;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use transom_store::{HistoryLimits, LogLimits, OpenError, Options, Store, repair, verify};

const WIDGETS: &str = "widgets.example.org";

/// A log of several synced batches, as left by a crash or by a shutdown.
struct Sample {
    dir: tempfile::TempDir,
    log: PathBuf,
    bytes: Vec<u8>,
    /// Where the log ended after each write, which added one object.
    ends: Vec<usize>,
}

async fn sample(closed: bool) -> Sample {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let log = files(dir.path(), ".seg").remove(0);
    let mut ends = Vec::new();
    for index in 0..6 {
        create(&store, key(&index.to_string()), "x").await;
        ends.push(usize::try_from(log.metadata().unwrap().len()).unwrap());
    }
    let image = if closed {
        store.shutdown().await;
        dir
    } else {
        crash_image(dir.path())
    };
    let log = files(image.path(), ".seg").remove(0);
    Sample { bytes: fs::read(&log).unwrap(), log, ends, dir: image }
}

impl Sample {
    /// How many objects there are when the log is like this.
    fn with(&self, bytes: &[u8]) -> Result<usize, OpenError> {
        fs::write(&self.log, bytes).unwrap();
        verify(self.dir.path()).map(|report| {
            let damage = report.damage.into_iter().next();
            assert_eq!(damage.is_none(), report.opens);
            damage.map_or(Ok(report.objects), Err)
        })?
    }

    fn flipped(&self, at: usize, bit: usize) -> Result<usize, OpenError> {
        let mut bytes = self.bytes.clone();
        bytes[at] ^= 1 << bit;
        self.with(&bytes)
    }

    fn batch(&self, index: usize) -> Range<usize> {
        self.ends[index - 1]..self.ends[index]
    }
}

fn is_corrupt(outcome: &Result<usize, OpenError>, log: &Path, within: &Range<usize>) -> bool {
    matches!(outcome, Err(OpenError::Corrupt { file, offset, .. })
        if file == log && within.contains(&usize::try_from(*offset).unwrap()))
}

#[tokio::test]
async fn a_log_cut_anywhere_keeps_every_whole_batch() {
    let sample = sample(false).await;
    for cut in sample.ends[2]..=sample.bytes.len() {
        let whole = sample.ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(sample.with(&sample.bytes[..cut]).unwrap(), whole, "cut at {cut}");
        // What a file system may leave of an append: the length without the bytes.
        let mut zeros = sample.bytes[..cut].to_vec();
        zeros.resize(sample.bytes.len(), 0);
        assert_eq!(sample.with(&zeros).unwrap(), whole, "zeros from {cut}");
    }
}

#[tokio::test]
async fn a_flipped_bit_in_the_last_batch_drops_it_and_elsewhere_refuses_to_open() {
    let sample = sample(false).await;
    let last = sample.batch(5);
    for at in last {
        assert_eq!(sample.flipped(at, at % 8).unwrap(), 5, "byte {at}");
    }
    for batch in [1, 3, 4] {
        let range = sample.batch(batch);
        for at in range.clone() {
            let outcome = sample.flipped(at, at % 8);
            assert!(is_corrupt(&outcome, &sample.log, &range), "byte {at} of batch {batch}: {outcome:?}");
        }
    }
    let in_header: Vec<_> = (0..44).map(|at| sample.flipped(at, 0)).collect();
    assert!(in_header.iter().all(Result::is_err), "{in_header:?}");
}

#[tokio::test]
async fn after_a_proper_shutdown_even_the_last_batch_must_be_intact() {
    let sample = sample(true).await;
    let range = sample.batch(5);
    for at in range.clone() {
        let outcome = sample.flipped(at, at % 8);
        assert!(is_corrupt(&outcome, &sample.log, &range), "byte {at}: {outcome:?}");
    }
}

#[tokio::test]
async fn missing_and_repeated_parts_are_noticed() {
    let sample = sample(false).await;
    let (bytes, middle) = (&sample.bytes, sample.batch(3));
    let without = [&bytes[..middle.start], &bytes[middle.end..]].concat();
    assert!(matches!(sample.with(&without), Err(OpenError::Corrupt { .. })));
    let twice = [&bytes[..middle.end], &bytes[middle.clone()], &bytes[middle.end..]].concat();
    assert!(matches!(sample.with(&twice), Err(OpenError::Corrupt { .. })));
    let zeroed = [&bytes[..middle.start], &vec![0; middle.len()], &bytes[middle.end..]].concat();
    assert!(matches!(sample.with(&zeroed), Err(OpenError::Corrupt { .. })));
    assert!(matches!(sample.with(b""), Err(OpenError::Corrupt { .. })));
}

#[tokio::test]
async fn the_error_names_place_and_remedy_and_the_remedy_works() {
    let sample = sample(true).await;
    let mut bytes = sample.bytes.clone();
    bytes[sample.ends[2] + 60] ^= 1;
    fs::write(&sample.log, &bytes).unwrap();
    let refused = Store::open(sample.dir.path(), Options::default()).unwrap_err();
    let (place, remedy) = (
        format!("{} is damaged at byte {}", sample.log.display(), sample.ends[2]),
        format!("transom db repair --data-dir {}", sample.dir.path().display()),
    );
    assert!(refused.to_string().contains(&place) && refused.to_string().contains(&remedy), "{refused}");

    let report = repair(sample.dir.path()).unwrap();
    assert_eq!((report.opens, report.objects, report.damage.len()), (false, 3, 1));
    let aside = report.set_aside.unwrap();
    assert_eq!(fs::read(aside.join(sample.log.file_name().unwrap())).unwrap(), bytes);
    let store = Store::open(sample.dir.path(), Options::default()).unwrap();
    assert_eq!(store.snapshot(WIDGETS).objects.len(), 3);
    // All six had been given out; none may come again.
    assert!(create(&store, key("new"), "x").await.revision > 8);
    store.shutdown().await;
    let report = repair(sample.dir.path()).unwrap();
    assert!(report.opens && report.set_aside.is_none() && report.objects == 4, "{report:?}");
}

/// Several segments and two snapshots.
async fn compacted() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        history: HistoryLimits { max_events: 4, ..HistoryLimits::default() },
        log: LogLimits { segment_bytes: 400, compact_bytes: 400 },
        ..Options::default()
    };
    let store = Store::open(dir.path(), options).unwrap();
    let mut revision = create(&store, key("a"), "0").await.revision;
    create(&store, key("constant"), "x").await;
    for round in 1.. {
        revision = update(&store, key("a"), revision, &round.to_string()).await.revision;
        let [segments, snapshots] = [".seg", ".snap"].map(|suffix| files(dir.path(), suffix));
        let begins_later = !segments[0].to_string_lossy().ends_with("01.seg");
        if begins_later && segments.len() > 3 && snapshots.len() >= 2 {
            break;
        }
        assert!(round < 1000, "never compacted");
    }
    update(&store, key("a"), revision, "last").await;
    store.shutdown().await;
    dir
}

fn flip_middle(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

fn expect_last(dir: &Path) {
    let store = Store::open(dir, Options::default()).unwrap();
    assert!(text(&store.get(&key("a")).unwrap()).contains("last"));
    assert!(store.get(&key("constant")).is_some());
}

#[tokio::test]
async fn a_damaged_snapshot_is_made_up_for_by_the_one_before() {
    let dir = compacted().await;
    flip_middle(files(dir.path(), ".snap").last().unwrap());
    let report = verify(dir.path()).unwrap();
    assert!(report.opens && report.damage.len() == 1, "{report:?}");
    assert!(report.damage[0].to_string().contains("nothing is lost"), "{}", report.damage[0]);
    expect_last(dir.path());
}

/// A repair of the store keeps everything, and leaves nothing to repair.
fn is_repaired_without_loss(dir: &Path) {
    let before = verify(dir).unwrap();
    assert!(before.opens && before.damage.len() == 1, "{before:?}");
    let report = repair(dir).unwrap();
    assert!(report.set_aside.is_some() && report.objects == before.objects, "{report:?}");
    let after = verify(dir).unwrap();
    assert!(after.opens && after.damage.is_empty() && after.revision > before.revision, "{after:?}");
    assert!(repair(dir).unwrap().set_aside.is_none());
    expect_last(dir);
}

#[tokio::test]
async fn a_damaged_snapshot_is_replaced_by_a_repair() {
    for newest in [true, false] {
        let dir = compacted().await;
        let snapshots = files(dir.path(), ".snap");
        flip_middle(if newest { snapshots.last() } else { snapshots.first() }.unwrap());
        is_repaired_without_loss(dir.path());
    }
}

#[tokio::test]
async fn damage_in_a_segment_that_a_snapshot_covers_is_noticed_and_repaired() {
    let intact = compacted().await;
    let report = verify(intact.path()).unwrap();
    assert!(report.damage.is_empty(), "{report:?}");
    let base = |path: &Path| -> u64 {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        name.split('-').nth(1).unwrap().parse().unwrap()
    };
    let newest = base(files(intact.path(), ".snap").last().unwrap());
    let segments = files(intact.path(), ".seg");
    let covered = segments.windows(2).filter(|pair| base(&pair[1]) <= newest).count();
    assert!(covered > 0, "no segment is covered");
    for index in 0..covered {
        let dir = crash_image(intact.path());
        flip_middle(&files(dir.path(), ".seg")[index]);
        is_repaired_without_loss(dir.path());
    }
    // A segment that is gone altogether is missed, too, unless no snapshot needs it.
    if covered > 1 {
        let dir = crash_image(intact.path());
        fs::remove_file(&files(dir.path(), ".seg")[1]).unwrap();
        is_repaired_without_loss(dir.path());
    }
}

#[tokio::test]
async fn without_a_readable_snapshot_the_store_does_not_open_until_it_is_repaired() {
    let dir = compacted().await;
    for snapshot in files(dir.path(), ".snap") {
        flip_middle(&snapshot);
    }
    let refused = Store::open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
    let report = repair(dir.path()).unwrap();
    assert!(report.set_aside.is_some() && !report.damage.is_empty(), "{report:?}");
    let store = Store::open(dir.path(), Options::default()).unwrap();
    assert!(text(&store.get(&key("a")).unwrap()).contains("last"));
}

#[tokio::test]
async fn damage_before_the_last_segment_is_never_a_torn_tail() {
    let dir = compacted().await;
    let segments = files(dir.path(), ".seg");
    let before_last = &segments[segments.len() - 2];
    let bytes = fs::read(before_last).unwrap();
    fs::write(before_last, &bytes[..bytes.len() - 5]).unwrap();
    assert!(matches!(Store::open(dir.path(), Options::default()), Err(OpenError::Corrupt { .. })));
    fs::remove_file(before_last).unwrap();
    let refused = Store::open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
    fs::write(before_last, bytes).unwrap();
    expect_last(dir.path());
}

#[tokio::test]
async fn files_of_another_store_or_a_newer_format_are_refused() {
    let (dir, other) = (compacted().await, compacted().await);
    let last = files(dir.path(), ".seg").pop().unwrap();
    let original = fs::read(&last).unwrap();
    let mut foreign = fs::read(files(other.path(), ".seg").pop().unwrap()).unwrap();
    foreign[32..40].copy_from_slice(&original[32..40]);
    let crc = crc32c::crc32c(&foreign[..40]);
    foreign[40..44].copy_from_slice(&crc.to_le_bytes());
    fs::write(&last, foreign).unwrap();
    let refused = Store::open(dir.path(), Options::default()).unwrap_err();
    assert!(refused.to_string().contains("another store"), "{refused}");

    let mut newer = original.clone();
    newer[8] = 9;
    let crc = crc32c::crc32c(&newer[..40]);
    newer[40..44].copy_from_slice(&crc.to_le_bytes());
    fs::write(&last, newer).unwrap();
    let refused = Store::open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::NewerFormat { found: 9, supported: 1, .. }), "{refused}");

    fs::write(&last, original).unwrap();
    expect_last(dir.path());
}

#[tokio::test]
async fn leftovers_of_an_interrupted_compaction_are_cleaned_up() {
    let dir = compacted().await;
    let leftover = dir.path().join("state-00000000000000009999.snap.tmp");
    fs::write(&leftover, b"half").unwrap();
    fs::write(dir.path().join("notes.txt"), b"not ours").unwrap();
    expect_last(dir.path());
    assert!(!leftover.exists() && dir.path().join("notes.txt").exists());
}

#[test]
fn a_directory_without_a_store_is_not_repaired() {
    let dir = tempfile::tempdir().unwrap();
    for outcome in [verify(dir.path()), repair(dir.path()), repair(&dir.path().join("missing"))] {
        assert!(matches!(outcome, Err(OpenError::Io { .. })), "{outcome:?}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_newer_format_is_not_repaired_away() {
    let dir = compacted().await;
    let last = files(dir.path(), ".seg").pop().unwrap();
    let mut newer = fs::read(&last).unwrap();
    newer[8] = 9;
    let crc = crc32c::crc32c(&newer[..40]);
    newer[40..44].copy_from_slice(&crc.to_le_bytes());
    fs::write(&last, &newer).unwrap();
    assert!(matches!(repair(dir.path()), Err(OpenError::NewerFormat { .. })));
    assert_eq!(fs::read(&last).unwrap(), newer);
}

#[derive(Clone, Debug)]
enum Edit {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
    /// Writes a part of the file over another: valid frames in wrong places.
    Move(prop::sample::Index, prop::sample::Index, usize),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let at = any::<prop::sample::Index>;
    let edit = prop_oneof![
        (at(), 1..=255u8).prop_map(|(at, mask)| Edit::Flip(at, mask)),
        at().prop_map(Edit::Cut),
        (at(), prop::collection::vec(any::<u8>(), 1..80)).prop_map(|(at, bytes)| Edit::Insert(at, bytes)),
        (at(), 1..300usize).prop_map(|(at, len)| Edit::Remove(at, len)),
        (at(), at(), 1..300usize).prop_map(|(from, to, len)| Edit::Move(from, to, len)),
    ];
    prop::collection::vec(edit, 1..4)
}

fn edited(mut bytes: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for edit in edits.iter().cloned() {
        let len = bytes.len().max(1);
        match edit {
            Edit::Flip(at, mask) => {
                bytes.iter_mut().skip(at.index(len)).take(1).for_each(|byte| *byte ^= mask);
            }
            Edit::Cut(at) => bytes.truncate(at.index(len)),
            Edit::Insert(at, more) => {
                let at = at.index(len).min(bytes.len());
                bytes.splice(at..at, more);
            }
            Edit::Remove(at, count) => {
                let at = at.index(len).min(bytes.len());
                bytes.drain(at..(at + count).min(bytes.len()));
            }
            Edit::Move(from, to, count) => {
                let from = from.index(len).min(bytes.len());
                let part = bytes[from..(from + count).min(bytes.len())].to_vec();
                let to = to.index(len);
                for (byte, new) in bytes.iter_mut().skip(to).zip(part) {
                    *byte = new;
                }
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    /// However a log is mangled, what opens is what had been there at some time, and what does not open can be
    /// repaired to that.
    #[test]
    fn a_mangled_log_gives_a_prefix_or_an_error(edits in edits()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let sample = sample(false).await;
            fs::write(&sample.log, edited(sample.bytes.clone(), &edits)).unwrap();
            if Store::open(sample.dir.path(), Options::default()).is_err() {
                match repair(sample.dir.path()) {
                    Ok(report) => assert!(report.set_aside.is_some()),
                    Err(OpenError::NewerFormat { .. }) => return,
                    Err(other) => panic!("{other}"),
                }
            }
            let store = reopen(sample.dir.path()).await;
            let names: Vec<String> =
                store.snapshot(WIDGETS).objects.keys().map(|key| key.name.to_string()).collect();
            let prefix: Vec<String> = (0..names.len()).map(|index| index.to_string()).collect();
            assert_eq!(names, prefix);
            create(&store, key("new"), "x").await;
        });
    }
}

async fn reopen(dir: &Path) -> Store {
    loop {
        match Store::open(dir, Options::default()) {
            Ok(store) => return store,
            // The handle of the first opening is gone, but its thread may need a moment.
            Err(OpenError::Locked { .. }) => tokio::time::sleep(Duration::from_millis(1)).await,
            Err(other) => panic!("{other}"),
        }
    }
}
