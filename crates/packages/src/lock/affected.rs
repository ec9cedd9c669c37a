//! Which revisions a change of the Lock concerns. There is one Lock for all packages: without this, each of them would be
//! looked at again whenever one of them changes.

use super::LockPackage;
use super::graph::Mirrors;
use std::collections::{BTreeMap, BTreeSet};

/// The names of the entries that may be resolved differently after the Lock changed: those that changed, those of the same
/// source, and all that depend on one of them, directly or not.
pub fn affected<'l>(
    before: &[LockPackage],
    after: &'l [LockPackage],
    mirrors: &Mirrors,
) -> BTreeSet<&'l str> {
    let place = |source: &'l str| mirrors.get(source).map_or(source, String::as_str).to_owned();
    let mut at: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut parents: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (i, package) in after.iter().enumerate() {
        at.entry(place(&package.source)).or_default().push(i);
        for dependency in &package.dependencies {
            parents.entry(place(&dependency.package)).or_default().push(i);
        }
    }
    let mut places: Vec<String> = changed(before, after)
        .map(|package| mirrors.get(&package.source).unwrap_or(&package.source).clone())
        .collect();
    let mut found = BTreeSet::new();
    let mut seen: BTreeSet<String> = places.iter().cloned().collect();
    while let Some(here) = places.pop() {
        let same = at.get(&here).into_iter().flatten();
        for &entry in same.chain(parents.get(&here).into_iter().flatten()) {
            found.insert(after[entry].name.as_str());
            let next = place(&after[entry].source);
            if seen.insert(next.clone()) {
                places.push(next);
            }
        }
    }
    found
}

/// The entries that are in one list and not in the other.
fn changed<'a>(before: &'a [LockPackage], after: &'a [LockPackage]) -> impl Iterator<Item = &'a LockPackage> {
    let by_name = |packages: &'a [LockPackage]| {
        let mut by_name: BTreeMap<&str, Vec<&LockPackage>> = BTreeMap::new();
        packages.iter().for_each(|package| by_name.entry(&package.name).or_default().push(package));
        by_name
    };
    let (was, is) = (by_name(before), by_name(after));
    let gone = before.iter().filter({
        let (was, is) = (was.clone(), is.clone());
        move |package| was.get(package.name.as_str()) != is.get(package.name.as_str())
    });
    let new =
        after.iter().filter(move |package| was.get(package.name.as_str()) != is.get(package.name.as_str()));
    gone.chain(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::LockDependency;
    use crate::lock::graph::Graph;
    use crate::lock::resolve::resolve_revision;

    /// `a@v1>b,c` is an entry `a` of source `r.io/a` in version v1 that depends on `r.io/b` and `r.io/c`.
    fn lock(text: &str) -> Vec<LockPackage> {
        let entries = text.split(' ').filter(|entry| !entry.is_empty()).map(|entry| {
            let (head, dependencies) = entry.split_once('>').unwrap_or((entry, ""));
            let (name, version) = head.split_once('@').unwrap_or((head, "v1.0.0"));
            let source = format!("r.io/{}", name.split('#').next().unwrap_or_default());
            let dependency = |to: &str| LockDependency {
                package: format!("r.io/{to}"),
                constraints: "v1.0.0".to_owned(),
                ..LockDependency::default()
            };
            let dependencies = dependencies.split(',').filter(|d| !d.is_empty()).map(dependency).collect();
            LockPackage {
                name: name.to_owned(),
                source,
                version: version.to_owned(),
                dependencies,
                ..LockPackage::default()
            }
        });
        entries.collect()
    }

    #[test]
    fn others_are_left_alone() {
        let table = [
            ("a>b b c", "a>b b c", ""),
            ("a>b c", "a>b c b", "a b"),
            ("a>b b c", "a>b c", "a"),
            ("a>b b>d d c e>c", "a>b b>d d@v2.0.0 c e>c", "a b d"),
            ("a c", "a a#2 c", "a a#2"),
            ("a a#2 c", "a c", "a"),
            ("a>b c", "a>b b>a c", "a b"),
            ("", "a b", "a b"),
        ];
        for (before, after, expected) in table {
            let (before, after) = (lock(before), lock(after));
            let found: Vec<&str> = affected(&before, &after, &Mirrors::new()).into_iter().collect();
            assert_eq!(found.join(" "), expected);
        }
        let mirrors = Mirrors::from([("r.io/b".to_owned(), "m.io/b".to_owned())]);
        let mut after = lock("a>b c x");
        after[2].source = "m.io/b".to_owned();
        let before = lock("a>b c");
        assert_eq!(affected(&before, &after, &mirrors).into_iter().collect::<Vec<_>>(), ["a", "x"]);
    }

    /// Every entry that is resolved differently is affected, for every change.
    #[test]
    fn every_entry_that_is_resolved_differently_is_affected() {
        let texts = ["a>b", "b>c", "c", "c@v2.0.0", "c#2", "d>a", "b", "e>e", "c>a"];
        let all: Vec<Vec<LockPackage>> = (0_u32..1 << texts.len())
            .step_by(3)
            .map(|set| {
                let chosen = texts.iter().enumerate().filter(|(i, _)| set & (1 << i) != 0);
                lock(&chosen.map(|(_, text)| *text).collect::<Vec<_>>().join(" "))
            })
            .collect();
        let none = Mirrors::new();
        for (i, before) in all.iter().enumerate() {
            for after in all.iter().skip(i % 7).step_by(7) {
                let (was, is) = (Graph::new(before, &none), Graph::new(after, &none));
                let affected = affected(before, after, &none);
                for package in after {
                    let same = resolve_revision(&was, &package.name) == resolve_revision(&is, &package.name);
                    assert!(same || affected.contains(package.name.as_str()), "{before:?} {after:?}");
                }
            }
        }
    }
}
