//! The three kinds of patch that the API accepts, applied to values.
//!
//! | kind | function | reads the schema |
//! |---|---|---|
//! | RFC 6902 JSON patch | [`json_patch`] | no |
//! | RFC 7386 merge patch | [`merge_patch`] | no |
//! | strategic merge patch, for built-in kinds | [`strategic_merge_patch`] | merge keys and strategies |
//!
//! All are pure: they take the current value and the patch and give the patched value. [`three_way`] goes the
//! other way and computes the merge patch by which a client brings its changes to a live object.

mod json;
mod merge;
mod strategic;

pub use json::{MAX_COPIED_BYTES, MAX_OPERATIONS, json_patch};
pub use merge::{merge_patch, three_way};
pub use strategic::{go_text, strategic_merge_patch};

/// Why a patch cannot be applied, by the kind of answer it deserves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself is invalid, for every object (400).
    #[error("{0}")]
    Malformed(String),
    /// The patch exceeds a limit (413).
    #[error("{0}")]
    TooLarge(String),
    /// The patch does not fit the object (422).
    #[error("{0}")]
    Inapplicable(String),
}
