//! Tables that run applies and updates one after the other and look at object and owners in the end.

use super::literal::{self, Names, Outcome, args, call, field, items, text};
use super::smd_schema::Types;
use super::tables::Tables;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_schema::Schema;
use transom_schema::own::element::equal;
use transom_schema::own::typed::{self, Duplicates};
use transom_schema::own::updater::Updater;
use transom_schema::own::{ApplyError, Managers, Owned, Set, Type};

/// The schemas of a kind by version.
#[derive(Clone)]
pub(crate) enum Parser {
    Same(Arc<Schema>),
    ByVersion(BTreeMap<String, Arc<Schema>>),
}

impl Parser {
    pub(crate) fn new(types: &Types) -> Outcome<Self> {
        let versions: BTreeMap<_, _> = types
            .names()
            .filter(|n| n.strip_prefix('v').is_some_and(|n| n.parse::<u32>().is_ok()))
            .filter_map(|n| Some((n.to_owned(), types.schema(n)?)))
            .collect();
        if versions.is_empty() {
            return types.schema(types.first()).map(Self::Same).ok_or_else(|| "no type".to_owned());
        }
        Ok(Self::ByVersion(versions))
    }

    fn schema(&self, version: &str) -> Option<Arc<Schema>> {
        match self {
            Self::Same(schema) => Some(schema.clone()),
            Self::ByVersion(schemas) => schemas.get(version).cloned(),
        }
    }
}

/// How a table's kind converts between versions.
#[derive(Clone, Copy)]
pub(crate) enum Converter {
    /// All versions are the same.
    Identity,
    /// Keys repeat their letter as often as the version says.
    Repeating,
    /// Fields end in their version.
    Renaming,
    /// One version can not be reached without a field of the other.
    Reliant,
}

impl Converter {
    pub(crate) fn of(file: &str) -> Self {
        match file {
            f if f.starts_with("merge-ignore.tests.L277") => Self::Repeating,
            f if f.starts_with("merge-multiple_appliers.tests.L1237") => Self::Repeating,
            f if f.starts_with("merge-multiple_appliers.tests.L351") => Self::Renaming,
            f if f.starts_with("merge-multiple_appliers.tests.L1471") => Self::Renaming,
            f if f.starts_with("merge-multiple_appliers.tests.L1883") => Self::Reliant,
            _ => Self::Identity,
        }
    }

    fn convert(self, value: &Value, from: &str, to: &str) -> Option<Value> {
        match self {
            Self::Identity => Some(value.clone()),
            Self::Repeating => Some(repeat(value, to.strip_prefix('v')?.parse().ok()?, true)),
            Self::Renaming => Some(rename(value, &|k| match k.strip_suffix(from) {
                Some(stem) => format!("{stem}{to}"),
                None => k.to_owned(),
            })),
            Self::Reliant if to == "v1" && value.get("required_field_bar").is_none() => None,
            Self::Reliant => Some(rename(value, &|k| match (k, to) {
                ("required_field_bar", "v1") => "field_foo_rely_on_bar".to_owned(),
                ("field_foo_rely_on_bar", "v2") => "required_field_bar".to_owned(),
                _ => k.to_owned(),
            })),
        }
    }
}

fn repeat(value: &Value, times: usize, top: bool) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(k, v)| {
                let key = if top { k.clone() } else { k[..1].repeat(times) };
                (key, repeat(v, times, false))
            })
            .collect(),
        other => other.clone(),
    }
}

fn rename(value: &Value, key: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(k, v)| (key(k), rename(v, key))).collect(),
        Value::Array(items) => items.iter().map(|v| rename(v, key)).collect(),
        other => other.clone(),
    }
}

struct State<'a> {
    tables: &'a Tables,
    parser: Parser,
    converter: Converter,
    ignored: BTreeMap<String, Arc<Set>>,
    live: Value,
    version: String,
    managers: Managers,
}

impl State<'_> {
    fn updater<T>(&mut self, work: impl FnOnce(&Updater<'_>, &Value, &mut Managers) -> T) -> T {
        let parser = self.parser.clone();
        let (converter, ignored) = (self.converter, self.ignored.clone());
        let schema = |version: &str| parser.schema(version);
        let convert = |value: &Value, from: &str, to: &str| converter.convert(value, from, to);
        let ignored = |version: &str| ignored.get(version).cloned();
        let updater = Updater {
            schema: &schema,
            convert: &convert,
            ignored: &ignored,
            root: |schema| Type::node(schema),
        };
        work(&updater, &self.live, &mut self.managers)
    }

    fn move_to(&mut self, version: &str) -> Outcome {
        if self.version != version {
            if !self.live.is_null() {
                self.live =
                    self.converter.convert(&self.live, &self.version, version).ok_or("can not convert")?;
            }
            self.version = version.to_owned();
        }
        Ok(())
    }

    fn parse(&self, text: &str, version: &str, duplicates: Duplicates) -> Outcome<Value> {
        let value = literal::yaml(text)?;
        let schema = self.parser.schema(version).ok_or("no such version")?;
        typed::validate(Type::node(&schema), &value, duplicates).map_err(|e| e.to_string())?;
        Ok(value)
    }

    fn apply(&mut self, config: &Value, version: &str, manager: &str, force: bool) -> Result<(), ApplyError> {
        self.move_to(version).map_err(ApplyError::Failed)?;
        let id = literal::manager(manager);
        let mut managers = self.managers.clone();
        let new = self.updater(|u, live, _| u.apply(live, config, version, &mut managers, &id, force))?;
        self.managers = managers;
        self.live = new.unwrap_or_else(|| std::mem::take(&mut self.live));
        Ok(())
    }

    fn update(&mut self, new: Value, version: &str, manager: &str) -> Outcome {
        self.move_to(version)?;
        let id = literal::manager(manager);
        let touched = self
            .updater(|u, live, managers| u.update(live, &new, version, managers))
            .map_err(|e| e.to_string())?;
        let set = match self.managers.get(&id) {
            Some(own) => own.set.difference(&touched.removed).union(&touched.taken),
            None => touched.taken,
        };
        self.managers.remove(&id);
        if !set.is_empty() {
            self.managers.insert(id, Owned { set, api_version: version.to_owned(), time: None });
        }
        self.live = new;
        Ok(())
    }

    fn extract_apply(&mut self, config: &Value, version: &str, manager: &str) -> Outcome {
        if self.live.is_null() {
            return self.apply(config, version, manager, true).map_err(|e| e.to_string());
        }
        self.move_to(version)?;
        let schema = self.parser.schema(version).ok_or("no such version")?;
        let ty = Type::node(&schema);
        let owned = match self.managers.get(&literal::manager(manager)) {
            Some(owned) if owned.api_version != version => {
                return Err("can not extract another version".to_owned());
            }
            Some(owned) => owned.set.leaves(),
            None => Set::new(),
        };
        let extracted = typed::extract_items(ty, &self.live, &owned);
        let merged = typed::merge(ty, &extracted, config).map_err(|e| e.to_string())?.unwrap_or_default();
        self.apply(&merged, version, manager, true).map_err(|e| e.to_string())
    }

    fn run(&mut self, op: &Value, names: &Names) -> Outcome {
        let kind = op["$type"].as_str().unwrap_or_default();
        if kind == "ChangeParser" {
            let name = field(op, "Parser").and_then(|p| p["$id"].as_str()).ok_or("no parser")?;
            self.parser = self.tables.parser(name)?;
            let schema = self.parser.schema(&self.version).ok_or("no such version")?;
            return typed::validate(Type::node(&schema), &self.live, Duplicates::Forbid)
                .map_err(|e| e.to_string());
        }
        let get = |name: &str| text(field(op, name).ok_or_else(|| format!("no {name}"))?, names);
        let (manager, version, object) = (get("Manager")?, get("APIVersion")?, get("Object")?);
        let duplicates = if kind == "Update" { Duplicates::Allow } else { Duplicates::Forbid };
        let object = self.parse(&object, &version, duplicates)?;
        match kind {
            "Update" => self.update(object, &version, &manager),
            "ForceApply" => self.apply(&object, &version, &manager, true).map_err(|e| e.to_string()),
            "ExtractApply" => self.extract_apply(&object, &version, &manager),
            "Apply" => {
                let expected = field(op, "Conflicts").map(|c| conflicts(c, names)).transpose()?;
                match (self.apply(&object, &version, &manager, false), expected) {
                    (Ok(()), None) => Ok(()),
                    (Ok(()), Some(expected)) if expected.is_empty() => Ok(()),
                    (Err(ApplyError::Conflicts(got)), Some(expected)) => {
                        let mut got: Vec<_> =
                            got.iter().map(|c| (c.manager.manager.clone(), c.path.clone())).collect();
                        got.sort();
                        if got == expected {
                            Ok(())
                        } else {
                            Err(format!("conflicts {got:?}, expected {expected:?}"))
                        }
                    }
                    (got, expected) => Err(format!("got {got:?}, expected conflicts {expected:?}")),
                }
            }
            other => Err(format!("unknown operation {other}")),
        }
    }
}

fn conflicts(lit: &Value, names: &Names) -> Outcome<Vec<(String, transom_schema::own::Path)>> {
    let one = |c: &Value| {
        let manager = text(field(c, "Manager").ok_or("no manager")?, names)?;
        Ok((manager, literal::path(field(c, "Path").ok_or("no path")?, names)?))
    };
    let mut all: Vec<_> = items(lit).iter().map(one).collect::<Outcome<_>>()?;
    all.sort();
    Ok(all)
}

fn ignored(case: &Value, names: &Names) -> Outcome<BTreeMap<String, Arc<Set>>> {
    let lit = field(case, "IgnoredFields").or_else(|| field(case, "IgnoreFilter"));
    let Some(fields) = lit.and_then(|l| l.get("fields")).and_then(Value::as_object) else {
        return Ok(BTreeMap::new());
    };
    let one = |(version, lit): (&String, &Value)| {
        let set = if call(lit).ends_with("NewExcludeSetFilter") { args(lit).first() } else { Some(lit) };
        Ok((version.clone(), Arc::new(literal::set(set, names)?)))
    };
    fields.iter().map(one).collect()
}

/// Runs one case of a merge table.
pub(crate) fn run(
    tables: &Tables,
    parser: &Parser,
    converter: Converter,
    case: &Value,
    names: &Names,
) -> Outcome {
    let mut state = State {
        tables,
        parser: parser.clone(),
        converter,
        ignored: ignored(case, names)?,
        live: Value::Null,
        version: String::new(),
        managers: Managers::new(),
    };
    let ops = field(case, "Ops").or_else(|| field(case, "ops")).ok_or("no operations")?;
    for (i, op) in items(ops).iter().enumerate() {
        state.run(op, names).map_err(|e| format!("operation {i}: {e}"))?;
    }
    if let Some(object) = field(case, "Object") {
        let version = text(field(case, "APIVersion").unwrap_or(&json!("v1")), names)?;
        state.move_to(&version)?;
        let expected = state.parse(&text(object, names)?, &version, Duplicates::Allow)?;
        if !equal(&state.live, &expected) {
            return Err(format!("live {}, expected {expected}", state.live));
        }
    }
    if let Some(managed) = field(case, "Managed") {
        let expected = literal::managers(Some(managed), names)?;
        let diff = difference(&state.managers, &expected);
        if !diff.is_empty() {
            return Err(format!("owners differ: {diff:?}"));
        }
    }
    if state.managers.values().any(|owned| owned.set.is_empty()) {
        return Err("a manager without fields".to_owned());
    }
    Ok(())
}

/// What differs between two sets of owners; times and operations do not count.
pub(crate) fn difference(a: &Managers, b: &Managers) -> Managers {
    let mut diff = Managers::new();
    for (id, left) in a {
        match b.get(id) {
            None if left.set.is_empty() => {}
            None => {
                diff.insert(id.clone(), left.clone());
            }
            Some(right) if left.api_version != right.api_version => {
                diff.insert(id.clone(), right.clone());
            }
            Some(right) => {
                let set = left.set.difference(&right.set).union(&right.set.difference(&left.set));
                if !set.is_empty() {
                    diff.insert(id.clone(), Owned { set, ..right.clone() });
                }
            }
        }
    }
    for (id, right) in b.iter().filter(|(id, right)| !a.contains_key(id) && !right.set.is_empty()) {
        diff.insert(id.clone(), right.clone());
    }
    diff
}
