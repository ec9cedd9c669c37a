//! Where the sequencer puts a batch before it is published.

use crate::model::Event;
use crate::state::State;
use std::io;
use std::sync::Arc;

/// A durable (or not) log of batches. Called by the sequencer alone, from its own thread, so it may block.
pub(crate) trait Backend: Send {
    /// Writes a batch of consecutive revisions. After an error a restart must not read any of it, and the next append
    /// may succeed.
    fn append(&mut self, batch: &[Arc<Event>]) -> Result<(), AppendError>;

    /// Makes everything appended durable. After an error nothing is known, and the store must stop writing.
    fn sync(&mut self) -> io::Result<()>;

    /// Checks whether a batch like the one refused last would be accepted now, without adding anything.
    fn probe(&mut self) -> Result<(), AppendError>;

    /// A chance to reclaim space, given the state just published. Must not wait for a disk.
    fn maintain(&mut self, state: &State);

    /// Called when nothing has been written for a while. Fails as `sync` does.
    fn on_idle(&mut self) -> io::Result<()>;

    /// Makes everything durable and releases it.
    fn close(&mut self) -> io::Result<()>;
}

#[derive(Debug)]
pub(crate) enum AppendError {
    /// Nothing was written; it may work again later.
    Refused(io::Error),
    /// It is no longer known what is on disk.
    Lost(io::Error),
}

/// Keeps nothing: the state in memory is all there is.
pub(crate) struct Memory;

impl Backend for Memory {
    fn append(&mut self, _: &[Arc<Event>]) -> Result<(), AppendError> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn probe(&mut self) -> Result<(), AppendError> {
        Ok(())
    }

    fn maintain(&mut self, _: &State) {}

    fn on_idle(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
