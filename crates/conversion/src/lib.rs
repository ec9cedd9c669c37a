//! Declarative conversion between the versions of a kind: fields that moved, and CEL expressions for what changed its
//! form. Knows nothing of XRDs, of CRDs and of who asks: rules and schemas come in, objects come out. Pure.
//!
//! | module | what it holds |
//! |---|---|
//! | `rules` | the rules as they are written, and what is wrong with them |
//! | `path` | paths of fields, read, written and moved |
//! | `compile` | rules bound to the schemas of their versions: [`Converter`] |
//! | `convert` | one step from a version to its neighbour |
//! | `kept` | fields that the other version does not have: they travel with the object |
//! | `restore` | how they come back, and which do not |
//! | `check` | round trips of generated objects: what would be lost, and what the other version would refuse |
//! | `generate`, `texts` | valid objects of a schema, the same at every run |
//!
//! One step does this, in this order:
//!
//! 1. defaults of the version that the object is in
//! 2. kept fields of the other version come back
//! 3. fields move
//! 4. fields that the other version does not have are taken out, and kept
//! 5. expressions are evaluated on the object before the step, and their values are written
//!
//! Versions are a tree whose edges are rules, so there is one way between any two, and a field that is kept for a
//! version comes back by the way that it left.

#![warn(missing_docs)]

mod check;
mod compile;
mod convert;
mod generate;
mod kept;
mod path;
mod restore;
mod rules;
mod texts;

pub use check::Finding;
pub use compile::{Converter, VersionSchema};
pub use convert::ConversionError;
pub use kept::{ANNOTATION, STATUS_FIELD};
pub use path::{FieldPath, PathError};
pub use rules::{Expression, Move, Problem, Rule, RuleError, Rules};
