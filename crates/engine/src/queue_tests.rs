//! What the work queue guarantees.

use super::super::seen_versions::Via;
use super::*;
use transom_object::GroupVersionKind;

fn key(name: &str) -> Key {
    Key::new("", name)
}

fn object(name: &str) -> ObjectHash {
    ObjectHash::new(&GroupVersionKind::new("g", "v1", "K"), "", name)
}

fn event(name: &str, version: u64) -> ChangeNotice {
    ChangeNotice { object: object(name), version, via: Via::Watch }
}

fn queue() -> Queue {
    Queue::new(Pace::default())
}

/// How long a key that is ready may take to be handed out.
const READY_WITHIN: Duration = Duration::from_millis(1);

async fn next_within(queue: &Queue, limit: Duration) -> Option<Key> {
    tokio::time::timeout(limit, queue.next()).await.ok().flatten()
}

#[tokio::test(start_paused = true)]
async fn a_run_recognises_the_echoes_of_thousands_of_writes() {
    let queue = queue();
    queue.wake(&key("a"));
    assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("a")));
    let mut seen = SeenVersions::default();
    for version in 1..=10_000 {
        let name = format!("part-{version}");
        seen.wrote(object(&name), version);
        queue.wake_by(&key("a"), event(&name, version));
    }
    queue.done(&key("a"), Next::Wait, seen);
    assert_eq!(next_within(&queue, READY_WITHIN).await, None, "no other client wrote anything");
}

#[tokio::test(start_paused = true)]
async fn a_key_is_queued_once_and_runs_alone() {
    let queue = queue();
    queue.wake(&key("a"));
    queue.wake(&key("a"));
    assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("a")));
    queue.wake(&key("a"));
    assert_eq!(next_within(&queue, READY_WITHIN).await, None, "it is running");
    queue.done(&key("a"), Next::Wait, SeenVersions::default());
    assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("a")), "it was woken while it ran");
    queue.done(&key("a"), Next::Wait, SeenVersions::default());
    assert_eq!(next_within(&queue, Duration::from_secs(1000)).await, None);
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_and_success_forgets_them() {
    let queue = queue();
    queue.wake(&key("a"));
    for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
        assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("a")));
        queue.done(&key("a"), Next::Backoff, SeenVersions::default());
        assert_eq!(next_within(&queue, Duration::from_millis(wait * 1000 - 10)).await, None, "{wait}");
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("a")));
    queue.done(&key("a"), Next::Wait, SeenVersions::default());
    queue.wake(&key("a"));
    assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("a")));
    queue.done(&key("a"), Next::Backoff, SeenVersions::default());
    assert_eq!(next_within(&queue, Duration::from_millis(1001)).await, Some(key("a")));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_wait_is_waited_for() {
    let (queue, asked) = (queue(), Duration::from_secs(3600));
    let keys = ["a", "b", "c"].map(key);
    for key in &keys {
        queue.wake(key);
        queue.next().await;
        queue.done(key, Next::FailedFor(asked), SeenVersions::default());
    }
    assert!(queue.awaits_retry());
    let start = Instant::now();
    let mut waits = Vec::new();
    for _ in &keys {
        let key = queue.next().await.unwrap();
        waits.push(start.elapsed());
        queue.done(&key, Next::Wait, SeenVersions::default());
    }
    assert!(waits.iter().all(|wait| (asked..=asked * 11 / 10).contains(wait)), "{waits:?}");
    assert!(waits.windows(2).all(|pair| pair[1] - pair[0] > Duration::from_secs(1)), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_short_wait_that_a_server_asks_for_does_not_replace_the_backoff() {
    let queue = queue();
    queue.wake(&key("a"));
    for wait in [1, 2, 4, 8] {
        assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("a")));
        queue.done(&key("a"), Next::FailedFor(Duration::ZERO), SeenVersions::default());
        assert_eq!(next_within(&queue, Duration::from_millis(wait * 1000 - 10)).await, None, "{wait}");
        tokio::time::advance(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn echoes_do_not_wake_a_key() {
    let queue = queue();
    let mut seen = SeenVersions::default();
    seen.read(object("a"), 5);
    seen.wrote(object("a"), 8);
    queue.wake_by(&key("a"), event("a", 5));
    assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("a")));
    queue.wake_by(&key("a"), event("a", 8));
    queue.done(&key("a"), Next::Wait, seen.clone());
    assert_eq!(next_within(&queue, READY_WITHIN).await, None, "8 was its own write");
    queue.wake_by(&key("a"), event("a", 8));
    assert_eq!(next_within(&queue, READY_WITHIN).await, None);
    queue.wake_by(&key("a"), event("a", 7));
    assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("a")), "7 was written by another client");
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_cut_short_by_an_event_and_not_kept_twice() {
    let queue = queue();
    queue.wake(&key("a"));
    queue.next().await;
    queue.done(&key("a"), Next::After(Duration::from_secs(60)), SeenVersions::default());
    assert_eq!(next_within(&queue, Duration::from_secs(30)).await, None);
    queue.wake(&key("a"));
    assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("a")));
    queue.done(&key("a"), Next::Wait, SeenVersions::default());
    assert_eq!(next_within(&queue, Duration::from_secs(1000)).await, None, "the delay went with the event");
}

#[tokio::test(start_paused = true)]
async fn a_storm_is_slowed_and_its_last_event_is_kept() {
    let queue = queue();
    let mut runs = 0;
    for version in 1..=1000 {
        queue.wake_by(&key("a"), event("a", version));
        if next_within(&queue, READY_WITHIN).await.is_some() {
            runs += 1;
            let mut seen = SeenVersions::default();
            seen.read(object("a"), version);
            queue.done(&key("a"), Next::Wait, seen);
        }
    }
    assert!((100..=110).contains(&runs), "{runs}");
    assert!(queue.is_slowed(&key("a")));
    queue.wake(&key("b"));
    assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("b")), "other keys do not wait");
    queue.done(&key("b"), Next::Wait, SeenVersions::default());
    assert_eq!(next_within(&queue, Duration::from_secs(2)).await, Some(key("a")), "the last event counts");
    queue.done(&key("a"), Next::Wait, SeenVersions::default());
    tokio::time::advance(Duration::from_secs(200)).await;
    assert!(!queue.is_slowed(&key("a")));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_calmed_waits_no_longer() {
    let queue = queue();
    for version in 1..=300 {
        queue.wake_by(&key("a"), event("a", version));
        if next_within(&queue, READY_WITHIN).await.is_some() {
            queue.done(&key("a"), Next::Wait, SeenVersions::default());
        }
    }
    assert!(queue.is_slowed(&key("a")));
    queue.calm(&key("a"));
    assert!(!queue.is_slowed(&key("a")));
    queue.wake_by(&key("a"), event("a", 301));
    assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("a")));
    let counts = queue.counts();
    assert_eq!((counts.slowed, counts.recovered), (1, 1));
    queue.calm(&key("unknown"));
}

#[tokio::test(start_paused = true)]
async fn the_object_that_wakes_a_key_most_often_is_found() {
    let queue = queue();
    assert_eq!(queue.noisiest(&key("a")), None);
    for version in 1..=300 {
        let name = if version % 3 == 0 { "quiet" } else { "noisy" };
        queue.wake_by(&key("a"), event(name, version));
        if next_within(&queue, READY_WITHIN).await.is_some() {
            // A change during the run counts, unless it is an echo of the run.
            queue.wake_by(&key("a"), event("own", version));
            let mut seen = SeenVersions::default();
            seen.wrote(object("own"), version);
            queue.done(&key("a"), Next::Wait, seen);
        }
    }
    assert_eq!(queue.noisiest(&key("a")), Some(object("noisy")));
    tokio::time::advance(Duration::from_secs(200)).await;
    assert!(!queue.is_slowed(&key("a")));
    assert_eq!(queue.noisiest(&key("a")), None, "the burst was refilled");
}

#[tokio::test(start_paused = true)]
async fn a_closed_queue_hands_out_nothing() {
    let queue = Arc::new(queue());
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await }
    });
    tokio::task::yield_now().await;
    queue.close();
    assert_eq!(waiting.await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn conflicts_are_retried_at_once_and_then_back_off() {
    let queue = queue();
    queue.wake(&key("a"));
    for _ in 0..4 {
        assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("a")));
        queue.done(&key("a"), Next::Conflict, SeenVersions::default());
    }
    assert_eq!(next_within(&queue, Duration::from_secs(7)).await, None);
    assert_eq!(next_within(&queue, Duration::from_secs(2)).await, Some(key("a")));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_what_is_gone() {
    let queue = queue();
    queue.wake(&key("a"));
    queue.next().await;
    queue.done(&key("a"), Next::Gone, SeenVersions::default());
    assert!(queue.lock().entries.is_empty() && queue.lock().delayed.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_delay_that_is_too_long_is_cut_to_the_longest() {
    let queue = queue();
    for delay in [Duration::MAX, Duration::from_secs(u64::MAX / 2), Duration::from_secs(315_576_000_000)] {
        queue.wake(&key("a"));
        assert_eq!(next_within(&queue, READY_WITHIN).await, Some(key("a")));
        queue.done(&key("a"), Next::After(delay), SeenVersions::default());
        assert_eq!(next_within(&queue, Duration::from_secs(24 * 60 * 60)).await, None);
    }
}

#[test]
fn keys_that_failed_together_wait_for_different_times() {
    let pace = Pace { spread_percent: 50, ..Pace::default() };
    let waits: Vec<Duration> = (0..100).map(|n| pace.backoff(&Key::new("", n.to_string()), 4)).collect();
    let distinct: std::collections::BTreeSet<&Duration> = waits.iter().collect();
    assert!(distinct.len() > 80, "{}", distinct.len());
    assert!(waits.iter().all(|wait| (4..=8).contains(&wait.as_secs())), "{waits:?}");
    assert_eq!(Pace::default().backoff(&Key::new("", "a"), 4), Duration::from_secs(8));
}
