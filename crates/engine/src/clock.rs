//! Wall time for controllers. It advances with the clock of the runtime, so that tests can pause it.

use tokio::time::Instant;
use transom_object::time::Timestamp;

/// Wall time that advances with the runtime's clock, so that tests can pause it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    wall: Timestamp,
}

impl Clock {
    /// A clock that shows this time now.
    pub fn starting_at(wall: Timestamp) -> Self {
        Self { started: Instant::now(), wall }
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.wall.checked_add(self.started.elapsed()).unwrap_or(self.wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn the_clock_runs_with_the_runtime() {
        let start = transom_object::time::parse("2024-01-01T00:00:00Z").unwrap();
        let clock = Clock::starting_at(start);
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(transom_object::time::format(clock.now()), "2024-01-01T00:01:01Z");
    }
}
