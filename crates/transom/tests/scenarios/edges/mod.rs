//! The edge cases that Crossplane's unit tests name, on the real binary: each test begins with the numbers of its cases
//! in `crates/controllers/tests/scenarios.txt`.

mod calling;
mod claims;
mod composing;
mod composites;
mod connection_details;
mod custom_conditions;
mod definitions;
mod functions;
mod requeue;
mod resources;
mod revisions;
mod schemas;
mod scripted_function;
mod selection;
mod watch_events;
