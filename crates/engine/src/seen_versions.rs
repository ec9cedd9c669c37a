//! Which versions of objects a run has seen, and whether a change is one of them.
//!
//! `README.md` of this crate explains the rules with a timeline.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use transom_object::GroupVersionKind;

/// An object by the hash of its group, kind, namespace and name. The version of the kind does not matter: an object
/// read as `v1` and reported as `v2` is one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectHash(u64);

impl ObjectHash {
    /// The hash of an object.
    pub fn new(kind: &GroupVersionKind, namespace: &str, name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (&kind.group, &kind.kind, namespace, name).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// A watch or a list reports a version of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeNotice {
    /// The object.
    pub object: ObjectHash,
    /// Its version; of a deletion, the version of the deletion.
    pub version: u64,
    /// How the version was learned.
    pub via: Via,
}

/// How a version was learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// By an event of a watch.
    Watch,
    /// By a list that contains the object: versions before this one may have been missed.
    List,
    /// By a list of this version that does not contain the object. A run that never saw the object ignores it.
    Absence,
}

/// The versions of objects that a run has read or written.
///
/// Reading a version covers all versions before it. Writing a version covers that version alone: between two writes of
/// a run another client may have written a version that the run never read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenVersions(HashMap<ObjectHash, Versions>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Versions {
    read: u64,
    written: Vec<u64>,
}

impl SeenVersions {
    /// The run decides on this version of the object, or on its absence at this version.
    pub fn read(&mut self, object: ObjectHash, version: u64) {
        let versions = self.0.entry(object).or_default();
        versions.read = versions.read.max(version);
        versions.written.retain(|w| *w > version);
    }

    /// The run's own write produced this version.
    pub fn wrote(&mut self, object: ObjectHash, version: u64) {
        let versions = self.0.entry(object).or_default();
        if version > versions.read && !versions.written.contains(&version) {
            versions.written.push(version);
        }
    }

    /// Whether the change is an echo: the run has already seen it. A written version in a list does not count, because
    /// the list may hide another client's write between what the run read and what it wrote.
    pub fn includes(&self, notice: ChangeNotice) -> bool {
        let Some(versions) = self.0.get(&notice.object) else { return notice.via == Via::Absence };
        let wrote = match notice.via {
            Via::Watch => versions.written.contains(&notice.version),
            Via::List => false,
            Via::Absence => versions.written.iter().any(|written| *written >= notice.version),
        };
        notice.version != 0 && (notice.version <= versions.read || wrote)
    }
}

/// A resourceVersion as a number; 0, which is never seen, for a text that is not a number.
pub fn version(text: &str) -> u64 {
    text.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str) -> ObjectHash {
        ObjectHash::new(&GroupVersionKind::new("g", "v1", "K"), "", name)
    }

    fn event(name: &str, version: u64) -> ChangeNotice {
        ChangeNotice { object: object(name), version, via: Via::Watch }
    }

    fn listed(name: &str, version: u64) -> ChangeNotice {
        ChangeNotice { via: Via::List, ..event(name, version) }
    }

    #[test]
    fn a_read_version_includes_earlier_versions() {
        let mut seen = SeenVersions::default();
        seen.read(object("a"), 7);
        assert!(
            seen.includes(event("a", 7)) && seen.includes(event("a", 6)) && seen.includes(listed("a", 7))
        );
        assert!(!seen.includes(event("a", 8)) && !seen.includes(event("b", 7)));
    }

    #[test]
    fn a_written_version_includes_only_itself() {
        let mut seen = SeenVersions::default();
        seen.read(object("a"), 7);
        seen.wrote(object("a"), 9);
        assert!(seen.includes(event("a", 9)));
        assert!(!seen.includes(event("a", 8)), "another client wrote 8, and the run never read it");
        assert!(!seen.includes(listed("a", 9)), "a list does not report 8");
    }

    #[test]
    fn absence_from_a_list_concerns_only_runs_that_saw_the_object() {
        let mut seen = SeenVersions::default();
        seen.read(object("read"), 7);
        seen.wrote(object("written"), 9);
        let absent = |name, version| ChangeNotice { via: Via::Absence, ..event(name, version) };
        assert!(seen.includes(absent("never seen", 8)));
        assert!(!seen.includes(absent("read", 8)) && !seen.includes(absent("written", 10)));
        assert!(
            seen.includes(absent("read", 6)) && seen.includes(absent("written", 8)),
            "it was created after the list"
        );
        assert!(!seen.includes(absent("read", 0)), "its kind is no longer served");
    }

    #[test]
    fn a_version_that_is_not_a_number_is_never_seen() {
        let mut seen = SeenVersions::default();
        seen.read(object("a"), version("abc"));
        assert!(!seen.includes(event("a", version("abc"))));
    }

    #[test]
    fn an_object_is_the_same_in_all_versions_of_its_kind() {
        let a = ObjectHash::new(&GroupVersionKind::new("g", "v1", "K"), "n", "a");
        let b = ObjectHash::new(&GroupVersionKind::new("g", "v2", "K"), "n", "a");
        assert_eq!(a, b);
    }
}
