//! The edge cases that Crossplane's unit tests name, on the real binary: each test begins with the numbers of its cases
//! in `crates/controllers/tests/scenarios.txt`.

mod calling;
mod claims;
mod composing;
mod composites;
mod composites_again;
mod composites_told;
mod definitions;
mod functions;
mod resources;
mod revisions;
mod schemas;
mod selection;
mod selection_details;
mod waking;
mod wishes;
