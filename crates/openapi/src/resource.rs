//! A resource as its documents describe it: what discovery lists, and the definition of a custom kind.

use serde_json::Value;
use transom_object::GroupVersionKind;

/// One version of one kind.
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The name in paths.
    pub plural: String,
    /// The kind of its objects.
    pub kind: String,
    /// The kind of lists of them.
    pub list_kind: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// As discovery lists them. A resource without `list` is answered on create and never stored.
    pub verbs: Vec<&'static str>,
    /// Whether a patch may be a strategic merge patch.
    pub strategic_merge: bool,
    /// Whether a delete is answered with the deleted object, not with a Status.
    pub returns_deleted_object: bool,
    /// The endpoints below an object.
    pub subresources: Vec<Subresource>,
    /// Custom kinds: this version in `spec.versions` of its definition; null if it is not there.
    pub definition: Option<Value>,
}

/// A part of an object with a path of its own.
pub struct Subresource {
    /// The name in paths.
    pub name: &'static str,
    /// As discovery lists them.
    pub verbs: &'static [&'static str],
    /// The kind of the bodies, where it differs from the kind of the object.
    pub own_kind: Option<GroupVersionKind>,
}

impl Resource {
    pub(crate) fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(&*self.group, &*self.version, &*self.kind)
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.definition.is_some()
    }

    /// Whether its objects are stored, so that they can be listed, read and changed.
    pub(crate) fn is_stored(&self) -> bool {
        self.verbs.contains(&"list")
    }
}

impl Subresource {
    /// The name of the schema of the bodies, where it differs from that of the object.
    pub(crate) fn schema(&self) -> Option<&'static str> {
        self.own_kind.as_ref().map(transom_kinds::type_of)
    }
}
