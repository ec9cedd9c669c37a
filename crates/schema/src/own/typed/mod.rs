//! What can be done with values of a type: validate them, collect the fields they set, merge, compare,
//! remove or extract fields, and bring old field sets in line with a changed schema.
//!
//! Walkers recurse over values that were decoded with a depth limit, and over field sets read from such
//! values, so their depth is bounded as well.

mod absorb;
mod collect;
mod compare;
mod item;
mod merge;
mod reconcile;
mod remove;
mod validate;

pub use absorb::absorbs;
pub use collect::to_field_set;
pub use compare::{Comparison, compare};
pub use merge::merge;
pub use reconcile::reconcile_with_schema;
pub use remove::{extract_items, extract_items_with_keys, remove_items};
pub use validate::{Duplicates, validate};

use std::fmt;

/// What does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The path of the value.
    pub path: String,
    /// What does not fit.
    pub message: String,
}

/// All that does not fit its type, at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Misfits(pub Vec<Misfit>);

impl fmt::Display for Misfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => one.fmt(f),
            all => {
                f.write_str("errors:")?;
                all.iter().try_for_each(|m| write!(f, "\n  {m}"))
            }
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Collects misfits while a walk descends; paths are written on the way back up.
#[derive(Default)]
struct Misfitting(Vec<Misfit>);

impl Misfitting {
    fn add(&mut self, message: impl Into<String>) {
        self.0.push(Misfit { path: String::new(), message: message.into() });
    }

    /// Runs a walk below an element and puts the element in front of the misfits it finds.
    fn below<T>(&mut self, element: impl fmt::Display, walk: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.0.len();
        let out = walk(self);
        for misfit in &mut self.0[before..] {
            misfit.path.insert_str(0, &element.to_string());
        }
        out
    }

    fn finish<T>(self, value: T) -> Result<T, Misfits> {
        if self.0.is_empty() { Ok(value) } else { Err(Misfits(self.0)) }
    }
}

const NO_TYPE: &str = "schema error: invalid atom: inlined";
