//! What users should know about a container that runs, or ran: the limits that it reached, and that it did not end when it was
//! asked to.
//!
//! A remark stays until the container is replaced by that of another revision, so that it is read by people and written once.

use crate::cgroup::{Reached, reached_so_far};
use crate::spec::Limits;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is remarkable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remark {
    /// It reached its limit of memory.
    Memory,
    /// It reached its limit of processes and threads.
    Processes,
    /// A call was given up while the limit of processors slowed it.
    Processors,
    /// Its directory for temporary files was full.
    Files,
    /// It printed more than is read.
    Output,
    /// It did not end when it was asked to.
    Killed,
}

/// The remarks about a container, however often it is started.
pub(crate) struct Remarks {
    limits: Limits,
    grace: Duration,
    made: Mutex<BTreeSet<Remark>>,
    changed: Box<dyn Fn() + Send + Sync>,
    /// The cgroups that count what it reaches, while it runs.
    cgroups: Mutex<Vec<PathBuf>>,
    /// In how many periods its processors were limited, and whether that was more at the last look than before it.
    throttled: AtomicU64,
    is_throttled: AtomicBool,
    counts: AtomicBool,
}

impl Remarks {
    /// None yet. `changed` is called whenever there is another one.
    pub(crate) fn new(limits: Limits, grace: Duration, changed: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            limits,
            grace,
            made: Mutex::default(),
            changed: Box::new(changed),
            cgroups: Mutex::default(),
            throttled: AtomicU64::new(0),
            is_throttled: AtomicBool::new(false),
            counts: AtomicBool::new(false),
        }
    }

    fn made(&self) -> MutexGuard<'_, BTreeSet<Remark>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, remark: Remark) {
        if self.made().insert(remark) {
            (self.changed)();
        }
    }

    pub(crate) fn has(&self, remark: Remark) -> bool {
        self.made().contains(&remark)
    }

    /// Whether cgroups count what the container reaches.
    pub(crate) fn counts(&self) -> bool {
        self.counts.load(Ordering::Relaxed)
    }

    /// The container has ended, and its cgroups are about to be removed.
    pub(crate) fn ended(&self, reached: Reached) {
        self.look();
        self.add_reached(reached);
        self.cgroups.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The container was started, and is in these cgroups.
    pub(crate) fn started(&self, cgroups: &[PathBuf]) {
        *self.cgroups.lock().unwrap_or_else(PoisonError::into_inner) = cgroups.to_owned();
        self.counts.store(!cgroups.is_empty(), Ordering::Relaxed);
        self.throttled.store(0, Ordering::Relaxed);
        self.is_throttled.store(false, Ordering::Relaxed);
    }

    /// Looks at what its cgroups count.
    pub(crate) fn look(&self) {
        let cgroups = self.cgroups.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if cgroups.is_empty() {
            return;
        }
        let (reached, throttled) = reached_so_far(&cgroups);
        self.add_reached(reached);
        let before = self.throttled.swap(throttled, Ordering::Relaxed);
        self.is_throttled.store(throttled > before, Ordering::Relaxed);
    }

    /// What its cgroups counted.
    fn add_reached(&self, reached: Reached) {
        let all = [(reached.memory, Remark::Memory), (reached.processes, Remark::Processes)];
        all.into_iter().filter(|(is_reached, _)| *is_reached).for_each(|(_, remark)| self.add(remark));
    }

    /// A call took too long.
    pub(crate) fn call_given_up(&self) {
        let was_throttled = self.is_throttled.load(Ordering::Relaxed);
        self.look();
        if was_throttled || self.is_throttled.load(Ordering::Relaxed) {
            self.add(Remark::Processors);
        }
    }

    /// All remarks, as conditions have them; nothing if there is none.
    pub(crate) fn words(&self) -> Option<String> {
        let words: Vec<String> = self.made().iter().map(|remark| self.word(*remark)).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    fn word(&self, remark: Remark) -> String {
        let Limits { memory_bytes, cpu_millis, processes, tmp_bytes } = self.limits;
        match remark {
            Remark::Memory => {
                format!(
                    "it reached its limit of memory ({}), and processes of it were killed",
                    size(memory_bytes)
                )
            }
            Remark::Processes => format!("it reached its limit of processes and threads ({processes})"),
            Remark::Processors => format!(
                "a call took too long while it used all processor time that it may ({} of a processor)",
                thousandths(cpu_millis)
            ),
            Remark::Files => format!("it filled /tmp ({})", size(tmp_bytes)),
            Remark::Output => {
                "it printed more than 1 MiB in a second: it was slowed down, and its log has only the end"
                    .to_owned()
            }
            Remark::Killed => {
                format!("it did not end within {} s of SIGTERM and was killed", self.grace.as_secs_f64())
            }
        }
    }
}

/// A number of bytes, in MiB if it is a whole number of these.
pub(crate) fn size(bytes: u64) -> String {
    let mebibytes = bytes >> 20;
    if mebibytes << 20 == bytes { format!("{mebibytes} MiB") } else { format!("{bytes} bytes") }
}

/// A number of thousandths, as people write it.
fn thousandths(number: u64) -> String {
    let (whole, rest) = (number / 1000, number % 1000);
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:03}").trim_end_matches('0').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn remarks(count: &Arc<AtomicU64>) -> Remarks {
        let count = count.clone();
        let changed = move || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        Remarks::new(Limits::default(), Duration::from_secs(5), changed)
    }

    #[test]
    fn a_remark_is_made_once_and_names_the_limit() {
        let count = Arc::new(AtomicU64::new(0));
        let all = remarks(&count);
        assert_eq!(all.words(), None);
        for remark in [Remark::Processes, Remark::Memory, Remark::Processes] {
            all.add(remark);
        }
        assert_eq!(count.load(Ordering::Relaxed), 2, "a change is reported, and a repetition is not");
        let words = all.words().unwrap();
        let expected = "it reached its limit of memory (512 MiB), and processes of it were killed; it reached its limit of \
                        processes and threads (512)";
        assert_eq!(words, expected);
        assert_eq!(
            (thousandths(2000), thousandths(500), size(7)),
            ("2".into(), "0.5".into(), "7 bytes".into())
        );
    }

    #[test]
    fn a_call_is_given_up_for_the_limit_of_processors_only_while_that_slows_it() {
        let dir = tempfile::tempdir().unwrap();
        let throttled = |times: u64| {
            std::fs::write(dir.path().join("cpu.stat"), format!("nr_throttled {times}\n")).unwrap();
        };
        let all = remarks(&Arc::default());
        all.call_given_up();
        assert_eq!(all.words(), None, "without cgroups nothing is known");
        all.started(&[dir.path().to_owned()]);
        throttled(3);
        all.look();
        all.look();
        all.call_given_up();
        assert_eq!(all.words(), None, "it was slowed when it started, and not later");
        throttled(4);
        all.call_given_up();
        assert!(all.has(Remark::Processors));
        assert!(all.words().unwrap().contains("(2 of a processor)"));
    }
}
