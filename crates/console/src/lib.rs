//! What commands share at the terminal: how they fail, how results are printed, how progress and log lines are shown, and
//! which control plane they work with.
//!
//! | module | what it holds |
//! |---|---|
//! | `failure` | [`Failure`]: what is wrong, where, and what to do about it; printed to stderr |
//! | `format` | [`Format`]: a result for people, or as JSON or YAML; [`print`], to stdout; [`print_to_stderr`], everything else, to stderr |
//! | `progress` | [`Progress`]: a line of the terminal that is written again and again |
//! | `logging` | [`LogArgs`]: log lines on stderr |
//! | `signals` | [`Signals`] that stop a command |
//! | `runtime` | [`block_on`]: runs a command that waits for the network |
//! | `duration` | [`duration`]: a flag's value as Go writes durations |
//! | [`control_plane`] | the flags for a kubeconfig, and what errors of its server mean to the user |
//!
//! Results go to stdout, all else to stderr. This crate must not know any command, and decides nothing about objects.

#![warn(missing_docs)]

pub mod control_plane;
mod duration;
mod failure;
mod format;
mod logging;
mod progress;
mod runtime;
mod signals;

pub use duration::{DurationError, duration};
pub use failure::{Failure, SourceLocation};
pub use format::{Format, print, print_to_stderr, table};
pub use logging::{LogArgs, LogFormat, init_verbose};
pub use progress::Progress;
pub use runtime::block_on;
pub use signals::Signals;
