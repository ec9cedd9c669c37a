//! How package fmt sees the values of templates.

use super::{ListType, Value};
use crate::stack::with_room;
use std::borrow::Cow;
use transom_go::fmt::{Element, Operand, View};

impl Operand for Value {
    fn view(&self) -> View<'_> {
        match self {
            Value::Missing | Value::Nil => View::Nil,
            Value::Bool(flag) => View::Bool(*flag),
            Value::Int(_, number) | Value::Named(_, number) => View::Int(*number),
            Value::Uint(_, number) => View::Uint(*number),
            Value::Float(number) => View::Float(*number),
            Value::Complex(re, im) => View::Complex(*re, *im),
            Value::Str(text) => View::Str(text),
            Value::List(list) => View::List { is_nil: list.is_nil(), is_bytes: list.ty() == ListType::Uint8 },
            Value::Map(map) => View::Map { is_nil: map.is_nil() },
            Value::Struct(_) => View::Struct,
            Value::Time(_) | Value::Version(_) => View::Opaque,
        }
    }

    fn type_name(&self) -> Cow<'_, str> {
        Value::type_name(self)
    }

    fn string_method(&self) -> Option<String> {
        match self {
            Value::Time(time) => Some(time.to_string()),
            Value::Struct(shape) => shape.instant().map(ToString::to_string),
            Value::Named(named, number) => Some(named.text(*number)),
            Value::Version(version) => Some(version.to_string()),
            _ => None,
        }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Value::List(list) => list.to_bytes(),
            _ => None,
        }
    }

    fn elements(&self, visit: &mut dyn FnMut(Element<'_, Self>) -> bool) {
        // Every level of nesting passes here, so this is where room on the stack is made.
        with_room(|| match self {
            Value::List(list) => {
                list.items().iter().all(|item| visit(Element::Item(item)));
            }
            Value::Map(map) => {
                map.entries().iter().all(|(key, item)| visit(Element::Entry(&key.to_value(), item)));
            }
            Value::Struct(shape) => {
                shape.fields.iter().all(|(name, value)| visit(Element::Field(name, value)));
            }
            _ => {}
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::MAX_DEPTH;
    use transom_go::fmt::sprintf;

    /// Values are printed from templates that have used most of the stack themselves.
    #[test]
    fn nested_values_are_printed_on_a_small_stack() {
        let small = std::thread::Builder::new().stack_size(128 << 10);
        let printed = small.spawn(|| {
            let mut value = Value::int(1);
            for _ in 0..MAX_DEPTH {
                value = Value::list(vec![value]);
            }
            let printed = sprintf("%v", std::slice::from_ref(&value));
            // Dropping it would need the stack, too.
            std::mem::forget(value);
            printed
        });
        let printed = printed.unwrap().join().unwrap();
        assert_eq!(printed, format!("{}1{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH)));
    }
}
