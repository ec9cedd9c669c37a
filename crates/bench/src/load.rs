//! Many clients doing the same thing, each request timed.

use super::client::Client;
use super::target::Target;
use crate::failure::Failure;
use futures_util::future::try_join_all;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long each request took, and how long all of them together.
pub(super) struct Timings {
    each: Vec<Duration>,
    total: Duration,
}

impl Timings {
    pub(super) fn new(mut each: Vec<Duration>, total: Duration) -> Self {
        each.sort_unstable();
        Self { each, total }
    }

    pub(super) fn per_second(&self) -> f64 {
        self.each.len() as f64 / self.total.as_secs_f64().max(f64::EPSILON)
    }

    /// The time that `share` of the requests did not exceed, in milliseconds.
    pub(super) fn percentile(&self, share: f64) -> f64 {
        let last = self.each.len().saturating_sub(1);
        let at = ((last as f64) * share).round() as usize;
        self.each.get(at.min(last)).map_or(0.0, |d| d.as_secs_f64() * 1e3)
    }
}

/// Runs `work(client, number)` for the numbers below `count`, shared out among `clients` connections that are
/// open before the clock starts.
pub(super) async fn run<W>(
    target: &Arc<Target>,
    clients: usize,
    count: usize,
    work: W,
) -> Result<Timings, Failure>
where
    W: AsyncFn(&mut Client, usize) -> Result<(), Failure>,
{
    let mut connections = Vec::with_capacity(clients);
    for _ in 0..clients {
        connections.push(Client::connect(target).await?);
    }
    let work = &work;
    let began = Instant::now();
    let runs = connections.iter_mut().enumerate().map(|(first, client)| async move {
        let mut each = Vec::with_capacity(count / clients + 1);
        for number in (first..count).step_by(clients) {
            let began = Instant::now();
            work(client, number).await?;
            each.push(began.elapsed());
        }
        Ok::<_, Failure>(each)
    });
    let each = try_join_all(runs).await?.concat();
    Ok(Timings::new(each, began.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let times = (1..=101).rev().map(Duration::from_millis).collect();
        let timings = Timings::new(times, Duration::from_secs(2));
        assert!((timings.percentile(0.5) - 51.0).abs() < 1e-9);
        assert!((timings.percentile(0.99) - 100.0).abs() < 1e-9);
        assert!((timings.per_second() - 50.5).abs() < 1e-9);
        assert!(Timings::new(Vec::new(), Duration::ZERO).percentile(0.5).abs() < 1e-9);
    }
}
