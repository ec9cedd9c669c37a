//! Commands that concern a whole control plane which another program controls or which is on another server: `adopt`, `export`
//! and `import`.
//!
//! What is moved, and in which order, is decided in `transom_migrate`; here are the flags, and what is printed.

mod adopt;
mod transfer;

pub(crate) use adopt::{Adopt, adopt};
pub(crate) use transfer::{Export, Import, export, import};
