//! Objects of a schema: first with what is required alone, then with each other field, then with all, then at random. The
//! same schema always gives the same objects. They are proposals: rules and combinations of schemas may refuse some.

use crate::texts;
use serde_json::{Map, Number, Value, json};
use transom_object::hash::{SPLIT_MIX_STEP, split_mix};
use transom_schema::{Additional, ListType, Schema, Type};

/// Values at which conversions of numbers fail first.
const INTEGERS: &[i64] = &[1, 0, 2, -1, 10, 37, 1000, 2_147_483_647, 9_007_199_254_740_993, i64::MAX];
const NUMBERS: &[f64] = &[0.5, 0.0, 3.0, -1.25, 1e21];
/// Names in maps.
const NAMES: &[&str] = &["a", "b.c/d", "x-1"];

/// Random numbers that are the same at every run (SplitMix64).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(SPLIT_MIX_STEP);
        split_mix(self.0)
    }

    /// Less than the limit, which is not zero.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(usize::try_from(self.below(items.len() as u64)).unwrap_or(0))
    }
}

/// Which fields that are not required an object gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    None,
    /// This one, and in it all.
    Only(Vec<String>),
    All,
    Random,
}

/// Generates objects of a schema.
pub(crate) struct Generator<'s> {
    schema: &'s Schema,
    random: Random,
    /// How many values were generated.
    pub(crate) values: usize,
    /// How many may be. From then on lists stay empty.
    limit: usize,
}

impl<'s> Generator<'s> {
    pub(crate) fn new(schema: &'s Schema, limit: usize) -> Self {
        Self { schema, random: Random::new(0x7261_6e73), values: 0, limit }
    }

    /// Whether no more objects are worth generating.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.values > self.limit
    }

    /// The choices of fields with which a schema is covered without chance.
    pub(crate) fn systematic(&self) -> Vec<Presence> {
        let mut all = vec![Presence::None];
        for part in ["spec", "status"] {
            let fields = self.schema.property(part).into_iter().flat_map(|schema| schema.properties.keys());
            all.extend(fields.map(|name| Presence::Only(vec![part.to_owned(), name.clone()])));
        }
        all.push(Presence::All);
        all
    }

    /// An object of a version.
    pub(crate) fn object(&mut self, api_version: &str, presence: &Presence) -> Value {
        let mut object =
            json!({"apiVersion": api_version, "kind": "Generated", "metadata": {"name": "generated"}});
        for part in ["spec", "status"] {
            if let Some(schema) = self.schema.property(part) {
                let required = self.schema.checks.required.iter().any(|name| name == part);
                if required || self.has(presence, &[part]) {
                    object[part] = self.value(schema, presence, &mut vec![part.to_owned()]);
                }
            }
        }
        object
    }

    fn has(&mut self, presence: &Presence, path: &[impl AsRef<str>]) -> bool {
        match presence {
            Presence::None => false,
            Presence::All => true,
            Presence::Random => self.random.one_in(2),
            Presence::Only(only) => path.iter().zip(only).all(|(name, only)| name.as_ref() == only),
        }
    }

    fn value(&mut self, schema: &Schema, presence: &Presence, path: &mut Vec<String>) -> Value {
        self.values += 1;
        if schema.nullable && *presence == Presence::Random && self.random.one_in(8) {
            return Value::Null;
        }
        if let Some(default) = &schema.default
            && self.random.one_in(4)
        {
            return default.clone();
        }
        if let Some(choice) = schema.checks.enumeration.as_ref().and_then(|all| self.random.pick(all)) {
            return choice.clone();
        }
        if schema.int_or_string {
            return if self.random.one_in(2) { json!(self.integer(schema)) } else { json!("25%") };
        }
        match schema.ty {
            Type::Object => Value::Object(self.fields(schema, presence, path)),
            Type::Array => self.entries(schema, presence, path),
            Type::String => texts::text(schema, &mut self.random).into(),
            Type::Integer => self.integer(schema).into(),
            Type::Number => self.number(schema),
            Type::Boolean => self.random.one_in(2).into(),
            Type::Any => json!({"any": self.random.below(9)}),
        }
    }

    fn fields(&mut self, schema: &Schema, presence: &Presence, path: &mut Vec<String>) -> Map<String, Value> {
        let mut fields = Map::new();
        for (name, property) in &schema.properties {
            path.push(name.clone());
            if schema.checks.required.contains(name) || self.has(presence, path) {
                fields.insert(name.clone(), self.value(property, presence, path));
            }
            path.pop();
        }
        if let Additional::Schema(values) = &schema.additional {
            let least = schema.checks.min_properties.unwrap_or(0);
            for (count, name) in (0..).zip(NAMES) {
                if count < least || self.has(presence, path) {
                    fields.insert((*name).to_owned(), self.value(values, presence, path));
                }
            }
        }
        if schema.preserve_unknown && self.has(presence, path) {
            fields.entry("unknown").or_insert_with(|| json!({"x": [1, "a"]}));
        }
        if schema.embedded {
            fields.insert("apiVersion".to_owned(), "v1".into());
            fields.insert("kind".to_owned(), "ConfigMap".into());
            fields.entry("metadata").or_insert_with(|| json!({"name": "embedded"}));
        }
        fields
    }

    fn entries(&mut self, schema: &Schema, presence: &Presence, path: &mut Vec<String>) -> Value {
        let bound = |value: Option<i64>| value.and_then(|n| u64::try_from(n).ok());
        let least = bound(schema.checks.min_items).unwrap_or(0).min(64);
        let most = bound(schema.checks.max_items).unwrap_or(3).max(least).min(least + 3);
        let count = match presence {
            Presence::None => least,
            _ => least + self.random.below(most - least + 1),
        };
        let mut entries: Vec<Value> = Vec::new();
        for _ in 0..count {
            let Some(items) = schema.items.as_ref().filter(|_| !self.is_exhausted()) else { break };
            let entry = self.value(items, presence, path);
            let is_new = match &schema.list_type {
                Some(ListType::Set) => !entries.contains(&entry),
                Some(ListType::Map(keys)) => {
                    !entries.iter().any(|other| keys.iter().all(|key| other.get(key) == entry.get(key)))
                }
                _ => !schema.checks.unique_items || !entries.contains(&entry),
            };
            if is_new {
                entries.push(entry);
            }
        }
        entries.into()
    }

    fn integer(&mut self, schema: &Schema) -> i64 {
        let checks = &schema.checks;
        #[expect(clippy::cast_possible_truncation, reason = "bounds out of range are bounds of the type")]
        let (mut least, mut most) = (
            checks
                .minimum
                .map_or(i64::MIN, |n| (n.ceil() as i64).saturating_add(checks.exclusive_minimum.into())),
            checks
                .maximum
                .map_or(i64::MAX, |n| (n.floor() as i64).saturating_sub(checks.exclusive_maximum.into())),
        );
        if schema.format.as_deref() == Some("int32") {
            (least, most) = (least.max(i32::MIN.into()), most.min(i32::MAX.into()));
        }
        let within: Vec<i64> = INTEGERS.iter().copied().filter(|n| (least..=most).contains(n)).collect();
        let chosen = self.random.pick(&within).copied();
        let mut bounds = [least, most].into_iter().filter(|n| ![i64::MIN, i64::MAX].contains(n));
        let bound = bounds.next_back().filter(|_| chosen.is_none() || self.random.one_in(4));
        let value = bound.or(chosen).unwrap_or(least);
        match checks.multiple_of {
            #[expect(clippy::cast_possible_truncation, reason = "a factor of integers")]
            Some(factor) if factor >= 1.0 => value / (factor as i64) * (factor as i64),
            _ => value,
        }
    }

    fn number(&mut self, schema: &Schema) -> Value {
        let checks = &schema.checks;
        let fits = |n: &f64| {
            checks.minimum.is_none_or(|least| *n >= least) && checks.maximum.is_none_or(|most| *n <= most)
        };
        let within: Vec<f64> = NUMBERS.iter().copied().filter(fits).collect();
        let value = self.random.pick(&within).copied().or(checks.minimum).or(checks.maximum).unwrap_or(0.0);
        Number::from_f64(value).map_or(Value::Null, Value::Number)
    }
}
