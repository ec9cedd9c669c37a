//! Rendering: what a composition makes of a composite resource.

mod command;
mod composing;
mod defined;
mod fixtures;
mod golden;
mod mistakes;
mod served;
mod tables;
mod templates;
