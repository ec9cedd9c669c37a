//! Whether a container has filled its directory for temporary files, seen through its process.

use rustix::event::Timespec;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, fstatvfs, open};
use std::time::{Duration, Instant};

/// The time between two looks: at first, and when nothing was new for long.
const FIRST_INTERVAL: Duration = Duration::from_millis(20);
const LONGEST_INTERVAL: Duration = Duration::from_secs(1);
/// How long looks stay frequent while the directory is not there.
const SEARCH_PERIOD: Duration = Duration::from_secs(10);
/// Sizes of file systems in memory are rounded up to pages, which are not larger than this.
const PAGE_BYTES_MAX: u64 = 64 << 10;

/// The directory for temporary files of a container, once it is there.
pub(super) struct TemporaryFiles {
    /// Keeps the file system, so that its end is seen when the container has ended.
    dir: Option<OwnedFd>,
    is_full: bool,
    began: Instant,
    next_look: Instant,
    interval: Duration,
}

/// What a look shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing, or nothing new.
    Nothing,
    /// It is full, which was not seen before.
    Full,
}

impl TemporaryFiles {
    /// Nothing is known yet.
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            dir: None,
            is_full: false,
            began: now,
            next_look: now + FIRST_INTERVAL,
            interval: FIRST_INTERVAL,
        }
    }

    /// How long to wait for the next look, which is due when that is nothing; forever once it was seen full. The time does not
    /// begin again when the wait is interrupted.
    pub(super) fn until_next_look(&self) -> Option<Duration> {
        (!self.is_full).then(|| self.next_look.saturating_duration_since(Instant::now()))
    }

    /// Looks through a process of the container, given the size of the file system. Before the process has entered its root, it
    /// sees other files: those of another size are not the container's.
    pub(super) fn look(&mut self, pid: &str, bytes: u64) -> Look {
        if self.dir.is_some() || self.began.elapsed() > SEARCH_PERIOD {
            self.interval = (self.interval * 2).min(LONGEST_INTERVAL);
        }
        self.next_look = Instant::now() + self.interval;
        if self.dir.is_none() && !pid.is_empty() {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            self.dir = open(format!("/proc/{pid}/root/tmp"), flags, Mode::empty()).ok();
        }
        let Some(found) = self.dir.as_ref().and_then(|dir| fstatvfs(dir).ok()) else { return Look::Nothing };
        let size = found.f_blocks * found.f_frsize;
        if size < bytes || size - bytes > PAGE_BYTES_MAX {
            self.dir = None;
            return Look::Nothing;
        }
        let was_full = self.is_full;
        self.is_full |= found.f_bavail == 0;
        if self.is_full && !was_full { Look::Full } else { Look::Nothing }
    }
}

/// A time to wait, as the kernel takes it.
pub(super) fn timespec(wait: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(wait.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_another_size_are_not_the_containers() {
        let mut files = TemporaryFiles::new();
        let own = std::process::id().to_string();
        for _ in 0..10 {
            assert_eq!(files.look(&own, 1), Look::Nothing);
        }
        assert!(files.dir.is_none(), "a file system of this machine");
        assert!(files.until_next_look().unwrap() <= FIRST_INTERVAL, "it is still searched for");
        files.began -= SEARCH_PERIOD * 2;
        for _ in 0..10 {
            assert_eq!(files.look(&own, 1), Look::Nothing);
        }
        let wait = files.until_next_look().unwrap();
        assert!(wait > LONGEST_INTERVAL / 2 && wait <= LONGEST_INTERVAL, "looks become rare: {wait:?}");
    }

    /// Requests to connect arrive more often than looks are due.
    #[test]
    fn a_wait_that_is_interrupted_again_and_again_ends_in_time() {
        let files = TemporaryFiles::new();
        let began = Instant::now();
        while files.until_next_look() != Some(Duration::ZERO) {
            std::thread::sleep(FIRST_INTERVAL / 10);
            assert!(began.elapsed() < Duration::from_secs(60), "it never ends");
        }
    }
}
