//! A plane with nothing to do, and one that starts again with everything there.

use super::platform::stacks;
use super::running::{Counters, OwnPlane};
use super::{EFFECT_TIMEOUT, Run, millis, name};
use crate::failure::Failure;
use serde_json::json;
use std::time::{Duration, Instant};

/// Reconciles over which the cost of one is measured.
const MEASURED_RECONCILES: usize = 1_000;

impl Run<'_> {
    pub(super) async fn idle(&mut self) -> Result<(), Failure> {
        let (before, cpu) = (self.plane.counters().await?, self.plane.cpu()?);
        let time = Duration::from_secs(self.options.idle.into());
        tokio::time::sleep(time).await;
        let used = millis(self.plane.cpu()? - cpu);
        let after = self.plane.counters().await?;
        let minutes = time.as_secs_f64() / 60.0;
        let written = after.writes + after.events - before.writes - before.events;
        self.note("idle, write requests in a minute", written as f64 / minutes, "");
        self.note("idle, processor time in a minute", used / minutes, "ms");
        let each = used / minutes / self.made as f64;
        self.note("idle, processor time in a minute for each", each, "ms");
        Ok(())
    }

    /// What one reconcile of an existing composite resource costs, in milliseconds of processor time.
    pub(super) async fn cost(&self) -> Result<f64, Failure> {
        let mut client = self.plane.connect().await?;
        let (before, cpu) = (Counters::read(&mut client).await?.reconciles, self.plane.cpu()?);
        let step = (self.made / MEASURED_RECONCILES).max(1);
        let count = self.scaled(MEASURED_RECONCILES).min(self.made);
        for number in 0..count {
            let one = format!("{}/{}", stacks(), name((number * step) % self.made));
            let touch = json!({"metadata": {"annotations": {"bench.transom.example/touched": format!("{number} of {}", self.made)}}});
            client.merge(&one, &touch).await?;
        }
        let began = Instant::now();
        while Counters::read(&mut client).await?.reconciles < before + count as u64 {
            if began.elapsed() > EFFECT_TIMEOUT {
                return Err(Failure::new("not everything that was touched is reconciled"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let reconciles = Counters::read(&mut client).await?.reconciles - before;
        Ok(millis(self.plane.cpu()? - cpu) / reconciles as f64)
    }

    /// Kills a plane and starts it again: until everything has been reconciled once.
    pub(super) async fn restart(
        &mut self,
        mut own: OwnPlane,
        start: impl Fn() -> Result<OwnPlane, Failure>,
    ) -> Result<OwnPlane, Failure> {
        own.kill();
        let began = Instant::now();
        let own = start()?;
        self.plane = own.plane().clone();
        let serving = began.elapsed();
        let mut client = self.plane.connect().await?;
        while Counters::read(&mut client).await?.reconciles < self.made as u64 {
            if began.elapsed() > EFFECT_TIMEOUT {
                return Err(Failure::new("not everything is reconciled after a restart"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let (took, cpu) = (began.elapsed(), self.plane.cpu()?);
        let written = Counters::read(&mut client).await?;
        self.note("restart to serving", millis(serving), "ms");
        self.note("restart to everything reconciled", millis(took), "ms");
        self.note("restart, processor time", millis(cpu), "ms");
        self.note("restart, writes", (written.writes + written.events) as f64, "");
        Ok(own)
    }
}
