//! Upstream's tables, where they are to be found, and our own.

mod own;
mod tables;
