//! Sets of paths, as a tree: the members of a node are paths that end there, its children lead further.
//!
//! Both lists are sorted and subtrees are shared, so combining two sets walks them once and copies only
//! what differs. A child is never an empty set.

use super::element::{Element, Path};
use super::types::Type;
use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    members: Vec<Element>,
    children: Vec<(Element, Arc<Set>)>,
}

/// One element of a set's level: whether the path ends there, and where it leads.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub member: bool,
    pub children: Option<&'a Arc<Set>>,
}

impl Set {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn members(&self) -> &[Element] {
        &self.members
    }

    pub(super) fn children(&self) -> &[(Element, Arc<Set>)] {
        &self.children
    }

    /// Builds a level from lists in any order; of equal children the last is kept.
    pub(super) fn from_unsorted(mut members: Vec<Element>, mut children: Vec<(Element, Arc<Set>)>) -> Self {
        if !members.is_sorted() {
            members.sort();
        }
        members.dedup();
        if !children.is_sorted_by(|a, b| a.0 < b.0) {
            children.sort_by(|a, b| a.0.cmp(&b.0));
            children.reverse();
            children.dedup_by(|a, b| a.0 == b.0);
            children.reverse();
        }
        Self { members, children }
    }

    /// Elements of this level in order, members and children merged.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&Element, Node<'_>)> {
        let (mut m, mut c) = (self.members.iter().peekable(), self.children.iter().peekable());
        std::iter::from_fn(move || {
            let order = match (m.peek(), c.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some((b, _))) => (*a).cmp(b),
            };
            let member = if order == Ordering::Greater { None } else { m.next() };
            let child = if order == Ordering::Less { None } else { c.next() };
            let element = member.or(child.map(|(e, _)| e))?;
            Some((element, Node { member: member.is_some(), children: child.map(|(_, set)| set) }))
        })
    }

    /// Adds a path. The root path identifies the whole object, which no manager owns.
    pub fn insert(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => self.insert_member(last.clone()),
            [first, rest @ ..] => {
                let at = match self.children.binary_search_by(|(e, _)| e.cmp(first)) {
                    Ok(at) => at,
                    Err(at) => {
                        self.children.insert(at, (first.clone(), Arc::default()));
                        at
                    }
                };
                Arc::make_mut(&mut self.children[at].1).insert(rest);
            }
        }
    }

    pub(super) fn insert_member(&mut self, element: Element) {
        if self.members.last().is_none_or(|last| *last < element) {
            self.members.push(element);
        } else if let Err(at) = self.members.binary_search(&element) {
            self.members.insert(at, element);
        }
    }

    /// Hangs a set below an element, keeping what is there already; an empty one leaves no trace.
    pub(super) fn graft(&mut self, element: &Element, set: Set) {
        if set.is_empty() {
            return;
        }
        if self.children.last().is_none_or(|(last, _)| last < element) {
            self.children.push((element.clone(), Arc::new(set)));
            return;
        }
        match self.children.binary_search_by(|(e, _)| e.cmp(element)) {
            Ok(at) => self.children[at].1 = Arc::new(self.children[at].1.union(&set)),
            Err(at) => self.children.insert(at, (element.clone(), Arc::new(set))),
        }
    }

    /// Whether a path is a member.
    pub fn has(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.has_member(last),
            [first, rest @ ..] => self.child(first).is_some_and(|c| c.has(rest)),
        }
    }

    pub(super) fn has_member(&self, element: &Element) -> bool {
        self.members.binary_search(element).is_ok()
    }

    /// The paths that begin with an element, without it.
    pub fn child(&self, element: &Element) -> Option<&Set> {
        let at = self.children.binary_search_by(|(e, _)| e.cmp(element)).ok()?;
        Some(&self.children[at].1)
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.iter().all(|(_, c)| c.is_empty())
    }

    /// How many paths the set has.
    pub fn len(&self) -> usize {
        self.members.len() + self.children.iter().map(|(_, c)| c.len()).sum::<usize>()
    }

    /// What is in one of the sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let members = merge_sorted(&self.members, &other.members, Element::cmp, |a, b| a.or(b).cloned());
        let children = merge_sorted(&self.children, &other.children, by_element, |a, b| match (a, b) {
            (Some((e, a)), Some((_, b))) if !Arc::ptr_eq(a, b) => Some((e.clone(), Arc::new(a.union(b)))),
            (a, b) => a.or(b).cloned(),
        });
        Self { members, children }
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let members = merge_sorted(&self.members, &other.members, Element::cmp, |a, b| a.and(b).cloned());
        let children = merge_sorted(&self.children, &other.children, by_element, |a, b| match (a, b) {
            (Some((e, a)), Some((_, b))) => nonempty(e, a.intersection(b)),
            _ => None,
        });
        Self { members, children }
    }

    /// The paths of this set that are not in the other. Removing a path leaves those below it.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let children = merge_sorted(&self.children, &other.children, by_element, |a, b| match (a, b) {
            (Some((e, a)), Some((_, b))) => nonempty(e, a.difference(b)),
            (a, _) => a.cloned(),
        });
        Self { members: self.members_without(other), children }
    }

    /// The paths of this set that are neither in the other nor below one of its paths.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let children = merge_sorted(&self.children, &other.children, by_element, |a, b| match (a, b) {
            (Some((e, _)), _) if other.has_member(e) => None,
            (Some((e, a)), Some((_, b))) => nonempty(e, a.recursive_difference(b)),
            (a, _) => a.cloned(),
        });
        Self { members: self.members_without(other), children }
    }

    fn members_without(&self, other: &Self) -> Vec<Element> {
        merge_sorted(
            &self.members,
            &other.members,
            Element::cmp,
            |a, b| if b.is_none() { a.cloned() } else { None },
        )
    }

    /// Only the paths that lead nowhere further.
    #[must_use]
    pub fn leaves(&self) -> Self {
        Self {
            members: self.nodes().filter(|(_, n)| n.children.is_none()).map(|(e, _)| e.clone()).collect(),
            children: self.children.iter().map(|(e, c)| (e.clone(), Arc::new(c.leaves()))).collect(),
        }
    }

    /// Adds every declared field on the way to a member: `a.b.c` makes `a` a member if `a` is a field of
    /// a struct, and `a.b` not if `b` is a key of a map.
    #[must_use]
    pub fn ensure_named_fields_are_members(&self, ty: Option<Type<'_>>) -> Self {
        let map = ty.and_then(Type::map);
        let list = ty.and_then(Type::list);
        let mut out =
            Self { members: self.members.clone(), children: Vec::with_capacity(self.children.len()) };
        for (element, child) in &self.children {
            let mut inner = None;
            match element {
                Element::Field(name) => {
                    if let Some(map) = map {
                        let field = map.field(name);
                        if field.is_some() {
                            out.insert_member(element.clone());
                        }
                        inner = field.or(map.element);
                    }
                }
                Element::Key(_) => inner = list.map(|l| l.element),
                Element::Value(_) | Element::Index(_) => {}
            }
            out.children.push((element.clone(), Arc::new(child.ensure_named_fields_are_members(inner))));
        }
        out
    }

    /// Every leaf of a value whose schema is not known. Items of lists are guessed to be identified by
    /// `key`, `id` and `name` when they have such a field.
    pub fn from_value(value: &Value) -> Self {
        fn walk(value: &Value) -> (Set, bool) {
            let mut set = Set::default();
            let mut add = |element: Element, inner: &Value| {
                let (child, leaf) = walk(inner);
                if leaf {
                    set.insert_member(element.clone());
                }
                set.graft(&element, child);
            };
            match value {
                Value::Object(map) => map.iter().for_each(|(k, v)| add(Element::field(k), v)),
                Value::Array(items) => items.iter().enumerate().for_each(|(i, v)| add(guess(i, v), v)),
                _ => return (set, true),
            }
            (set, false)
        }
        fn guess(index: usize, item: &Value) -> Element {
            let scalar = |v: &&Value| !(v.is_null() || v.is_object() || v.is_array());
            let keys: Vec<_> = ["key", "id", "name"]
                .into_iter()
                .filter_map(|k| Some((k.into(), item.get(k).filter(scalar)?.clone())))
                .collect();
            if keys.is_empty() {
                Element::Index(i64::try_from(index).unwrap_or(i64::MAX))
            } else {
                Element::key(keys)
            }
        }
        walk(value).0
    }

    /// Every path of the set, each before those below it.
    pub fn paths(&self) -> Vec<Path> {
        fn walk(set: &Set, prefix: &mut Vec<Element>, out: &mut Vec<Path>) {
            for member in &set.members {
                let mut path = prefix.clone();
                path.push(member.clone());
                out.push(Path(path));
            }
            for (element, child) in &set.children {
                prefix.push(element.clone());
                walk(child, prefix, out);
                prefix.pop();
            }
        }
        let mut out = Vec::with_capacity(self.len());
        walk(self, &mut Vec::new(), &mut out);
        out
    }
}

impl FromIterator<Path> for Set {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut set = Self::default();
        paths.into_iter().for_each(|p| set.insert(&p.0));
        set
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, path) in self.paths().iter().enumerate() {
            write!(f, "{}{path}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

fn by_element(a: &(Element, Arc<Set>), b: &(Element, Arc<Set>)) -> Ordering {
    a.0.cmp(&b.0)
}

fn nonempty(element: &Element, set: Set) -> Option<(Element, Arc<Set>)> {
    (!set.is_empty()).then(|| (element.clone(), Arc::new(set)))
}

/// Walks two sorted lists together and keeps what `pick` makes of each pair.
fn merge_sorted<T>(
    a: &[T],
    b: &[T],
    order: impl Fn(&T, &T) -> Ordering,
    pick: impl Fn(Option<&T>, Option<&T>) -> Option<T>,
) -> Vec<T> {
    let mut out = Vec::with_capacity(a.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let next = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => order(x, y),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let left = if next == Ordering::Greater { None } else { a.get(i) };
        let right = if next == Ordering::Less { None } else { b.get(j) };
        i += usize::from(left.is_some());
        j += usize::from(right.is_some());
        out.extend(pick(left, right));
    }
    out
}
