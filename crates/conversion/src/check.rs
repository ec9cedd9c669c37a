//! Round trips: objects of each version are converted to its neighbour and back. What comes back must be what left, and
//! what arrives must be what the neighbour's schema accepts.

use crate::compile::{Converter, Version};
use crate::convert::{ConversionError, Step};
use crate::generate::{Generator, Presence};
use crate::kept;
use serde_json::Value;
use transom_object::error_chain::chain;

/// How many objects of a version are tried beside the systematic ones.
const RANDOM_OBJECTS: usize = 200;
/// How many values are generated for one step at most.
const MAX_VALUES: usize = 60_000;
/// How many values are generated for all steps together: it bounds the time that a check takes, however many versions there are.
const MAX_VALUES_OF_ALL: usize = 4 * MAX_VALUES;
/// How much of an object a message shows.
const MAX_SHOWN_BYTES: usize = 400;

/// What rules do to an object and must not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Such as `rules[0]`.
    pub field: String,
    /// The versions in the order of the conversions.
    pub route: Vec<String>,
    /// What happens.
    pub what: String,
    /// The remedy.
    pub remedy: &'static str,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}: {}; {}", self.field, self.route.join(" to "), self.what, self.remedy)
    }
}

const OF_LOSS: &str = "add a move, or expressions in both directions that are the reverse of each other for all values that the schemas allow";
const OF_REFUSAL: &str = "add an expression for the field, give it a default, or let the schemas of both versions accept the same values";
const OF_FAILURE: &str = "the expression must work for every object that the schema allows: optional fields need has() or ?., and \
     texts that are parsed need a pattern or an enum";
const OF_UNCHECKED: &str = "add a valid object to conversion.examples";

impl Converter {
    /// Converts generated objects and the examples there and back. At most one finding for each direction of each rule.
    pub fn check(&self) -> Vec<Finding> {
        self.check_counting().0
    }

    /// [`Self::check`], and how many values were generated for it.
    fn check_counting(&self) -> (Vec<Finding>, usize) {
        let share = MAX_VALUES.min(MAX_VALUES_OF_ALL / self.steps.len().max(1));
        let mut values = 0;
        let findings = self.steps.iter().filter_map(|step| {
            let mut generator = Generator::new(&self.versions[step.from].schema, share);
            let finding = self.check_step(step, &mut generator).err();
            values += generator.values;
            finding
        });
        (findings.collect(), values)
    }

    fn check_step(&self, step: &Step, generator: &mut Generator<'_>) -> Result<(), Finding> {
        let source = &self.versions[step.from];
        let Some(back) = self.steps.iter().find(|other| other.from == step.to && other.to == step.from)
        else {
            return Ok(());
        };
        let random = std::iter::repeat_n(Presence::Random, RANDOM_OBJECTS);
        let choices = generator.systematic().into_iter().chain(random);
        let examples = self.examples.iter().filter(|example| self.version_of(example) == Some(step.from));
        let mut tried = 0;
        for example in examples {
            let mut example = example.clone();
            source.default(&mut example);
            if let Some(why) = source.objection(&example) {
                return Err(self.finding(step, &[], format!("an example is refused: {why}"), OF_UNCHECKED));
            }
            self.round_trip(step, back, &example)?;
            tried += 1;
        }
        let mut last_objection = String::new();
        for presence in choices {
            if generator.is_exhausted() {
                break;
            }
            match self.proposal(source, generator, &presence) {
                Ok(object) => {
                    self.round_trip(step, back, &object)?;
                    tried += 1;
                }
                Err(objection) => last_objection = objection,
            }
        }
        if tried == 0 {
            let what = format!("no valid object could be generated to check the rule with: {last_objection}");
            return Err(self.finding(step, &[], what, OF_UNCHECKED));
        }
        Ok(())
    }

    /// A valid object, with its defaults. Some attempts are made, because rules and alternatives refuse many.
    fn proposal(
        &self,
        source: &Version,
        generator: &mut Generator<'_>,
        presence: &Presence,
    ) -> Result<Value, String> {
        let api_version = format!("generated.example.org/{}", source.name);
        let mut objection = String::new();
        for _ in 0..4 {
            let mut object = generator.object(&api_version, presence);
            kept::remove_from(&mut object);
            transom_schema::normalize::drop_nulls(&mut object, &source.schema);
            source.default(&mut object);
            match source.objection(&object) {
                None => return Ok(object),
                Some(why) => objection = why,
            }
        }
        Err(objection)
    }

    fn round_trip(&self, step: &Step, back: &Step, object: &Value) -> Result<(), Finding> {
        let there = self.take_step(step, object.clone());
        let mut there = there.map_err(|error| self.failure(step, &[step.to], &error, object))?;
        let target = &self.versions[step.to];
        target.default(&mut there);
        if let Some(why) = target.objection(&there) {
            let what =
                format!("the converted object is refused: {why}; the object was {}", shortened(object));
            return Err(self.finding(step, &[step.to], what, OF_REFUSAL));
        }
        let returned = self.take_step(back, there.clone());
        let returned = returned.map_err(|error| self.failure(step, &[step.to, step.from], &error, &there))?;
        let Some((field, before, after)) =
            difference("", &step.comparable(object), &step.comparable(&returned))
        else {
            return Ok(());
        };
        let word = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), shortened);
        let (before, after) = (word(before.as_ref()), word(after.as_ref()));
        let what =
            format!("{field} was {before} and is {after} after it; the object was {}", shortened(object));
        Err(self.finding(step, &[step.to, step.from], what, OF_LOSS))
    }

    fn failure(&self, step: &Step, route: &[usize], error: &ConversionError, object: &Value) -> Finding {
        let what = format!("{}; the object was {}", chain(error), shortened(object));
        self.finding(step, route, what, OF_FAILURE)
    }

    fn finding(&self, step: &Step, route: &[usize], what: String, remedy: &'static str) -> Finding {
        let route = std::iter::once(&step.from).chain(route);
        let route = route.map(|version| self.versions[*version].name.clone()).collect();
        Finding { field: format!("rules[{}]", step.rule), route, what, remedy }
    }
}

impl Step {
    /// What must survive a round trip. Objects around moved fields come and go with these: empty ones are not compared.
    fn comparable(&self, object: &Value) -> Value {
        let mut object = comparable(object);
        for path in self.moves.iter().flat_map(|(from, to)| [from, to]) {
            path.take_empty_around(&mut object);
        }
        object
    }
}

/// What a user wrote of an object.
fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    kept::remove_from(&mut object);
    let mut part = |part: &str| Some((part.to_owned(), object.get_mut(part)?.take()));
    Value::Object(["spec", "status"].into_iter().filter_map(&mut part).collect())
}

/// Spec and status of an object, cut at the end.
fn shortened(value: &Value) -> String {
    let parts = if value.get("apiVersion").is_some() { comparable(value) } else { value.clone() };
    let text = parts.to_string();
    match text.char_indices().map(|(at, _)| at).find(|at| *at >= MAX_SHOWN_BYTES) {
        Some(at) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// The first field that differs, with its values.
fn difference(path: &str, before: &Value, after: &Value) -> Option<(String, Option<Value>, Option<Value>)> {
    let differ =
        || Some((path.trim_start_matches('.').to_owned(), Some(before.clone()), Some(after.clone())));
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let path = format!("{path}.{name}");
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => difference(&path, a, b),
                    (a, b) => Some((path.trim_start_matches('.').to_owned(), a.cloned(), b.cloned())),
                }
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let each = a.iter().zip(b).enumerate();
            each.into_iter().find_map(|(i, (a, b))| difference(&format!("{path}[{i}]"), a, b))
        }
        // 3 and 3.0 are one number to every client.
        (Value::Number(a), Value::Number(b)) if a != b && (a.is_f64() || b.is_f64()) => {
            if a.as_f64() == b.as_f64() { None } else { differ() }
        }
        _ if before == after => None,
        _ => differ(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rules, VersionSchema};
    use serde_json::{Map, json};

    fn values_of(versions: usize, fields: &Value) -> usize {
        let schema =
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
        let names: Vec<String> = (0..versions).map(|i| format!("v{}", i + 1)).collect();
        let rules: Vec<Value> =
            names.windows(2).map(|pair| json!({"from": pair[0], "to": pair[1]})).collect();
        let versions: Vec<_> = names.iter().map(|name| VersionSchema { name, schema: &schema }).collect();
        let rules = Rules::read(&json!({"rules": rules})).unwrap();
        Converter::compile(&rules, &versions).unwrap().check_counting().1
    }

    #[test]
    fn the_work_of_a_check_does_not_grow_with_the_versions() {
        let wide: Map<String, Value> =
            (0..150).map(|i| (format!("f{i}"), json!({"type": "boolean"}))).collect();
        // The last object of each of the 38 steps may go beyond its share.
        assert!(values_of(20, &wide.into()) <= MAX_VALUES_OF_ALL + 38 * 151);
        // Lists of lists, each with as many entries as are required.
        let mut deep = json!({"type": "boolean"});
        for _ in 0..6 {
            deep = json!({"type": "array", "minItems": 60, "items": deep});
        }
        assert!(values_of(2, &json!({"deep": deep})) <= 2 * MAX_VALUES + 1_000);
    }
}
