//! Moves a control plane from one API server to another, and checks one before its controllers change.
//!
//! | module | what it holds |
//! |---|---|
//! | `rehearsal` | a client whose writes are dry runs, and what they would have changed: controllers run on it unchanged |
//! | `unsupported` | objects of Crossplane that Transom does nothing for |
//! | `export` | everything of a control plane, in the order in which it can be made again |
//! | `import` | makes it, paused, with the identities of the new server; can be repeated |
//!
//! It must not know where files are, nor print.

#![warn(missing_docs)]

mod export;
mod import;
mod rehearsal;
mod report;
mod unsupported;

pub use export::export;
pub use import::{Imported, import, release, verify};
pub use rehearsal::{Rehearsal, Write};
pub use report::{as_json, as_text};
pub use unsupported::{Unsupported, unsupported};
