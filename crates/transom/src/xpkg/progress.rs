//! Progress of pulls, pushes and installations: one line of the terminal that is written again and again, and removed before
//! anything else is written. Nothing is written to anything but a terminal.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use transom_console::Progress;
use transom_oci::remote::{Transfer, TransferListener};

/// The shortest time between two versions of the line.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// The line, and when it was written; `None` if there is none.
static LINE: Mutex<Option<(Progress, Instant)>> = Mutex::new(None);

/// Shows transfers on the terminal, if stderr is one.
pub(super) fn listener() -> TransferListener {
    match std::io::stderr().is_terminal() {
        true => TransferListener::new(show),
        false => TransferListener::default(),
    }
}

fn show(transfer: &Transfer) {
    let Ok(mut shown) = LINE.lock() else { return };
    if shown.as_ref().is_some_and(|(_, written)| written.elapsed() < REDRAW_INTERVAL) {
        return;
    }
    let (progress, written) = shown.get_or_insert_with(|| (Progress::new(), Instant::now()));
    *written = Instant::now();
    progress.show(&line(transfer));
}

/// Shows on the terminal what is waited for, if stderr is one.
pub(super) fn waiting(what: &str) {
    if let Ok(mut shown) = LINE.lock() {
        let (progress, written) = shown.get_or_insert_with(|| (Progress::new(), Instant::now()));
        *written = Instant::now();
        progress.show(what);
    }
}

/// Removes the line, before something else is written and at the end.
pub(super) fn clear() {
    if let Ok(mut shown) = LINE.lock() {
        *shown = None;
    }
}

fn line(transfer: &Transfer) -> String {
    let verb = if transfer.upload { "pushing" } else { "pulling" };
    let (bytes, size) = (quantity(transfer.bytes), quantity(transfer.size));
    let short: String = transfer.digest.hex().chars().take(12).collect();
    format!("{verb} {short}: {bytes} of {size}")
}

fn quantity(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transom_packages::Digest;

    #[test]
    fn the_line_says_what_is_transferred() {
        let transfer = Transfer { digest: Digest::of(b""), bytes: 1536, size: 5 << 20, upload: true };
        assert_eq!(line(&transfer), "pushing e3b0c44298fc: 1.5 KiB of 5.0 MiB");
        assert_eq!(
            line(&Transfer { bytes: 10, upload: false, ..transfer }),
            "pulling e3b0c44298fc: 10 B of 5.0 MiB"
        );
    }
}
