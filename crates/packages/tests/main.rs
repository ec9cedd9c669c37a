//! Tests of the crate through its public interface: properties that hold for whatever is generated.

mod graphs;
mod references;
mod revisions;
mod solver;
mod streams;
mod tables;
