//! `transom render` as a command: what a Composition makes of a composite resource, what mistakes look like, and recorded renders
//! of Crossplane.

mod command;
mod composing;
mod defined;
mod fixtures;
mod golden;
mod mistakes;
mod served;
mod tables;
mod templates;
