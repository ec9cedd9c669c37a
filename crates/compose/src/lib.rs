//! Decides everything about one reconcile of a composite resource: which Composition it uses, what should exist, what is
//! deleted, kept and watched, its final status, and when it is reconciled again.
//!
//! [`Reconcile`] is the whole, as a state machine: it returns [`Plan`]s, which the caller executes, and decides from their
//! [`Outcome`]s what comes next. Controllers execute plans against an API server; [`offline`] keeps what would have been
//! written, which is what `render` prints. [`compose`] is the part in the middle: a pipeline is run, and its desired
//! state becomes a [`Decision`].
//!
//! The crate does no I/O. It calls functions through [`FunctionRunner`], reads through [`World`] and [`Catalog`], and is
//! given the time and random numbers. It knows nothing of watches, queues and clients.
//!
//! ```text
//!           Catalog        World      FunctionRunner
//!              │             │              │
//! start ──▶ prepare ──▶ observe ──▶ compose ┴─▶ Decision ──▶ Plan ──▶ (execute) ──▶ Outcomes ──▶ conclude ──▶ Plan …
//!                                        └────▶ Failure ────────────────────────────────────▶ fail ─────────▶ Plan …
//! ```

#![warn(missing_docs)]

mod allowed;
mod catalog;
mod child_name;
mod composite;
mod condition;
mod decision;
mod desired;
mod distinct;
mod engine;
pub mod environment;
mod failure;
mod ignored;
mod inputs;
mod json_equality;
mod lookup;
mod nesting;
mod objects;
mod observe;
pub mod offline;
pub mod openapi;
mod pipeline;
mod plan;
mod reads;
mod reconcile;
mod references;
mod report;
mod requeue;
mod requirements;
pub mod resources_mode;
mod runner;
mod selecting;
mod status;
mod undeclared;
mod unwanted;
mod upgrade;
mod world;

pub use catalog::Catalog;
pub use child_name::child_name;
pub use condition::{Event, EventType, Target, TargetedCondition};
pub use decision::{Application, Decision, Deletion, NamedBy, Reason, References};
pub use engine::compose;
pub use failure::{Cause, Failure};
pub use inputs::{Inputs, Observation, Observed, ObservedResource, Options, Required, Requirements, Spare};
pub use lookup::Lookup;
pub use nesting::Nesting;
pub use objects::Objects;
pub use observe::{ObserveError, connection_details, observe};
pub use plan::{Outcome, Plan, Refusal, RefusalKind, Step};
pub use reconcile::{
    Composed, ComposedBy, FrequentChange, Interim, Mode, Moment, Reconcile, Setup, SlowCall, Todo,
};
pub use references::PersistReferences;
pub use report::{Report, Unsynced, first_few};
pub use requeue::{Next, Polling};
pub use requirements::selector;
pub use runner::{Answer, FunctionRunner, GrpcCode, RunError, StepRef};
pub use selecting::Selection;
pub use transom_function::{RunFunctionRequest, RunFunctionResponse};
pub use transom_xapi::composite::Layout;
pub use transom_xapi::function::{RevisionTraits, WantedRevision};
pub use upgrade::upgrade;
pub use world::{ClientError, ForbiddenRead, World, WorldError, kind};
