//! `transom rollout`: moves composite resources from one revision of their Composition to another, in waves.
//!
//! | module | purpose |
//! |---|---|
//! | `waves` | which composite resources are moved together; pure |
//! | `choice` | the fields by which an object chooses its revision; pure |
//! | `record` | all that is needed to continue a rollout or to roll it back, as a ConfigMap; pure |
//! | `decide` | what comes next, from the record and the objects as they are; pure |
//! | `survey` | what a rollout starts from: the Composition, its revisions and composite resources |
//! | `preview` | what a move would change, by the engine and dry runs of the server |
//! | `host` | what runs the functions that need containers for that; the binary provides it |
//! | `storage` | records on the control plane, and which command works on one |
//! | `drive` | carries out what was decided |
//! | `plan`, `status` | both for people and for programs |
//! | `begin`, `pin` | the commands that start rollouts, and that pin composite resources before one |
//! | `writing` | writes within their time |
//!
//! The record is written before any composite resource is, and whatever is written can be the last thing that a command
//! does: the next one decides from the record and the objects alone. Results go to stdout, all else to stderr.
//!
//! It is a client of the control plane as any other: this crate must not know the server or the controllers, and composes with the
//! engine that the controllers use.

#![warn(missing_docs)]

mod begin;
mod choice;
#[cfg(debug_assertions)]
mod crash_injection;
mod decide;
mod drive;
mod host;
mod pin;
mod plan;
mod preview;
mod record;
mod status;
mod storage;
mod survey;
mod waves;
mod writing;

pub use host::{FunctionHost, FunctionHostArgs};

use clap::{Args, Subcommand};
use drive::{Drive, Ending};
use record::{Phase, Record};
use std::process::ExitCode;
use std::time::Duration;
use storage::{Held, Storage};
use transom_console::control_plane::ControlPlaneArgs;
use transom_console::{Failure, Format, Progress, block_on, duration};

/// The exit code for a rollout that stopped before it was done.
const STOPPED: u8 = 2;

/// Move composite resources to another revision of their Composition, in waves.
///
/// The state of a rollout is on the control plane, so that it can be interrupted at any time and continued from
/// elsewhere. The exit code is 0 if it is done, 1 after a failure, and 2 if it stopped because a wave did not become ready,
/// was paused, or was interrupted.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  transom rollout pin apps                       keep all composite resources of Composition apps at their revision
  transom rollout plan apps                      show what moving them to the newest revision would change
  transom rollout start apps --waves 1,10%,100%  move them, and wait for each wave to be ready
  transom rollout status apps                    show how far it is
  transom rollout resume apps                    continue after an interruption or a failed wave
  transom rollout rollback apps                  give all of them back what they had")]
#[expect(missing_docs, reason = "the help of a command is the documentation of its flags")]
pub enum Rollout<A: Args> {
    Plan(Box<begin::Plan<A>>),
    Start(Box<begin::Start<A>>),
    Status(Status),
    Resume(Resume),
    Pause(Pause),
    Rollback(Rollback),
    List(List),
    Delete(Delete),
    Pin(pin::Pin),
    Unpin(pin::Unpin),
}

/// Where the rollout is, and how results are printed.
#[derive(Args)]
struct At {
    /// The namespace of the ConfigMaps that hold the state of rollouts
    #[arg(long, value_name = "NAMESPACE", default_value = "crossplane-system")]
    state_namespace: String,

    /// How the result is printed
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    output: Format,

    #[command(flatten)]
    control_plane: ControlPlaneArgs,
}

impl At {
    async fn open(&self) -> Result<Storage, Failure> {
        let cluster = self.control_plane.open().await?;
        Ok(Storage { cluster, namespace: self.state_namespace.clone() })
    }
}

/// Show how far a rollout is
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom rollout status apps
  transom rollout status apps -o json    with every composite resource")]
pub struct Status {
    /// The Composition
    composition: String,

    #[command(flatten)]
    at: At,
}

/// Continue a rollout that was interrupted, paused or stopped
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom rollout resume apps
  transom rollout resume apps --take-over    at once, although the command that worked on it did not end cleanly")]
pub struct Resume {
    /// The Composition
    composition: String,

    /// Take over at once, without waiting for the other command's hold to expire
    #[arg(long)]
    take_over: bool,

    /// How long each wave may take from now on; without it, what it was started with
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,

    #[command(flatten)]
    at: At,
}

/// Pause a rollout
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom rollout pause apps")]
pub struct Pause {
    /// The Composition
    composition: String,

    #[command(flatten)]
    at: At,
}

/// Restore the previous revisions of all composite resources that a rollout moved
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom rollout rollback apps
  transom rollout rollback apps --take-over    at once, although the command that worked on it did not end cleanly")]
pub struct Rollback {
    /// The Composition
    composition: String,

    /// Take over at once, without waiting for the other command's hold to expire
    #[arg(long)]
    take_over: bool,

    /// How long all may take to become ready again; without it, as long as a wave of the rollout
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,

    #[command(flatten)]
    at: At,
}

/// List the last rollout of each Composition
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom rollout list
  transom rollout list -o json")]
pub struct List {
    #[command(flatten)]
    at: At,
}

/// Forget a rollout: its composite resources stay as they are, and it cannot be continued or rolled back
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom rollout delete apps
  transom rollout delete apps --force    although it is not done")]
pub struct Delete {
    /// The Composition
    composition: String,

    /// Even if it is not finished
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    at: At,
}

/// Runs a command to its end. The exit code says how it ended, see [`Rollout`].
pub fn run<A: FunctionHostArgs>(command: Rollout<A>) -> Result<ExitCode, Failure> {
    block_on(dispatch(command))
}

async fn dispatch<A: FunctionHostArgs>(command: Rollout<A>) -> Result<ExitCode, Failure> {
    match command {
        Rollout::Plan(options) => Box::pin(begin::plan(*options)).await,
        Rollout::Start(options) => Box::pin(begin::start(*options)).await,
        Rollout::Status(options) => show(&options).await,
        Rollout::Resume(options) => Box::pin(resume(&options)).await,
        Rollout::Pause(options) => pause(&options).await,
        Rollout::Rollback(options) => Box::pin(roll_back(&options)).await,
        Rollout::List(options) => list(&options).await,
        Rollout::Delete(options) => delete(&options).await,
        Rollout::Pin(options) => pin::pin(&options).await,
        Rollout::Unpin(options) => pin::unpin(&options).await,
    }
}

async fn show(options: &Status) -> Result<ExitCode, Failure> {
    let storage = options.at.open().await?;
    let record = storage.get(&options.composition).await?.record;
    status::print(&storage.cluster, &record, options.at.output).await?;
    Ok(ExitCode::SUCCESS)
}

async fn take(storage: Storage, composition: &str, take_over: bool) -> Result<Held, Failure> {
    let waiting = |holder: &str| {
        anstream::eprintln!("the record is held by command {holder}: waiting whether that still works");
    };
    Held::take(storage, composition, take_over, waiting).await
}

async fn resume(options: &Resume) -> Result<ExitCode, Failure> {
    let storage = options.at.open().await?;
    let phase = storage.get(&options.composition).await?.record.phase;
    let mut held = take(storage, &options.composition, options.take_over).await?;
    let resumed = |record: &mut Record| {
        record.paused = false;
        record.timeout = options.timeout.unwrap_or(record.timeout);
        if record.phase == Phase::Stopped {
            (record.phase, record.problem) = (Phase::Progressing, None);
        }
    };
    if phase.is_final() {
        anstream::eprintln!("nothing is left to do: the rollout is {}", phase.name());
    }
    held.change(resumed).await?;
    carry_out(held, options.at.output).await
}

async fn pause(options: &Pause) -> Result<ExitCode, Failure> {
    let storage = options.at.open().await?;
    let phase = storage.get(&options.composition).await?.record.phase;
    if phase.is_final() {
        return Err(Failure::new(format!("the rollout of {:?} is {}", options.composition, phase.name()))
            .remedy("there is nothing to pause"));
    }
    let record = storage.change(&options.composition, |record| record.paused = true).await?;
    status::print(&storage.cluster, &record, options.at.output).await?;
    Ok(ExitCode::SUCCESS)
}

async fn roll_back(options: &Rollback) -> Result<ExitCode, Failure> {
    let storage = options.at.open().await?;
    storage.get(&options.composition).await?;
    let mut held = take(storage, &options.composition, options.take_over).await?;
    let back = |record: &mut Record| {
        record.paused = false;
        record.timeout = options.timeout.unwrap_or(record.timeout);
        if record.phase != Phase::RolledBack {
            (record.phase, record.problem) = (Phase::RollingBack, None);
        }
    };
    held.change(back).await?;
    carry_out(held, options.at.output).await
}

/// Works on a rollout, and prints how far it is then.
async fn carry_out(held: Held, output: Format) -> Result<ExitCode, Failure> {
    let cluster = held.cluster().clone();
    let (record, ending) = Box::pin(Drive::start(held, Progress::new())).await?.run().await?;
    if record.unpin && record.phase == Phase::Done {
        let released = pin::release(&cluster, &record.composition).await?;
        anstream::eprintln!("{} {} follow the newest revision again", released.count, released.kind);
    }
    status::print(&cluster, &record, output).await?;
    Ok(match (ending, record.phase, &record.problem) {
        (Ending::Decided, Phase::Done, _) | (Ending::Decided, Phase::RolledBack, None) => ExitCode::SUCCESS,
        _ => ExitCode::from(STOPPED),
    })
}

async fn list(options: &List) -> Result<ExitCode, Failure> {
    let records = options.at.open().await?.list().await?;
    let value = status::list(&records);
    transom_console::print(options.at.output.write(&value, status::list_text).as_bytes())
}

async fn delete(options: &Delete) -> Result<ExitCode, Failure> {
    let storage = options.at.open().await?;
    let stored = storage.get(&options.composition).await?;
    let phase = stored.record.phase;
    if !phase.is_final() && !options.force {
        return Err(Failure::new(format!("the rollout of {:?} is {}", options.composition, phase.name()))
            .remedy("`transom rollout rollback` undoes it; --force forgets what its composite resources had before"));
    }
    storage.delete(&stored).await?;
    let value = serde_json::json!({"composition": options.composition, "deleted": true});
    let text = |_: &serde_json::Value| format!("the rollout of {} is forgotten\n", options.composition);
    transom_console::print(options.at.output.write(&value, text).as_bytes())
}
