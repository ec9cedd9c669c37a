//! Decisions about packages through the public interface of the crate: properties that hold for whatever is generated, and
//! upstream's tables.

mod graphs;
mod references;
mod revisions;
mod solver;
mod streams;
mod tables;
