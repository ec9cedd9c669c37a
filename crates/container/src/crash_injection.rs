//! Lets tests kill this process, or one of a container's own, at a chosen step of a run. Release builds do not contain this module.
//!
//! `TRANSOM_DIE_AT=POINT:N` sends SIGKILL at the N-th step of a point:
//!
//! | point | whose steps | who is killed |
//! |---|---|---|
//! | `open` | a workspace is opened, and what is left of others is removed | the process that runs containers |
//! | `pull` | an image is unpacked and kept | the same |
//! | `run` | a container that runs once, in the process that runs it | the same |
//! | `supervised` | containers that run until they are stopped, in the process that runs them: from the start over an upgrade, where calls are finished first, to the stop | the same |
//! | `outer`, `init`, `enter` | that stage of `shim` | the same; the stage goes on when it is dead |
//! | `outer-alone`, `init-alone`, `enter-alone` | that stage of `shim` | the process of the stage |
//!
//! `POINT/STEP:N` counts the steps of that name only: those of several containers come in no certain order. A process that kills itself
//! prints the step to standard error first.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Signal, getpid, kill_process};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};

const DIE_AT: &str = "TRANSOM_DIE_AT";
/// What is added to the name of a stage if its own process is to be killed.
const ALONE: &str = "-alone";
/// The named pipe in a container's directory by which a stage asks for the death of the process that runs containers, which it may
/// not be able to name: it is in another namespace of processes.
const PIPE: &str = "die";
/// The longest name of a step, in bytes: what is written to a pipe at once is read at once.
const NAME_BYTES_MAX: usize = 256;

static CRASH: LazyLock<Option<Crash>> = LazyLock::new(|| {
    let requested = std::env::var(DIE_AT).ok()?;
    let (point, at) = requested.split_once(':')?;
    Some(Crash { point: point.to_owned(), at: at.parse().ok()?, reached: AtomicU64::new(0) })
});
/// The pipe of the container that this process is a stage of.
static ASKS: OnceLock<File> = OnceLock::new();

struct Crash {
    point: String,
    /// The number of the step, from one.
    at: u64,
    reached: AtomicU64,
}

/// Counts a step, and dies if it is the one that was chosen.
pub(crate) fn reach(point: &str, step: &str) {
    let Some(crash) = CRASH.as_ref() else { return };
    let is_alone = crash.point.strip_suffix(ALONE) == Some(point);
    let is_named = || crash.point.strip_prefix(point).and_then(|rest| rest.strip_prefix('/')) == Some(step);
    if !(is_alone || crash.point == point || is_named())
        || crash.reached.fetch_add(1, Ordering::Relaxed) + 1 != crash.at
    {
        return;
    }
    match ASKS.get() {
        Some(asks) if !is_alone => {
            if let Err(error) = ask(asks, &format!("{point}: {step}")) {
                let _ = writeln!(io::stderr(), "no process is killed at {point}: {step}: {error}");
            }
        }
        _ => die(&format!("{point}: {step}")),
    }
}

fn die(step: &str) -> ! {
    let _ = writeln!(io::stderr(), "killed at {step}");
    let _ = kill_process(getpid(), Signal::KILL);
    // The first process of a namespace gets no signal from itself; this ends it as suddenly.
    std::process::abort()
}

/// Asks for the death of the process that runs containers, and waits until the kernel has closed what it had open.
fn ask(mut asks: &File, step: &str) -> io::Result<()> {
    asks.write_all(step.as_bytes())?;
    loop {
        match asks.write_all(b" ") {
            Ok(()) => std::thread::yield_now(),
            // There is no reader any more.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Dies when a stage of the container with this directory asks for it. To be called before the stage is started.
pub(crate) fn listen(folder: &Path) -> io::Result<()> {
    if CRASH.is_none() {
        return Ok(());
    }
    let pipe = folder.join(PIPE);
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    // Also for writing: otherwise both sides would wait for each other, or for a stage that never comes.
    let mut pipe = File::options().read(true).write(true).open(pipe)?;
    std::thread::spawn(move || {
        let mut step = [0; NAME_BYTES_MAX];
        if let Ok(read @ 1..) = pipe.read(&mut step) {
            die(String::from_utf8_lossy(step.get(..read).unwrap_or_default()).trim());
        }
    });
    Ok(())
}

/// Makes this process a stage of the container with this directory. Others must not open the pipe: when the process that runs containers
/// is dead, they would wait for a reader.
pub(crate) fn attach(stage: &str, folder: &Path) {
    if CRASH.as_ref().is_some_and(|crash| crash.point == stage)
        && let Ok(pipe) = File::options().write(true).open(folder.join(PIPE))
    {
        let _ = ASKS.set(pipe);
    }
}

/// Passes on what was chosen to a stage, which has no other variables.
pub(crate) fn pass_on(command: &mut Command) {
    if let Ok(requested) = std::env::var(DIE_AT) {
        command.env(DIE_AT, requested);
    }
}
