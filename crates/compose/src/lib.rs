//! Decides what should exist: a composite resource, the composition chosen for it and what is observed become an
//! ordered [`Plan`].
//!
//! [`compose`] is the only composition engine: controllers execute its plans, `render` prints them. It reaches outside
//! through two traits it is handed, [`FunctionRunner`] to call functions and [`World`] to read, and changes nothing
//! itself. [`observe`] reads the composed resources that exist; [`Plan::conclude`] and [`Failure::conclude`] say what
//! the composite resource is told in the end.
//!
//! ```text
//! observe ──▶ compose ──▶ Plan ──▶ (execute) ──▶ Plan::conclude ──▶ Outcome::mark
//!                 └─────▶ Failure ─────────────▶ Failure::conclude ──┘
//! ```

mod allowed;
mod child_name;
mod composite;
mod condition;
mod desired;
mod distinct;
mod engine;
pub mod environment;
mod failure;
mod ignored;
mod inputs;
mod lookup;
mod objects;
mod observe;
pub mod openapi;
mod outcome;
mod pipeline;
mod plan;
mod requirements;
pub mod resources_mode;
mod runner;
mod simulate;
mod unwanted;
mod upgrade;
mod world;

pub use child_name::child_name;
pub use condition::{Event, EventType, Target, TargetedCondition};
pub use engine::compose;
pub use failure::{Cause, Failure};
pub use inputs::{Inputs, Observation, Observed, ObservedResource, Options, Required, Requirements, Spare};
pub use lookup::Lookup;
pub use objects::Objects;
pub use observe::{ObserveError, connection_details, observe};
pub use outcome::{Outcome, Unsynced, first_few};
pub use plan::{Application, Deletion, NamedBy, Plan, Reason, References};
pub use requirements::selector;
pub use runner::{FunctionRunner, RunError, StepRef};
pub use simulate::{Simulated, Simulation, SimulationError, problems, schema_for, simulate};
pub use transom_function::{RunFunctionRequest, RunFunctionResponse};
pub use transom_xapi::composite::Schema;
pub use upgrade::upgrade;
pub use world::{Kind, World, WorldError};
