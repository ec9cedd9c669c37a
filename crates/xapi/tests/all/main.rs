//! Crossplane's kinds, held against recordings of Crossplane, laws, and an API server that serves them.

mod conformance;
mod crds;
mod hashes;
mod laws;
mod served;
