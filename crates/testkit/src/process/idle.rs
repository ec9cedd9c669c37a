//! Whether the controllers of a plane have anything left to do.

use super::{Plane, WAIT_LIMIT};
use std::time::{Duration, Instant};

/// How often in a row the controllers must be found idle.
const ROUNDS: usize = 5;
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What the metrics show of all queues together.
#[derive(Debug, Default, PartialEq, Eq)]
struct Queues {
    /// Keys that run or are ready to run.
    busy: u64,
    /// How often a key became ready.
    adds: u64,
}

impl Queues {
    fn read(metrics: &str) -> Self {
        let sum = |name: &str| {
            let series = metrics.lines().filter(|line| line.starts_with(name));
            series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum::<u64>()
        };
        Self {
            busy: sum("workqueue_depth{") + sum("controller_runtime_active_workers{"),
            adds: sum("workqueue_adds_total{"),
        }
    }
}

impl Plane {
    /// Waits until the controllers are idle: they know all objects, no key runs or is ready to run, and none was added, in
    /// several rounds. There is more than one because a change needs a moment from the store to the queues. Keys that wait
    /// for a time do not count.
    pub async fn until_idle(&self) {
        let client = self.client().await;
        let started = Instant::now();
        while client.get("/readyz").await.expect("an answer").status != 200 {
            assert!(started.elapsed() < WAIT_LIMIT, "the plane is not ready");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let (mut before, mut rounds) = (Queues::default(), 0);
        while rounds < ROUNDS {
            let now = Queues::read(&client.get("/metrics").await.expect("metrics").text());
            rounds = if now.busy == 0 && now == before { rounds + 1 } else { 0 };
            assert!(started.elapsed() < WAIT_LIMIT, "the controllers are not idle: {now:?}");
            before = now;
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Queues;

    #[test]
    fn queues_are_summed_up() {
        let metrics = "# TYPE workqueue_depth gauge\n\
                       workqueue_depth{controller=\"a\"} 1\nworkqueue_depth{controller=\"b\"} 0\n\
                       controller_runtime_active_workers{controller=\"a\"} 2\n\
                       workqueue_adds_total{controller=\"a\"} 7\nworkqueue_adds_total{controller=\"b\"} 3\n";
        assert_eq!(Queues::read(metrics), Queues { busy: 3, adds: 10 });
    }
}
