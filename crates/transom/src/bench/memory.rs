//! Resident memory of processes on this machine.

use crate::failure::Failure;

/// The sum of the processes' resident sets, in megabytes (10⁶ bytes).
pub(super) fn resident(pids: &[u32]) -> Result<f64, Failure> {
    let mut kibibytes = 0.0;
    for pid in pids {
        let path = format!("/proc/{pid}/status");
        let status = std::fs::read_to_string(&path).map_err(|e| {
            Failure::new(format!("cannot read {path}: {e}"))
                .remedy("name running processes of this machine with --pid")
        })?;
        kibibytes += parse(&status).ok_or_else(|| Failure::new(format!("{path} has no VmRSS")))?;
    }
    Ok(kibibytes * 1024.0 / 1e6)
}

fn parse(status: &str) -> Option<f64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?
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
    fn reads_the_resident_set() {
        assert_eq!(parse("Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t1\n"), Some(2048.0));
        assert_eq!(parse("Name:\tx\n"), None);
        assert!(resident(&[std::process::id()]).is_ok_and(|megabytes| megabytes > 0.1));
    }
}
