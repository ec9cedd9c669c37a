//! What processes on this machine use: memory and processor time.

use crate::failure::Failure;
use std::time::Duration;

/// The kernel counts processor time for programs in hundredths of a second, whatever it does itself.
const TICK_DURATION: Duration = Duration::from_millis(10);

/// A megabyte, in bytes.
pub(super) const MB: f64 = 1e6;
/// A mebibyte, in bytes.
pub(super) const MIB: f64 = 1024.0 * 1024.0;

/// The sum of the processes' resident sets, in bytes.
pub(super) fn memory(pids: &[u32]) -> Result<f64, Failure> {
    pids.iter().map(|pid| status(*pid, "VmRSS")).sum()
}

/// The largest that the resident set of a process ever was, in bytes.
pub(super) fn peak_memory(pid: u32) -> Result<f64, Failure> {
    status(pid, "VmHWM")
}

fn status(pid: u32, field: &str) -> Result<f64, Failure> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).map_err(|e| {
        Failure::new(format!("cannot read {path}: {e}"))
            .remedy("name running processes of this machine with --pid")
    })?;
    let kibibytes = parse(&status, field);
    let kibibytes = kibibytes.ok_or_else(|| Failure::new(format!("{path} has no {field}")))?;
    Ok(kibibytes * 1024.0)
}

/// The processor time that the processes have used so far.
pub(super) fn cpu(pids: &[u32]) -> Result<Duration, Failure> {
    pids.iter().map(|pid| cpu_of(*pid)).sum()
}

fn cpu_of(pid: u32) -> Result<Duration, Failure> {
    let path = format!("/proc/{pid}/stat");
    let stat =
        std::fs::read_to_string(&path).map_err(|e| Failure::new(format!("cannot read {path}: {e}")))?;
    ticks(&stat)
        .map(|ticks| TICK_DURATION * ticks)
        .ok_or_else(|| Failure::new(format!("{path} has no times")))
}

/// In user mode and in the kernel: the 14th and 15th field. The second, a name in parentheses, may hold anything.
fn ticks(stat: &str) -> Option<u32> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn parse(status: &str, field: &str) -> Option<f64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_process_uses() {
        assert_eq!(parse("Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t1\n", "VmRSS"), Some(2048.0));
        assert_eq!(parse("Name:\tx\n", "VmRSS"), None);
        assert_eq!(ticks("7 (a ) b) S 1 7 7 0 -1 0 0 0 0 0 41 2 0 0"), Some(43));
        assert!(cpu(&[std::process::id()]).is_ok());
        assert!(memory(&[std::process::id()]).is_ok_and(|bytes| bytes > 1e5));
    }
}
