//! An index of objects by their labels.

use super::queue::Key;
use super::sighting::Seen;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The keys of the objects that have a label. Within a label they are ordered by namespace.
#[derive(Debug, Default)]
pub(super) struct Index(HashMap<(String, String), BTreeSet<Key>>);

impl Index {
    pub(super) fn of(objects: &BTreeMap<Key, Arc<Seen>>) -> Self {
        let mut index = Self::default();
        objects.values().for_each(|seen| index.add(seen));
        index
    }

    pub(super) fn add(&mut self, seen: &Seen) {
        for (label, value) in &seen.labels {
            self.0.entry((label.clone(), value.clone())).or_default().insert(seen.key.clone());
        }
    }

    pub(super) fn remove(&mut self, seen: &Seen) {
        for (label, value) in &seen.labels {
            let entry = (label.clone(), value.clone());
            if let Some(keys) = self.0.get_mut(&entry) {
                keys.remove(&seen.key);
                if keys.is_empty() {
                    self.0.remove(&entry);
                }
            }
        }
    }

    /// All objects that can have these labels: those with the rarest of them. `None` without labels.
    pub(super) fn candidates(&self, labels: &BTreeMap<String, String>) -> Option<&BTreeSet<Key>> {
        static NONE: BTreeSet<Key> = BTreeSet::new();
        let keys = |(k, v): (&String, &String)| self.0.get(&(k.clone(), v.clone())).unwrap_or(&NONE);
        labels.iter().map(keys).min_by_key(|keys| keys.len())
    }
}

/// The keys in one namespace, or all.
pub(super) fn within<'a>(
    keys: &'a BTreeSet<Key>,
    namespace: Option<&'a str>,
) -> Box<dyn Iterator<Item = &'a Key> + 'a> {
    match namespace {
        None => Box::new(keys.iter()),
        Some(namespace) => {
            Box::new(keys.range(Key::new(namespace, "")..).take_while(move |k| &*k.namespace == namespace))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn seen(namespace: &str, name: &str, labels: &[(&str, &str)]) -> Seen {
        Seen {
            key: Key::new(namespace, name),
            uid: "u".into(),
            version: 1,
            labels: labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            deleting: false,
            object: Arc::new(Value::Null),
        }
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn the_rarest_label_is_looked_through() {
        let mut index = Index::default();
        for i in 0..1000 {
            index.add(&seen("n", &format!("common-{i}"), &[("team", "a")]));
        }
        let rare = seen("n", "rare", &[("team", "a"), ("app", "b")]);
        index.add(&rare);
        let found = |wanted: &[(&str, &str)]| index.candidates(&labels(wanted)).map(BTreeSet::len);
        assert_eq!(found(&[("team", "a"), ("app", "b")]), Some(1));
        assert_eq!(found(&[("team", "a")]), Some(1001));
        assert_eq!(found(&[("team", "a"), ("app", "c")]), Some(0));
        assert_eq!(found(&[]), None);
        index.remove(&rare);
        assert_eq!(index.candidates(&labels(&[("app", "b")])).map(BTreeSet::len), Some(0));
        assert_eq!(index.0.len(), 1, "labels that no object has are removed");
    }

    #[test]
    fn namespaces_are_ranges() {
        let keys: BTreeSet<Key> = ["a/x", "b/x", "b/y", "ba/z"]
            .map(|k| k.split_once('/').map(|(n, k)| Key::new(n, k)).unwrap())
            .into();
        let names = |namespace| within(&keys, namespace).map(Key::to_string).collect::<Vec<_>>();
        assert_eq!(names(Some("b")), ["b/x", "b/y"]);
        assert_eq!(names(Some("c")), Vec::<String>::new());
        assert_eq!(names(None).len(), 4);
    }
}
