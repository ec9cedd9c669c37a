//! Bringing field sets in line with a schema that changed after they were written.

use crate::own::element::Element;
use crate::own::set::Set;
use crate::own::types::{List, Map, Type};
use std::sync::Arc;

/// Replaces fields below what has become atomic by the atomic field itself. `None` when nothing changes.
pub fn reconcile_with_schema(fields: &Set, ty: Type<'_>) -> Option<Set> {
    match atom(ty) {
        Form::Map(map) if !map.atomic => below(fields, |element| of_map(&map, element)),
        Form::List(list) if !list.atomic => below(fields, |_| Some(list.element)),
        _ => None,
    }
}

enum Form<'s> {
    Map(Map<'s>),
    List(List<'s>),
    Leaf,
}

/// There is no value to choose by, so maps come first. Maps without any schema are left alone.
fn atom(ty: Type<'_>) -> Form<'_> {
    match (ty.map(), ty.scalar(), ty.list()) {
        (Some(map), _, _) if map.schemaless() => Form::Leaf,
        (Some(map), _, _) => Form::Map(map),
        (None, None, Some(list)) => Form::List(list),
        _ => Form::Leaf,
    }
}

fn of_map<'s>(map: &Map<'s>, element: &Element) -> Option<Type<'s>> {
    match element {
        Element::Field(name) => map.value(name),
        _ => map.element,
    }
}

fn below<'s>(fields: &Set, ty: impl Fn(&Element) -> Option<Type<'s>>) -> Option<Set> {
    let mut members = Vec::new();
    let mut changed: Vec<(usize, Option<Set>)> = Vec::new();
    for (i, (element, child)) in fields.children().iter().enumerate() {
        let Some(ty) = ty(element) else { continue };
        let collapses = match atom(ty) {
            Form::Map(map) => map.atomic && !child.is_empty(),
            Form::List(list) => list.atomic,
            Form::Leaf => false,
        };
        if collapses {
            members.push(element.clone());
            changed.push((i, None));
        } else if let Some(set) = reconcile_with_schema(child, ty) {
            changed.push((i, Some(set)));
        }
    }
    if changed.is_empty() {
        return None;
    }
    let mut changed = changed.into_iter().peekable();
    let mut children = Vec::with_capacity(fields.children().len());
    for (i, (element, child)) in fields.children().iter().enumerate() {
        match changed.next_if(|(at, _)| *at == i) {
            None => children.push((element.clone(), child.clone())),
            Some((_, Some(set))) => children.push((element.clone(), Arc::new(set))),
            Some((_, None)) => {}
        }
    }
    members.extend_from_slice(fields.members());
    Some(Set::from_unsorted(members, children))
}
