//! The path of a walk through a value, kept on the stack and written out only when a message needs it.

use std::fmt;
use transom_object::field::Path;

/// One step of a walk, linked to the steps before it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trail<'a> {
    Root,
    Property(&'a Trail<'a>, &'a str),
    /// A map entry. Its path differs from a property's at the root only, where it starts with a dot.
    Entry(&'a Trail<'a>, &'a str),
    /// A map entry written in brackets, as field errors outside value validation write it.
    Key(&'a Trail<'a>, &'a str),
    Index(&'a Trail<'a>, usize),
}

impl<'a> Trail<'a> {
    pub(crate) fn property(&'a self, name: &'a str) -> Self {
        Trail::Property(self, name)
    }

    pub(crate) fn entry(&'a self, key: &'a str) -> Self {
        Trail::Entry(self, key)
    }

    pub(crate) fn key(&'a self, key: &'a str) -> Self {
        Trail::Key(self, key)
    }

    pub(crate) fn index(&'a self, index: usize) -> Self {
        Trail::Index(self, index)
    }

    /// The path of a field error here, when the walk began at `base`.
    pub(crate) fn path(&self, base: &Path) -> Path {
        match self {
            Trail::Root => base.clone(),
            Trail::Property(parent, name) | Trail::Entry(parent, name) => parent.path(base).child(name),
            Trail::Key(parent, key) => parent.path(base).key(key),
            Trail::Index(parent, index) => parent.path(base).index(*index),
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        matches!(self, Trail::Root)
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trail::Root => Ok(()),
            Trail::Property(Trail::Root, name) => f.write_str(name),
            Trail::Property(parent, name) | Trail::Entry(parent, name) => write!(f, "{parent}.{name}"),
            Trail::Key(parent, key) => write!(f, "{parent}[{key}]"),
            Trail::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
