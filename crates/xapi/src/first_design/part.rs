//! A value of an object together with the field it is in. Reading one that has the wrong type is a mistake that names the field.

use super::field::Field;
use super::notes::{Notes, Problem};
use serde_json::{Map, Value};
use transom_object::suggest;

/// A value and its field.
#[derive(Clone, Debug)]
pub(super) struct Part<'a> {
    pub(super) value: &'a Value,
    pub(super) field: Field,
}

impl<'a> Part<'a> {
    /// An object.
    pub(super) fn whole(value: &'a Value) -> Self {
        Self { value, field: Field::root() }
    }

    /// A field, unless it is missing or null.
    pub(super) fn get(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(Self { value, field: self.field.child(name) })
    }

    /// A field that must be there.
    pub(super) fn required(&self, name: &str, notes: &mut Notes) -> Option<Self> {
        let found = self.get(name);
        if found.is_none() {
            notes.wrong(&self.field.child(name), Problem::Required);
        }
        found
    }

    /// The value as an object.
    pub(super) fn object(&self, notes: &mut Notes) -> Option<&'a Map<String, Value>> {
        self.typed(self.value.as_object(), "an object", notes)
    }

    /// The value as a text that is not empty.
    pub(super) fn text(&self, notes: &mut Notes) -> Option<&'a str> {
        let text = self.value.as_str().filter(|text| !text.is_empty());
        self.typed(text, "a text", notes)
    }

    /// The items of the list.
    pub(super) fn items(&self, notes: &mut Notes) -> Vec<Self> {
        let list = self.typed(self.value.as_array(), "a list", notes);
        let item = |(index, value)| Self { value, field: self.field.item(index) };
        list.into_iter().flatten().enumerate().map(item).collect()
    }

    /// The text in a field that must be there.
    pub(super) fn required_text(&self, name: &str, notes: &mut Notes) -> Option<&'a str> {
        self.required(name, notes)?.text(notes)
    }

    fn typed<T>(&self, value: Option<T>, wanted: &'static str, notes: &mut Notes) -> Option<T> {
        if value.is_none() {
            notes.wrong(&self.field, Problem::Type(wanted));
        }
        value
    }

    /// Every field must be one of these.
    pub(super) fn only(&self, known: &[&str], notes: &mut Notes) {
        for name in self.object(notes).into_iter().flat_map(Map::keys) {
            if !known.contains(&name.as_str()) {
                let suggestion = suggest::nearest(name, known.iter().copied()).map(str::to_owned);
                notes.wrong(&self.field.child(name), Problem::Unknown { suggestion });
            }
        }
    }

    /// Copies a field, if it is there.
    pub(super) fn copy(&self, name: &str, into: &mut Map<String, Value>) {
        into.extend(self.get(name).map(|part| (name.to_owned(), part.value.clone())));
    }
}
