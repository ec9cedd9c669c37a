//! The signals that stop a command.

use crate::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on they no longer end the process by themselves.
    pub fn handle() -> Result<Self, Failure> {
        let handle = |kind| signal(kind).map_err(|e| Failure::new(format!("cannot wait for signals: {e}")));
        Ok(Self { terminate: handle(SignalKind::terminate())?, interrupt: handle(SignalKind::interrupt())? })
    }

    /// Waits for one of them.
    pub async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// From here on the next one ends the process at once.
    pub fn exit_on_next(mut self) {
        tokio::spawn(async move {
            self.received().await;
            std::process::exit(130);
        });
    }
}
