//! The tests of this crate: upstream's tables, recorded answers of Go, and hostile templates.

mod conformance;
mod hostile;
mod recorded;
