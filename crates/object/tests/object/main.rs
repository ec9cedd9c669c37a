//! The tests of this crate: our own tables and laws, and Kubernetes' tables where they are at hand.

mod fieldpath;
mod json;
mod kubernetes;
mod names_and_selectors;
mod yaml;
