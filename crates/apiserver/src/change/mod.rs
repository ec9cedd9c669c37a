//! How an update makes the new object from the live one: a body that replaces it, a patch, an apply, a Scale.
//!
//! Pure: given the live object, a change returns the new one or a refusal. `write::update` runs it, and runs it again
//! when another write came first, so it must return the same result for the same live object. It does not use
//! the store, admission or HTTP.

mod patch;
mod scale;

pub(crate) use patch::{ApplyPatch, Form, Patch, check_config};
pub(crate) use scale::{ScaleBody, WriteScale, lacks_count};

use serde_json::Value;
use transom_object::Status;

/// The live object an update starts from.
pub(crate) struct Existing<'a> {
    /// As the request's version serves it; `None` when there is no such object.
    pub(crate) value: Option<&'a Value>,
    pub(crate) now: &'a str,
}

pub(crate) trait Change: Send {
    /// The new object in served form.
    fn apply(&mut self, existing: &Existing<'_>) -> Result<Value, Status>;
}

/// The body of a PUT.
pub(crate) struct Replace(pub(crate) Value);

impl Change for Replace {
    fn apply(&mut self, _existing: &Existing<'_>) -> Result<Value, Status> {
        Ok(self.0.clone())
    }
}

/// A change that the server makes on its own.
pub(crate) struct Edit<F>(pub(crate) F);

impl<F: FnMut(&Existing<'_>) -> Result<Value, Status> + Send> Change for Edit<F> {
    fn apply(&mut self, existing: &Existing<'_>) -> Result<Value, Status> {
        (self.0)(existing)
    }
}
