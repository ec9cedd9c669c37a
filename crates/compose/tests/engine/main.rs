//! The sequence of decisions, without any server: a scripted runner answers, a map is the world.

mod laws;
mod observing;
mod offline;
mod outcomes;
mod pipeline;
mod reconciling;
mod refusing;
mod remembered;
mod requirements;
mod resources;
mod script;
mod tables;
mod unwanted;
