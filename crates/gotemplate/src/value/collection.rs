//! Lists and maps: shared, mutable, and typed by their element as Go types them.

use std::cell::{Ref, RefCell};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use super::{IntKind, Str, Value};

/// The types of lists that templates handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// `[]interface {}`.
    Any,
    /// `[]string`.
    Str,
    /// `[]int`.
    Int,
    /// `[]uint8`: bytes.
    Uint8,
    /// `[][]interface {}`.
    Lists,
}

impl ListType {
    /// The type as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            ListType::Any => "[]interface {}",
            ListType::Str => "[]string",
            ListType::Int => "[]int",
            ListType::Uint8 => "[]uint8",
            ListType::Lists => "[][]interface {}",
        }
    }
}

/// The types of maps that templates handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// `map[string]interface {}`.
    StrAny,
    /// `map[string]string`.
    StrStr,
    /// `map[string][]byte`.
    StrBytes,
    /// `map[interface {}]interface {}`.
    AnyAny,
}

impl MapType {
    /// The type as Go prints it.
    pub fn name(self) -> &'static str {
        match self {
            MapType::StrAny => "map[string]interface {}",
            MapType::StrStr => "map[string]string",
            MapType::StrBytes => "map[string][]uint8",
            MapType::AnyAny => "map[interface {}]interface {}",
        }
    }

    /// The type of the keys as Go prints it.
    pub fn key_name(self) -> &'static str {
        if self == MapType::AnyAny { "interface {}" } else { "string" }
    }

    /// Whether elements are held as `interface {}` (and so a null element is possible).
    pub fn holds_any(self) -> bool {
        matches!(self, MapType::StrAny | MapType::AnyAny)
    }

    /// What Go's zero value for an absent element is.
    pub fn zero(self) -> Value {
        match self {
            MapType::StrAny | MapType::AnyAny => Value::Nil,
            MapType::StrStr => Value::str(""),
            MapType::StrBytes => Value::List(List::nil(ListType::Uint8)),
        }
    }
}

/// A slice. Clones are the same list.
#[derive(Clone, Debug)]
pub struct List(Rc<ListCell>);

#[derive(Debug)]
struct ListCell {
    ty: ListType,
    nil: bool,
    items: RefCell<Vec<Value>>,
}

impl List {
    /// A list of a type.
    pub fn new(ty: ListType, items: Vec<Value>) -> List {
        List(Rc::new(ListCell { ty, nil: false, items: RefCell::new(items) }))
    }

    /// A nil slice: empty, but `null` in JSON.
    pub fn nil(ty: ListType) -> List {
        List(Rc::new(ListCell { ty, nil: true, items: RefCell::default() }))
    }

    /// Its type.
    pub fn ty(&self) -> ListType {
        self.0.ty
    }

    /// Whether it is nil, not only empty.
    pub fn is_nil(&self) -> bool {
        self.0.nil
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.items.borrow().len()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of the element at an index.
    pub fn get(&self, index: usize) -> Option<Value> {
        self.0.items.borrow().get(index).cloned()
    }

    /// The elements; the list must not change while they are borrowed.
    pub fn items(&self) -> Ref<'_, Vec<Value>> {
        self.0.items.borrow()
    }

    /// Copies of the elements.
    pub fn to_vec(&self) -> Vec<Value> {
        self.items().clone()
    }

    /// The raw bytes of a `[]byte`.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        if self.0.ty != ListType::Uint8 {
            return None;
        }
        let byte = |value: &Value| match value {
            Value::Uint(_, byte) => u8::try_from(*byte).ok(),
            _ => None,
        };
        self.items().iter().map(byte).collect()
    }

    /// Sorts in place, as `sort.Strings`.
    pub fn sort_strings(&self) {
        let text = |value: &Value| value.as_str().cloned();
        self.0.items.borrow_mut().sort_by_key(text);
    }

    /// Whether both are the same list, not only equal ones.
    pub fn same(&self, other: &List) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

/// A map. Clones are the same map.
#[derive(Clone, Debug)]
pub struct Map(Rc<MapCell>);

#[derive(Debug)]
struct MapCell {
    ty: MapType,
    nil: bool,
    entries: RefCell<BTreeMap<Key, Value>>,
}

impl Map {
    /// An empty map of a type.
    pub fn new(ty: MapType) -> Map {
        Map(Rc::new(MapCell { ty, nil: false, entries: RefCell::default() }))
    }

    /// A nil map: reads as empty, refuses assignment.
    pub fn nil(ty: MapType) -> Map {
        Map(Rc::new(MapCell { ty, nil: true, entries: RefCell::default() }))
    }

    /// Its type.
    pub fn ty(&self) -> MapType {
        self.0.ty
    }

    /// Whether it is nil, not only empty.
    pub fn is_nil(&self) -> bool {
        self.0.nil
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.entries.borrow().len()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of the value of a key.
    pub fn get(&self, key: &Key) -> Option<Value> {
        self.0.entries.borrow().get(key).cloned()
    }

    /// A copy of the value of a string key.
    pub fn get_str(&self, key: &Str) -> Option<Value> {
        self.get(&Key::Str(key.clone()))
    }

    /// Whether there is a string key.
    pub fn contains(&self, key: &Str) -> bool {
        self.0.entries.borrow().contains_key(&Key::Str(key.clone()))
    }

    /// Sets the value of a key.
    pub fn insert(&self, key: Key, value: Value) {
        let replaced = self.0.entries.borrow_mut().insert(key, value);
        drop(replaced);
    }

    /// Removes a string key.
    pub fn remove(&self, key: &Str) {
        let removed = self.0.entries.borrow_mut().remove(&Key::Str(key.clone()));
        drop(removed);
    }

    /// Empties the map, which breaks any cycle through it.
    pub fn clear(&self) {
        let entries = std::mem::take(&mut *self.0.entries.borrow_mut());
        drop(entries);
    }

    /// The entries; the map must not change while they are borrowed.
    pub fn entries(&self) -> Ref<'_, BTreeMap<Key, Value>> {
        self.0.entries.borrow()
    }

    /// Copies of the entries.
    pub fn to_vec(&self) -> Vec<(Key, Value)> {
        self.entries().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Whether both are the same map, not only equal ones.
    pub fn same(&self, other: &Map) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Whether `self` can be reached from its own entries.
    pub fn is_cyclic(&self) -> bool {
        let mut seen: HashSet<*const ()> = HashSet::new();
        let mut pending: Vec<Value> =
            self.entries().values().filter(|value| is_container(value)).cloned().collect();
        while let Some(value) = pending.pop() {
            let (id, children) = match &value {
                Value::Map(map) if map.same(self) => return true,
                Value::Map(map) => {
                    (Rc::as_ptr(&map.0).cast::<()>(), map.entries().values().cloned().collect())
                }
                Value::List(list) => (Rc::as_ptr(&list.0).cast::<()>(), list.to_vec()),
                _ => continue,
            };
            if seen.insert(id) {
                pending.extend(children.into_iter().filter(is_container));
            }
        }
        false
    }
}

/// A map key. Templates mostly see strings; YAML can bring other scalars.
#[derive(Clone, Debug)]
pub enum Key {
    /// nil.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(Str),
}

impl Key {
    /// A string key.
    pub fn str(text: impl Into<Str>) -> Key {
        Key::Str(text.into())
    }

    /// The key as a value.
    pub fn to_value(&self) -> Value {
        match self {
            Key::Nil => Value::Nil,
            Key::Bool(value) => Value::Bool(*value),
            Key::Int(value) => Value::Int(IntKind::Int, *value),
            Key::Float(value) => Value::Float(*value),
            Key::Str(text) => Value::Str(text.clone()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Key::Nil => 0,
            Key::Bool(_) => 1,
            Key::Int(_) => 2,
            Key::Float(_) => 3,
            Key::Str(_) => 4,
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        match (self, other) {
            (Key::Str(a), Key::Str(b)) => a.cmp(b),
            (Key::Int(a), Key::Int(b)) => a.cmp(b),
            (Key::Float(a), Key::Float(b)) => a.total_cmp(b),
            (Key::Bool(a), Key::Bool(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

fn is_container(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Map(_))
}

/// Frees nested containers with a worklist: a template can nest data deeper than the stack could unwind.
fn free(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::List(list) => {
                if let Some(cell) = Rc::into_inner(list.0) {
                    pending.extend(cell.items.take().into_iter().filter(is_container));
                }
            }
            Value::Map(map) => {
                if let Some(cell) = Rc::into_inner(map.0) {
                    pending.extend(cell.entries.take().into_values().filter(is_container));
                }
            }
            _ => {}
        }
    }
}

impl Drop for ListCell {
    fn drop(&mut self) {
        let items = self.items.get_mut();
        if items.iter().any(is_container) {
            free(std::mem::take(items).into_iter().filter(is_container).collect());
        }
    }
}

impl Drop for MapCell {
    fn drop(&mut self) {
        let entries = self.entries.get_mut();
        if entries.values().any(is_container) {
            free(std::mem::take(entries).into_values().filter(is_container).collect());
        }
    }
}
