//! What a reconcile knows: the versions of objects that it read or wrote.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use transom_object::GroupVersionKind;

/// An object, whatever the version of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source(u64);

impl Source {
    pub fn new(kind: &GroupVersionKind, namespace: &str, name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (&kind.group, &kind.kind, namespace, name).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Word of a version of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    pub source: Source,
    pub version: u64,
    pub told: Told,
}

/// How word of an object came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It was watched.
    Watch,
    /// A list shows it: versions before this one may have gone unseen.
    List,
    /// A list of this version does not show it. Nobody who never saw it needs to know.
    Absence,
}

/// The versions of objects that a reconcile has read or written. Of a version that it read it knows all before, of
/// those that it wrote only themselves: between two of its writes others may have written what it never saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known(HashMap<Source, Versions>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Versions {
    read: u64,
    written: Vec<u64>,
}

impl Known {
    /// The reconcile decides on this version of the object, or on its absence at this version.
    pub fn read(&mut self, source: Source, version: u64) {
        let versions = self.0.entry(source).or_default();
        versions.read = versions.read.max(version);
        versions.written.retain(|w| *w > version);
    }

    pub fn wrote(&mut self, source: Source, version: u64) {
        let versions = self.0.entry(source).or_default();
        if version > versions.read && !versions.written.contains(&version) {
            versions.written.push(version);
        }
    }

    /// Whether this is no news. What was written counts only if nothing before it went unseen: it may hold what someone
    /// else wrote after the reconcile had read.
    pub fn includes(&self, news: News) -> bool {
        let Some(versions) = self.0.get(&news.source) else { return news.told == Told::Absence };
        let wrote = match news.told {
            Told::Watch => versions.written.contains(&news.version),
            Told::List => false,
            Told::Absence => versions.written.iter().any(|written| *written >= news.version),
        };
        news.version != 0 && (news.version <= versions.read || wrote)
    }
}

/// A resourceVersion as a number; those that are none are never known.
pub fn version(text: &str) -> u64 {
    text.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str) -> Source {
        Source::new(&GroupVersionKind::new("g", "v1", "K"), "", name)
    }

    fn event(name: &str, version: u64) -> News {
        News { source: source(name), version, told: Told::Watch }
    }

    fn listed(name: &str, version: u64) -> News {
        News { told: Told::List, ..event(name, version) }
    }

    #[test]
    fn what_was_read_includes_what_came_before_it() {
        let mut known = Known::default();
        known.read(source("a"), 7);
        assert!(
            known.includes(event("a", 7)) && known.includes(event("a", 6)) && known.includes(listed("a", 7))
        );
        assert!(!known.includes(event("a", 8)) && !known.includes(event("b", 7)));
    }

    #[test]
    fn what_was_written_includes_only_itself() {
        let mut known = Known::default();
        known.read(source("a"), 7);
        known.wrote(source("a"), 9);
        assert!(known.includes(event("a", 9)));
        assert!(!known.includes(event("a", 8)), "someone else wrote 8, and it was never read");
        assert!(!known.includes(listed("a", 9)), "a list does not tell of 8");
    }

    #[test]
    fn what_is_absent_is_news_to_those_who_saw_it() {
        let mut known = Known::default();
        known.read(source("read"), 7);
        known.wrote(source("written"), 9);
        let absent = |name, version| News { told: Told::Absence, ..event(name, version) };
        assert!(known.includes(absent("never seen", 8)));
        assert!(!known.includes(absent("read", 8)) && !known.includes(absent("written", 10)));
        assert!(
            known.includes(absent("read", 6)) && known.includes(absent("written", 8)),
            "it came after the list"
        );
        assert!(!known.includes(absent("read", 0)), "its kind is gone");
    }

    #[test]
    fn what_is_no_number_is_never_known() {
        let mut known = Known::default();
        known.read(source("a"), version("abc"));
        assert!(!known.includes(event("a", version("abc"))));
    }

    #[test]
    fn versions_of_a_kind_are_one_object() {
        let a = Source::new(&GroupVersionKind::new("g", "v1", "K"), "n", "a");
        let b = Source::new(&GroupVersionKind::new("g", "v2", "K"), "n", "a");
        assert_eq!(a, b);
    }
}
