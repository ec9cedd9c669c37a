//! The order in which fields are written in a document, which decoded values no longer have.
//!
//! A strict decoder reports complaints as it reads. This reads a document once more, only when there is more than one
//! complaint, and looks for a complaint about each field.

use super::Complaint;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// Sorts complaints by the order of the fields that they are about; those about no field come last.
pub(super) fn as_written(json: &[u8], complaints: &mut Vec<Complaint>) {
    let mut reading = Reading { left: std::mem::take(complaints), met: Vec::new(), path: String::new() };
    let mut document = serde_json::Deserializer::from_slice(json);
    // After an error, the complaints that were not reached keep their order.
    let _ = ValueVisitor(&mut reading).deserialize(&mut document);
    *complaints = reading.met;
    complaints.append(&mut reading.left);
}

struct Reading {
    left: Vec<Complaint>,
    met: Vec<Complaint>,
    path: String,
}

impl Reading {
    fn meet(&mut self, again: bool) {
        let about = |c: &Complaint| c.path == self.path && c.duplicate == again;
        if let Some(at) = self.left.iter().position(about) {
            self.met.push(self.left.remove(at));
        }
    }
}

/// A value at the path that has been read so far.
struct ValueVisitor<'a>(&'a mut Reading);

impl<'de> DeserializeSeed<'de> for ValueVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let parent = self.0.path.len();
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if parent > 0 {
                self.0.path.push('.');
            }
            self.0.path.push_str(&key);
            let again = !seen.insert(key);
            self.0.meet(again);
            if self.0.left.is_empty() {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(ValueVisitor(self.0))?;
            }
            self.0.path.truncate(parent);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let parent = self.0.path.len();
        for index in 0.. {
            self.0.path.push_str(&format!("[{index}]"));
            let more = items.next_element_seed(ValueVisitor(self.0))?.is_some();
            self.0.path.truncate(parent);
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_come_as_their_fields_are_written() {
        let json =
            br#"{"zeta": 1, "list": [{"a": 1, "odd": 2}], "m": {"odd": null, "x": 1, "x": 2}, "beta": 1}"#;
        let complaint = |duplicate, path: &str| Complaint { duplicate, path: path.into() };
        let mut complaints = vec![
            complaint(true, "m.x"),
            complaint(false, "beta"),
            complaint(false, "elsewhere"),
            complaint(false, "list[0].odd"),
            complaint(false, "m.odd"),
            complaint(false, "zeta"),
        ];
        as_written(json, &mut complaints);
        let paths: Vec<&str> = complaints.iter().map(|c| c.path.as_str()).collect();
        assert_eq!(paths, ["zeta", "list[0].odd", "m.odd", "m.x", "beta", "elsewhere"]);
    }
}
