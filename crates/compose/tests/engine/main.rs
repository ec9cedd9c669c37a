//! The decisions of one reconcile without any server: a script answers for the functions, a map is the world, and the tests look
//! at the plans.

mod composed_by;
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
mod shared;
mod tables;
mod unwanted;
mod watching;
