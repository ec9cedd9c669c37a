//! The sequence of decisions, without any server: a scripted runner answers, a map is the world.

mod laws;
mod observing;
mod outcomes;
mod pipeline;
mod refusing;
mod remembered;
mod requirements;
mod resources;
mod script;
mod simulating;
mod tables;
mod unwanted;
