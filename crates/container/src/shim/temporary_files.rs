//! Whether a container has filled its directory for temporary files, seen through its process.

use rustix::event::Timespec;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, fstatvfs, open};
use std::cell::{Cell, RefCell};

/// The first and the longest time between two looks, in milliseconds.
const FIRST_INTERVAL_MILLIS: i64 = 20;
const LONGEST_INTERVAL_MILLIS: i64 = 1000;
/// Sizes of file systems in memory are rounded up to pages, which are not larger than this.
const PAGE_BYTES_MAX: u64 = 64 << 10;

/// The directory for temporary files of a container, once it is there.
pub(super) struct TemporaryFiles {
    /// Keeps the file system, so that its end is seen when the container has ended.
    dir: RefCell<Option<OwnedFd>>,
    is_full: Cell<bool>,
    interval_millis: Cell<i64>,
}

/// What a look shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing, or nothing new.
    Nothing,
    /// It is full, which was not seen before.
    Full,
}

impl Default for TemporaryFiles {
    fn default() -> Self {
        Self {
            dir: RefCell::default(),
            is_full: Cell::new(false),
            interval_millis: Cell::new(FIRST_INTERVAL_MILLIS),
        }
    }
}

impl TemporaryFiles {
    /// How long to wait for the next look; forever once it was seen full.
    pub(super) fn next_look(&self) -> Option<Timespec> {
        let millis = self.interval_millis.get();
        let wait = Timespec { tv_sec: millis / 1000, tv_nsec: millis % 1000 * 1_000_000 };
        (!self.is_full.get()).then_some(wait)
    }

    /// Looks through a process of the container, given the size of the file system. Before the process has entered its root, it
    /// sees other files: those of another size are not the container's.
    pub(super) fn look(&self, pid: &str, bytes: u64) -> Look {
        self.interval_millis.set((self.interval_millis.get() * 2).min(LONGEST_INTERVAL_MILLIS));
        let mut dir = self.dir.borrow_mut();
        if dir.is_none() && !pid.is_empty() {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            *dir = open(format!("/proc/{pid}/root/tmp"), flags, Mode::empty()).ok();
        }
        let Some(found) = dir.as_ref().and_then(|dir| fstatvfs(dir).ok()) else { return Look::Nothing };
        let size = found.f_blocks * found.f_frsize;
        if size < bytes || size - bytes > PAGE_BYTES_MAX {
            *dir = None;
            return Look::Nothing;
        }
        let was_full = self.is_full.replace(found.f_bavail == 0 || self.is_full.get());
        if self.is_full.get() && !was_full { Look::Full } else { Look::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_another_size_are_not_the_containers() {
        let files = TemporaryFiles::default();
        let own = std::process::id().to_string();
        for _ in 0..10 {
            assert_eq!(files.look(&own, 1), Look::Nothing);
        }
        assert!(files.dir.borrow().is_none(), "a file system of this machine");
        let wait = files.next_look().unwrap();
        assert_eq!((wait.tv_sec, wait.tv_nsec), (1, 0), "looks become rare");
    }
}
