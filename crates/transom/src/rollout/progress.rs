//! Progress on stderr: one line of the terminal that is written again and again; elsewhere a line for each wave.

use std::io::{IsTerminal, Write};

/// Moves to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// Shows how far a rollout is.
pub(super) struct Progress {
    terminal: bool,
    /// What the line shows.
    shown: String,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), shown: String::new() }
    }

    /// Replaces the line, if there is a terminal.
    pub(super) fn show(&mut self, text: &str) {
        if self.terminal && self.shown != text {
            self.print(&format!("{CLEAR}{text}"));
            text.clone_into(&mut self.shown);
        }
    }

    /// Writes a line that stays.
    pub(super) fn say(&mut self, text: &str) {
        self.clear();
        self.print(&format!("{text}\n"));
    }

    /// Removes the line.
    pub(super) fn clear(&mut self) {
        if !self.shown.is_empty() {
            self.print(CLEAR);
            self.shown.clear();
        }
    }

    fn print(&self, text: &str) {
        let mut stderr = std::io::stderr().lock();
        // If printing fails there is nowhere left to report that.
        let _ = write!(stderr, "{text}");
        let _ = stderr.flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
