//! A field of an object, as text for people and as a JSON pointer for its position in a file.

use std::fmt;
use transom_object::field::Path;

/// A field of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    path: Path,
    pointer: String,
}

impl Field {
    /// The object itself.
    pub(super) fn root() -> Self {
        Self::default()
    }

    /// A field of what this one holds.
    pub(super) fn child(&self, name: &str) -> Self {
        let token = name.replace('~', "~0").replace('/', "~1");
        Self { path: self.path.child(name), pointer: format!("{}/{token}", self.pointer) }
    }

    /// An item of the list that this one holds.
    pub(super) fn item(&self, index: usize) -> Self {
        Self { path: self.path.index(index), pointer: format!("{}/{index}", self.pointer) }
    }

    /// Several fields down at once.
    pub(super) fn down(&self, names: &[&str]) -> Self {
        names.iter().fold(self.clone(), |field, name| field.child(name))
    }

    /// The field as a JSON pointer; empty for the object itself.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path.as_str())
    }
}
