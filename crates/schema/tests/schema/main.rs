//! The tests of this crate: our own tables and laws, and upstream's tables where they are at hand.

mod own_apply;
mod own_laws;
mod own_tables;
mod own_typed;
mod patch;
mod rules;
mod structural;
