//! Progress on stderr: one line of the terminal that is written again and again, and removed before something else is
//! printed.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Moves to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";
/// The longest line: one that continues in a second row of the terminal could not be cleared.
const WIDTH_CHARACTERS: usize = 79;

/// Whether a line is on the terminal. There is one terminal, and results are printed to it as well.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Removes the line that is on the terminal, if there is one: what is printed next begins on a line of its own.
pub(crate) fn remove_line() {
    if IS_SHOWN.swap(false, Ordering::Relaxed) {
        write_now(CLEAR);
    }
}

fn write_now(text: &str) {
    let mut stderr = std::io::stderr().lock();
    // If printing fails there is nowhere left to report that.
    let _ = write!(stderr, "{text}");
    let _ = stderr.flush();
}

/// A line that shows how far a command is. It is removed when this value is dropped.
pub struct Progress {
    is_terminal: bool,
    /// What the line shows.
    shown: String,
}

impl Progress {
    /// Shows nothing yet, and never a line on anything but a terminal.
    pub fn new() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal(), shown: String::new() }
    }

    /// Replaces the line, if there is a terminal.
    pub fn show(&mut self, text: &str) {
        if self.is_terminal && self.shown != text {
            write_now(&format!("{CLEAR}{}", shortened(text)));
            IS_SHOWN.store(true, Ordering::Relaxed);
            text.clone_into(&mut self.shown);
        }
    }

    /// Writes a line that stays, whether there is a terminal or not.
    pub fn say(&mut self, text: &str) {
        self.clear();
        write_now(&format!("{text}\n"));
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if !self.shown.is_empty() {
            remove_line();
            self.shown.clear();
        }
    }
}

/// The start of a text, in one row of the terminal.
fn shortened(text: &str) -> String {
    let printed = |c: char| if c.is_control() { ' ' } else { c };
    match text.chars().nth(WIDTH_CHARACTERS) {
        None => text.chars().map(printed).collect(),
        Some(_) => text.chars().take(WIDTH_CHARACTERS - 1).map(printed).chain(['…']).collect(),
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_one_row_and_controls_no_terminal() {
        assert_eq!(shortened("waiting\n\x1b[2Jfor it"), "waiting  [2Jfor it");
        assert_eq!(shortened(&"é".repeat(79)), "é".repeat(79));
        assert_eq!(shortened(&"é".repeat(80)), format!("{}…", "é".repeat(78)));
    }
}
