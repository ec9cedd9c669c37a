//! Crossplane's kinds as Rust types, and the CRDs derived from an XRD.
//!
//! Pure: no I/O, no clock, no randomness. Names, schemas and constants here are wire-visible and match Crossplane to
//! the letter.
