//! Which keys a change of an object requeues.

use super::*;
use crate::Seen;
use serde_json::Value;
use std::sync::Arc;

fn gvk() -> GroupVersionKind {
    GroupVersionKind::new("", "v1", "ConfigMap")
}

fn xr(name: &str) -> Key {
    Key::new("", name)
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn seen(namespace: &str, name: &str, with: &[(&str, &str)]) -> Seen {
    Seen {
        key: Key::new(namespace, name),
        uid: "u".into(),
        version: 1,
        labels: labels(with),
        deleting: false,
        object: Arc::new(Value::Null),
    }
}

fn named(namespace: &str, name: &str) -> Dependency {
    Dependency::Named { gvk: gvk(), namespace: namespace.to_owned(), name: name.to_owned() }
}

fn selected(namespace: Option<&str>, with: &[(&str, &str)]) -> Dependency {
    Dependency::Selected { gvk: gvk(), namespace: namespace.map(str::to_owned), labels: labels(with) }
}

fn affected(dependencies: &Dependencies, before: Option<&Seen>, after: Option<&Seen>) -> Vec<String> {
    let kind = gvk();
    let keys = dependencies.affected(&Change { gvk: &kind, before, after, version: 1, gap: false });
    keys.iter().map(|k| k.name.to_string()).collect()
}

#[test]
fn names_match_in_their_namespace_only() {
    let dependencies = Dependencies::default();
    dependencies.add(&xr("a"), named("n", "cm"));
    assert_eq!(affected(&dependencies, None, Some(&seen("n", "cm", &[]))), ["a"]);
    assert!(affected(&dependencies, None, Some(&seen("m", "cm", &[]))).is_empty());
}

#[test]
fn labels_match_as_they_are_and_as_they_were() {
    let dependencies = Dependencies::default();
    dependencies.add(&xr("one"), selected(Some("n"), &[("a", "b")]));
    dependencies.add(&xr("all"), selected(None, &[("a", "b")]));
    dependencies.add(&xr("every"), selected(None, &[]));
    let (with, without) = (seen("n", "cm", &[("a", "b")]), seen("n", "cm", &[]));
    assert_eq!(affected(&dependencies, Some(&with), Some(&without)), ["all", "every", "one"]);
    assert_eq!(affected(&dependencies, Some(&without), Some(&without)), ["every"]);
    assert_eq!(affected(&dependencies, None, Some(&seen("m", "x", &[("a", "b")]))), ["all", "every"]);
}

#[test]
fn a_key_that_matches_twice_is_woken_once() {
    let dependencies = Dependencies::default();
    dependencies.add(&xr("a"), named("n", "cm"));
    dependencies.add(&xr("a"), selected(None, &[]));
    assert_eq!(affected(&dependencies, None, Some(&seen("n", "cm", &[]))), ["a"]);
}

#[test]
fn replacing_forgets_and_the_last_reference_drops_the_kind() {
    let dependencies = Dependencies::default();
    dependencies.add(&xr("a"), named("n", "cm"));
    dependencies.add(&xr("b"), selected(None, &[("a", "b")]));
    dependencies.replace(&xr("a"), &[named("n", "other")].into());
    assert!(affected(&dependencies, None, Some(&seen("n", "cm", &[]))).is_empty());
    assert_eq!(affected(&dependencies, None, Some(&seen("n", "other", &[]))), ["a"]);
    assert_eq!(dependencies.kinds(), [gvk()]);
    dependencies.forget(&xr("a"));
    assert_eq!(dependencies.kinds(), [gvk()]);
    dependencies.forget(&xr("b"));
    assert!(dependencies.kinds().is_empty());
    let state = dependencies.lock();
    assert!(state.of.is_empty() && state.named.is_empty() && state.selected.is_empty());
}
