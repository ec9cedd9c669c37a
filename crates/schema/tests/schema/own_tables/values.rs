//! Tables about values of a type: validation, field sets, merging, comparing, removing, reconciling.

use super::literal::{self, Names, Outcome, field, items, set, text};
use super::tables::Tables;
use serde_json::Value;
use std::sync::Arc;
use transom_schema::Schema;
use transom_schema::own::element::equal;
use transom_schema::own::typed::{self, Comparison, Duplicates};
use transom_schema::own::{Set, Type};

struct Kind(Arc<Schema>);

impl Kind {
    fn ty(&self) -> Type<'_> {
        Type::node(&self.0)
    }

    fn parse(&self, lit: &Value, duplicates: Duplicates) -> Outcome<Value> {
        let value = literal::yaml(&text(lit, &Names::new())?)?;
        typed::validate(self.ty(), &value, duplicates).map_err(|e| format!("{value}: {e}"))?;
        Ok(value)
    }
}

fn same(got: &Value, want: &Value) -> Outcome {
    if equal(got, want) { Ok(()) } else { Err(format!("got {got}, expected {want}")) }
}

fn same_set(what: &str, got: &Set, want: &Set) -> Outcome {
    if got == want { Ok(()) } else { Err(format!("{what}: got\n{got}\nexpected\n{want}")) }
}

fn part<'a>(row: &'a Value, i: usize, name: &str) -> Outcome<&'a Value> {
    items(row).get(i).or_else(|| field(row, name)).ok_or_else(|| format!("no {name}"))
}

pub(crate) fn run(tables: &Tables, file: &str, case: &Value) -> Outcome {
    let stem = file.split(".L").next().unwrap_or_default();
    match stem {
        "typed-comparison.cases" => return comparison(case),
        "typed-parser.tests" => return parse(tables, case),
        _ => {}
    }
    let root = field(case, "rootTypeName").and_then(Value::as_str).ok_or("no root")?;
    let name = if stem.starts_with("typed-reconcile") { "newSchema" } else { "schema" };
    let kind = Kind(tables.types_of(case, name)?.schema(root).ok_or("no root type")?);
    let each = |list: &str, work: &dyn Fn(&Value) -> Outcome| -> Outcome {
        let rows = field(case, list).map_or(&[][..], items);
        rows.iter().enumerate().try_for_each(|(i, row)| work(row).map_err(|e| format!("{list} {i}: {e}")))
    };
    match stem {
        "typed-validate.validationCases" => {
            each("validObjects", &|o| kind.parse(o, Duplicates::Forbid).map(drop))?;
            each("invalidObjects", &|o| must_fail(kind.parse(o, Duplicates::Forbid)))?;
            each("duplicatesObjects", &|o| {
                must_fail(kind.parse(o, Duplicates::Forbid))?;
                kind.parse(o, Duplicates::Allow).map(drop)
            })
        }
        "typed-toset.fieldsetCases" => each("pairs", &|row| {
            let object = kind.parse(part(row, 0, "object")?, Duplicates::Allow)?;
            let got = typed::to_field_set(kind.ty(), &object).map_err(|e| e.to_string())?;
            same_set("set", &got, &set(Some(part(row, 1, "set")?), &Names::new())?)
        }),
        "typed-merge.mergeCases" => each("triplets", &|row| merge(&kind, row)),
        "typed-symdiff.symdiffCases" => each("quints", &|row| compare(&kind, row)),
        "typed-remove.removeCases" => each("quadruplets", &|row| remove(&kind, row)),
        "typed-remove.reversibleExtractCases" => each("pairs", &|row| reversible(&kind, row)),
        "typed-remove.extractWithKeysCases" => each("triplets", &|row| extract_with_keys(&kind, row)),
        "typed-reconcile_schema.reconcileCases" => {
            let old = set(field(case, "oldFields"), &Names::new())?;
            let got = typed::reconcile_with_schema(&old, kind.ty());
            match (got, field(case, "fixedFields")) {
                (None, None) => Ok(()),
                (Some(got), Some(want)) => same_set("fixed", &got, &set(Some(want), &Names::new())?),
                (got, _) => Err(format!("got {got:?}")),
            }
        }
        other => Err(format!("no runner for {other}")),
    }
}

fn must_fail(result: Outcome<Value>) -> Outcome {
    match result {
        Ok(value) => Err(format!("{value} should be invalid")),
        Err(e) if e.contains("invalid atom") => Err(format!("useless message: {e}")),
        Err(_) => Ok(()),
    }
}

fn merge(kind: &Kind, row: &Value) -> Outcome {
    let live = kind.parse(part(row, 0, "lhs")?, Duplicates::Allow)?;
    let config = kind.parse(part(row, 1, "rhs")?, Duplicates::Forbid)?;
    let want = kind.parse(part(row, 2, "out")?, Duplicates::Allow)?;
    let got = typed::merge(kind.ty(), &live, &config).map_err(|e| e.to_string())?;
    same(&got.unwrap_or_default(), &want)
}

fn compare(kind: &Kind, row: &Value) -> Outcome {
    let old = kind.parse(part(row, 0, "lhs")?, Duplicates::Allow)?;
    let new = kind.parse(part(row, 1, "rhs")?, Duplicates::Allow)?;
    let got = typed::compare(kind.ty(), &old, &new).map_err(|e| e.to_string())?;
    let back = typed::compare(kind.ty(), &new, &old).map_err(|e| e.to_string())?;
    let want = |i, name| set(Some(part(row, i, name)?), &Names::new());
    same_set("removed", &got.removed, &want(2, "removed")?)?;
    same_set("modified", &got.modified, &want(3, "modified")?)?;
    same_set("added", &got.added, &want(4, "added")?)?;
    same_set("modified back", &back.modified, &got.modified)?;
    same_set("removed back", &back.removed, &got.added)?;
    same_set("added back", &back.added, &got.removed)
}

fn remove(kind: &Kind, row: &Value) -> Outcome {
    let object = kind.parse(part(row, 0, "object")?, Duplicates::Forbid)?;
    let fields = set(Some(part(row, 1, "set")?), &Names::new())?;
    let (left, taken) = (part(row, 2, "removeOutput")?, part(row, 3, "extractOutput")?);
    if left != "unparseable" {
        let mut got = object.clone();
        typed::remove_items(kind.ty(), &mut got, &fields);
        same(&got, &kind.parse(left, Duplicates::Forbid)?).map_err(|e| format!("remove: {e}"))?;
    }
    if taken != "unparseable" {
        let got = typed::extract_items(kind.ty(), &object, &fields);
        same(&got, &kind.parse(taken, Duplicates::Forbid)?).map_err(|e| format!("extract: {e}"))?;
    }
    Ok(())
}

fn reversible(kind: &Kind, row: &Value) -> Outcome {
    let object = kind.parse(part(row, 0, "object")?, Duplicates::Forbid)?;
    let config = kind.parse(part(row, 1, "pso")?, Duplicates::Forbid)?;
    let merged = typed::merge(kind.ty(), &object, &config).map_err(|e| e.to_string())?.unwrap_or_default();
    let fields = typed::to_field_set(kind.ty(), &config).map_err(|e| e.to_string())?.leaves();
    same(&typed::extract_items(kind.ty(), &merged, &fields), &config)
}

fn extract_with_keys(kind: &Kind, row: &Value) -> Outcome {
    let object = kind.parse(part(row, 0, "object")?, Duplicates::Forbid)?;
    let fields = set(Some(part(row, 1, "set")?), &Names::new())?;
    let got = typed::extract_items_with_keys(kind.ty(), &object, &fields);
    let want = match literal::resolve(part(row, 2, "wantOutput")?, &Names::new())? {
        Value::String(text) => literal::yaml(&text)?,
        value => value,
    };
    same(&got, &want)
}

fn comparison(case: &Value) -> Outcome {
    let none = Names::new();
    let read = |name: &str| -> Outcome<Comparison> {
        let lit = field(case, name).ok_or_else(|| format!("no {name}"))?;
        Ok(Comparison {
            removed: set(field(lit, "Removed"), &none)?,
            modified: set(field(lit, "Modified"), &none)?,
            added: set(field(lit, "Added"), &none)?,
        })
    };
    let got = read("Comparison")?.without(&set(field(case, "Remove"), &none)?);
    let want = read("Expect")?;
    let fails = field(case, "Fails").and_then(Value::as_bool).unwrap_or_default();
    if (got == want) != fails { Ok(()) } else { Err(format!("got {got:?}")) }
}

/// Real objects fit the schemas of their kinds, and have the fields that are recorded for them.
fn parse(tables: &Tables, case: &Value) -> Outcome {
    let root = field(case, "typename").and_then(Value::as_str).ok_or("no type")?;
    let file = field(case, "obj").and_then(|o| o["args"][0]["args"][0].as_str()).ok_or("no file")?;
    let kind = Kind(tables.kubernetes_types()?.schema(root).ok_or("no such type")?);
    let object = transom_object::yaml::read(&tables.data(file)?).map_err(|e| e.to_string())?;
    typed::validate(kind.ty(), &object, Duplicates::Forbid).map_err(|e| e.to_string())?;
    typed::to_field_set(kind.ty(), &object).map_err(|e| e.to_string())?;
    let recorded = file.replace(".yaml", "set.json");
    let Ok(recorded) = tables.data(&recorded) else { return Ok(()) };
    let recorded = Set::from_json(&recorded).map_err(|e| e.to_string())?;
    same_set("round trip", &Set::from_json(&recorded.to_json()).map_err(|e| e.to_string())?, &recorded)
}
