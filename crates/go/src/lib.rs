//! Go's semantics, each written once: what Kubernetes, Crossplane and templates inherit from Go's standard library and a
//! few of its packages. It knows nothing of Kubernetes or of templates. No I/O, no clock, no randomness.
//!
//! | module | what it is |
//! |---|---|
//! | [`regexp`] | regular expressions (RE2's syntax), on the `regex` crate |

pub mod regexp;
