//! The graph of the Lock's entries and their dependencies.
//!
//! Mistakes are local: two entries of one source block each other and no other entries, and so do the entries of a cycle.
//! Every query takes time that is linear in the number of entries that it visits.

use super::{LockDependency, LockPackage};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Sources, and what ImageConfigs rewrite them to. Two sources that lead to the same place are the same package.
pub type Mirrors = BTreeMap<String, String>;

/// The entries of the Lock, indexed.
pub struct Graph<'l> {
    packages: &'l [LockPackage],
    mirrors: &'l Mirrors,
    by_source: BTreeMap<&'l str, Vec<usize>>,
    by_place: BTreeMap<&'l str, Vec<usize>>,
    /// Which cycle an entry is part of, by the number of the cycle.
    cycles: Vec<Option<usize>>,
}

impl<'l> Graph<'l> {
    /// Indexes the entries.
    pub fn new(packages: &'l [LockPackage], mirrors: &'l Mirrors) -> Self {
        let mut graph = Self {
            packages,
            mirrors,
            by_source: BTreeMap::new(),
            by_place: BTreeMap::new(),
            cycles: Vec::new(),
        };
        for (i, package) in packages.iter().enumerate() {
            graph.by_source.entry(&package.source).or_default().push(i);
            graph.by_place.entry(pulled_from(mirrors, &package.source)).or_default().push(i);
        }
        graph.cycles = Components::of(&graph).cycles;
        graph
    }

    /// All entries.
    pub fn packages(&self) -> &'l [LockPackage] {
        self.packages
    }

    /// The place of an entry in [`Graph::packages`].
    pub fn find(&self, revision: &str) -> Option<usize> {
        self.packages.iter().position(|package| package.name == revision)
    }

    /// The entries that a source leads to: those of the very source, else those that are pulled from the same place.
    pub fn matching(&self, source: &str) -> &[usize] {
        let exact = self.by_source.get(source);
        exact.or_else(|| self.by_place.get(pulled_from(self.mirrors, source))).map_or(&[], Vec::as_slice)
    }

    /// The names of the other entries of an entry's source.
    pub fn duplicates(&self, of: usize) -> Vec<&'l str> {
        let same = self.by_source.get(self.packages[of].source.as_str()).map_or(&[][..], Vec::as_slice);
        same.iter().filter(|&&i| i != of).map(|&i| self.packages[i].name.as_str()).collect()
    }

    /// Whether an entry can have no effect before the user changes something: its source is there twice, or it depends
    /// on itself.
    pub fn is_blocked(&self, entry: usize) -> bool {
        self.cycles[entry].is_some() || !self.duplicates(entry).is_empty()
    }

    /// The shortest way from an entry back to itself, as sources; `None` when there is none.
    pub fn cycle(&self, entry: usize) -> Option<Vec<&'l str>> {
        let cycle = self.cycles[entry]?;
        let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
        let mut queue = VecDeque::from([entry]);
        while let Some(here) = queue.pop_front() {
            for next in self.next(here).filter(|&next| self.cycles[next] == Some(cycle)) {
                if next == entry {
                    return Some(self.way(entry, here, &came_from));
                }
                if let std::collections::btree_map::Entry::Vacant(vacant) = came_from.entry(next) {
                    vacant.insert(here);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    fn way(&self, entry: usize, last: usize, came_from: &BTreeMap<usize, usize>) -> Vec<&'l str> {
        let mut way = vec![self.packages[entry].source.as_str()];
        let mut here = last;
        while here != entry {
            way.push(&self.packages[here].source);
            here = came_from.get(&here).copied().unwrap_or(entry);
        }
        way.push(&self.packages[entry].source);
        way.reverse();
        way
    }

    /// Everything that an entry depends on, directly or not.
    pub fn closure(&self, entry: usize) -> Closure<'l> {
        let mut closure = Closure::default();
        let mut seen_entries = BTreeSet::from([entry]);
        let mut queue = VecDeque::from([entry]);
        while let Some(here) = queue.pop_front() {
            for dependency in &self.packages[here].dependencies {
                if !closure.sources.insert(&dependency.package) {
                    continue;
                }
                let found = self.matching(&dependency.package);
                if found.is_empty() {
                    closure.missing.push(dependency);
                }
                queue.extend(found.iter().copied().filter(|&i| seen_entries.insert(i)));
            }
        }
        closure
    }

    /// The entries that an entry depends on directly.
    fn next(&self, entry: usize) -> impl Iterator<Item = usize> {
        let dependencies = self.packages[entry].dependencies.iter();
        dependencies.flat_map(|dependency| self.matching(&dependency.package).iter().copied())
    }
}

/// Where a source is pulled from.
pub(crate) fn pulled_from<'s>(mirrors: &'s Mirrors, source: &'s str) -> &'s str {
    mirrors.get(source).map_or(source, String::as_str)
}

/// What an entry depends on.
#[derive(Debug, Default)]
pub struct Closure<'l> {
    /// The sources, each once.
    pub sources: BTreeSet<&'l str>,
    /// Those that no entry satisfies.
    pub missing: Vec<&'l LockDependency>,
}

/// Strongly connected components by Tarjan's algorithm, without recursion: a chain of dependencies may be as long as the
/// Lock.
struct Components {
    cycles: Vec<Option<usize>>,
    index: Vec<Option<usize>>,
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    visited: usize,
    count: usize,
}

impl Components {
    fn of(graph: &Graph<'_>) -> Self {
        let size = graph.packages.len();
        let mut components = Self {
            cycles: vec![None; size],
            index: vec![None; size],
            low: vec![0; size],
            on_stack: vec![false; size],
            stack: Vec::new(),
            visited: 0,
            count: 0,
        };
        let edges: Vec<Vec<usize>> = (0..size).map(|entry| graph.next(entry).collect()).collect();
        for root in 0..size {
            if components.index[root].is_none() {
                components.visit(root, &edges);
            }
        }
        components
    }

    fn visit(&mut self, root: usize, edges: &[Vec<usize>]) {
        let mut path: Vec<(usize, usize)> = Vec::new();
        self.enter(root);
        path.push((root, 0));
        while let Some((here, edge)) = path.pop() {
            let Some(&next) = edges[here].get(edge) else {
                self.leave(here, edges);
                if let Some(&(parent, _)) = path.last() {
                    self.low[parent] = self.low[parent].min(self.low[here]);
                }
                continue;
            };
            path.push((here, edge + 1));
            match self.index[next] {
                None => {
                    self.enter(next);
                    path.push((next, 0));
                }
                Some(index) if self.on_stack[next] => self.low[here] = self.low[here].min(index),
                Some(_) => {}
            }
        }
    }

    fn enter(&mut self, entry: usize) {
        self.index[entry] = Some(self.visited);
        self.low[entry] = self.visited;
        self.visited += 1;
        self.stack.push(entry);
        self.on_stack[entry] = true;
    }

    /// When the entry is the first of its component: takes the component off the stack and notes whether it is a cycle.
    fn leave(&mut self, entry: usize, edges: &[Vec<usize>]) {
        if self.index[entry] != Some(self.low[entry]) {
            return;
        }
        let start = self.stack.iter().rposition(|&i| i == entry).unwrap_or_default();
        let members = self.stack.split_off(start);
        let is_cycle = members.len() > 1 || edges[entry].contains(&entry);
        for member in members {
            self.on_stack[member] = false;
            self.cycles[member] = is_cycle.then_some(self.count);
        }
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a>b,c` is an entry `a` of source `r.io/a` that depends on `r.io/b` and `r.io/c`.
    fn lock(text: &str) -> Vec<LockPackage> {
        let entries = text.split(' ').map(|entry| {
            let (name, dependencies) = entry.split_once('>').unwrap_or((entry, ""));
            let source = format!("r.io/{}", name.split('#').next().unwrap_or_default());
            let dependency =
                |to: &str| LockDependency { package: format!("r.io/{to}"), ..LockDependency::default() };
            let dependencies = dependencies.split(',').filter(|d| !d.is_empty()).map(dependency).collect();
            LockPackage { name: name.to_owned(), source, dependencies, ..LockPackage::default() }
        });
        entries.collect()
    }

    #[test]
    fn cycles_are_named_from_their_members_only() {
        let lock = lock("a>b b>c,a c>d d self>self e>a");
        let none = Mirrors::new();
        let graph = Graph::new(&lock, &none);
        let cycle = |name: &str| graph.cycle(graph.find(name).unwrap()).map(|way| way.join(" "));
        assert_eq!(cycle("a").as_deref(), Some("r.io/a r.io/b r.io/a"));
        assert_eq!(cycle("b").as_deref(), Some("r.io/b r.io/a r.io/b"));
        assert_eq!(cycle("self").as_deref(), Some("r.io/self r.io/self"));
        for name in ["c", "d", "e"] {
            assert_eq!(cycle(name), None, "{name}");
            assert!(!graph.is_blocked(graph.find(name).unwrap()), "{name}");
        }
        assert!(graph.is_blocked(0) && graph.is_blocked(4));
    }

    #[test]
    fn a_long_cycle_is_found_without_recursion() {
        let text: Vec<String> = (0..20_000).map(|i| format!("{i}>{}", (i + 1) % 20_000)).collect();
        let lock = lock(&text.join(" "));
        let none = Mirrors::new();
        assert_eq!(Graph::new(&lock, &none).cycle(7).map(|way| way.len()), Some(20_001));
    }

    #[test]
    fn duplicates_are_those_of_one_source() {
        let lock = lock("a#1 a#2 b>a");
        let none = Mirrors::new();
        let graph = Graph::new(&lock, &none);
        assert_eq!(graph.duplicates(0), ["a#2"]);
        assert_eq!(graph.duplicates(1), ["a#1"]);
        assert!(graph.duplicates(2).is_empty() && !graph.is_blocked(2));
        assert_eq!(graph.matching("r.io/a"), [0, 1]);
    }

    #[test]
    fn mirrored_sources_are_the_same_package() {
        let lock = lock("a b>a");
        let mirrors = Mirrors::from([("up.io/a".to_owned(), "r.io/a".to_owned())]);
        let graph = Graph::new(&lock, &mirrors);
        assert_eq!(graph.matching("up.io/a"), [0]);
        let both = Mirrors::from([
            ("up.io/a".to_owned(), "m.io/a".to_owned()),
            ("r.io/a".to_owned(), "m.io/a".to_owned()),
        ]);
        assert_eq!(Graph::new(&lock, &both).matching("up.io/a"), [0]);
        assert!(Graph::new(&lock, &Mirrors::new()).matching("up.io/a").is_empty());
    }

    #[test]
    fn closures_hold_each_source_once() {
        let lock = lock("a>b,c b>d c>d,e d>x e f>g");
        let none = Mirrors::new();
        let closure = Graph::new(&lock, &none).closure(0);
        assert_eq!(closure.sources.len(), 5);
        let missing: Vec<&str> = closure.missing.iter().map(|d| d.package.as_str()).collect();
        assert_eq!(missing, ["r.io/x"]);
    }
}
