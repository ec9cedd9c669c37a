//! Progress of pulls and pushes: one line of the terminal that is written again and again, and removed at the end.
//! Nothing is written to anything but a terminal.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use transom_oci::remote::{Transfer, TransferListener};

/// The shortest time between two versions of the line.
const INTERVAL: Duration = Duration::from_millis(100);
/// Moves to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// When the line was written; `None` if there is none.
static WRITTEN: Mutex<Option<Instant>> = Mutex::new(None);

/// Shows transfers on the terminal, if stderr is one.
pub(super) fn listener() -> TransferListener {
    match std::io::stderr().is_terminal() {
        true => TransferListener::new(show),
        false => TransferListener::default(),
    }
}

fn show(transfer: &Transfer) {
    let Ok(mut written) = WRITTEN.lock() else { return };
    if written.is_some_and(|at| at.elapsed() < INTERVAL) {
        return;
    }
    *written = Some(Instant::now());
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "{CLEAR}{}", line(transfer));
    let _ = stderr.flush();
}

/// Removes the line, before something else is written and at the end.
pub(super) fn clear() {
    if let Ok(mut written) = WRITTEN.lock()
        && written.take().is_some()
    {
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "{CLEAR}");
        let _ = stderr.flush();
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
