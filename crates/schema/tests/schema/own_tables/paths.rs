//! Tables about path elements, paths, sets and their JSON.

use super::literal::{self, Names, Outcome, args, call, element, field, items, path, set};
use super::merging::difference;
use super::tables::Tables;
use serde_json::Value;
use transom_schema::own::matcher::{Matcher, Step};
use transom_schema::own::{Element, Path, Set, Type, typed};

fn check(ok: bool, what: impl FnOnce() -> String) -> Outcome {
    if ok { Ok(()) } else { Err(what()) }
}

pub(crate) fn run(tables: &Tables, file: &str, case: &Value) -> Outcome {
    let none = Names::new();
    let at = |i: usize| items(case).get(i).ok_or_else(|| "short row".to_owned());
    let get = |name: &str| field(case, name);
    match file.split(".L").next().unwrap_or_default() {
        "fieldpath-element.table" => {
            let a = element(get("a").ok_or("no a")?, &none)?;
            let b = element(get("b").ok_or("no b")?, &none)?;
            let equal = get("eq").and_then(Value::as_bool).unwrap_or_default();
            check(if equal { a == b } else { a < b && a != b }, || format!("{a} and {b}"))
        }
        "fieldpath-fromvalue.table" => {
            let got = Set::from_value(&literal::yaml(at(0)?.as_str().ok_or("no text")?)?);
            same_set(&got, &set(Some(at(1)?), &none)?)
        }
        "fieldpath-managers.tests" => managers(case, &none),
        "fieldpath-path.table" => {
            let (fp, expect) = match (get("fp"), get("expect")) {
                (Some(fp), Some(expect)) => (fp, expect),
                _ => (at(1)?, at(2)?),
            };
            let got = path(fp, &none)?.to_string();
            check(got == expect.as_str().unwrap_or_default(), || got.clone())
        }
        "fieldpath-serialize-pe.tests" => serialize_element(file, at(0)?.as_str().ok_or("no text")?, at(1)?),
        "fieldpath-serialize.cases" => {
            let text = at(1)?.as_str().ok_or("no text")?;
            let wrong = file.ends_with("L320");
            check(Set::from_json(text).is_err() == wrong, || {
                format!("{text:?} should {}", if wrong { "fail" } else { "do" })
            })
        }
        "fieldpath-serialize.testCases" => {
            let text = |name: &str| get(name).and_then(Value::as_str).ok_or("no text");
            let (any, normal) = (text("nonNormalizedString")?, text("normalizedString")?);
            let parsed = Set::from_json(any).map_err(|e| e.to_string())?;
            check(parsed.to_json() == normal, || parsed.to_json())?;
            same_set(&parsed, &Set::from_json(normal).map_err(|e| e.to_string())?)
        }
        "fieldpath-set.cases" => laws_at_size(case),
        "fieldpath-set.testCases" => {
            let matcher = include_filter(get("filter").ok_or("no filter")?)?;
            let got = set(get("input"), &none)?.matching(&matcher);
            same_set(&got, &set(get("expect"), &none)?)
        }
        "fieldpath-set.table" => sets(tables, case, &none),
        other => Err(format!("no runner for {other}")),
    }
}

fn same_set(got: &Set, want: &Set) -> Outcome {
    check(got == want, || format!("got\n{got}\nexpected\n{want}"))
}

fn managers(case: &Value, none: &Names) -> Outcome {
    let lhs = literal::managers(field(case, "lhs"), none)?;
    let rhs = literal::managers(field(case, "rhs"), none)?;
    match field(case, "out") {
        Some(out) => {
            let got = difference(&lhs, &rhs);
            let want = literal::managers(Some(out), none)?;
            check(got == want, || format!("{got:?}"))
        }
        None => {
            let equal = field(case, "equal").and_then(Value::as_bool).unwrap_or_default();
            check((lhs == rhs) == equal, || format!("{lhs:?} and {rhs:?}"))
        }
    }
}

/// One table reads back what it writes, the other only reads.
fn serialize_element(file: &str, text: &str, lit: &Value) -> Outcome {
    let want = element(lit, &Names::new())?;
    let got = Element::parse(text).map_err(|e| e.to_string())?.ok_or("unknown kind")?;
    check(got == want, || format!("{got}"))?;
    if file.ends_with("L32") {
        check(want.to_key() == text, || want.to_key())?;
    }
    Ok(())
}

/// Rows of the sizes of a benchmark: the sets they ask for must obey the algebra.
fn laws_at_size(case: &Value) -> Outcome {
    let number = |i: usize| items(case).get(i).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let (Some(size), Some(min), Some(max)) = (number(0), number(1), number(2)) else {
        return Err("no numbers".to_owned());
    };
    let make = |seed: usize| -> Set {
        let path = |i: usize| {
            let length = min + (i * 7 + seed) % (max - min).max(1);
            Path(
                (0..length).map(|k| Element::field(&format!("f{}", (i * 31 + k * 17 + seed) % 13))).collect(),
            )
        };
        (0..size).map(path).collect()
    };
    let (a, b) = (make(1), make(5));
    same_set(&a.union(&b), &b.union(&a))?;
    same_set(&a.intersection(&b), &b.intersection(&a))?;
    same_set(&a.difference(&b).union(&a.intersection(&b)), &a)?;
    same_set(&a.recursive_difference(&a), &Set::new())?;
    same_set(&Set::from_json(&a.to_json()).map_err(|e| e.to_string())?, &a)
}

fn include_filter(lit: &Value) -> Outcome<Matcher> {
    let step = |lit: &Value| match call(lit) {
        "MatchAnyPathElement" => Ok(Step::Any),
        _ => element(lit, &Names::new()).map(Step::Is),
    };
    let prefixes = args(lit).iter().map(|m| args(m).iter().map(step).collect::<Outcome<Vec<_>>>());
    let matchers = prefixes.map(|p| Ok(Matcher::prefix(p?))).collect::<Outcome<Vec<_>>>()?;
    Ok(matchers.into_iter().reduce(|a, b| a.merge(&b)).unwrap_or(Matcher::Everything))
}

/// The set that membership is asked of.
fn subject() -> Outcome<Set> {
    let name = |n: &str| serde_json::json!({"$call": "_KBF", "args": ["name", n]});
    let order = serde_json::json!({"$call": "_KBF",
        "args": ["a", "a", "b", "a", "c", "a", "d", "a", "e", "a", "f", "a"]});
    let paths = serde_json::json!([
        ["foo", 0, "bar", "baz"],
        ["foo", 0, "bar"],
        ["foo", 0],
        ["foo", 1, "bar", "baz"],
        ["foo", 1, "bar"],
        ["qux", name("first")],
        ["qux", name("first"), "bar"],
        ["qux", name("second"), "bar"],
        ["canonicalOrder", order],
    ]);
    let paths = paths.as_array().into_iter().flatten();
    paths.map(|p| path(&serde_json::json!({"args": p}), &Names::new())).collect()
}

fn sets(tables: &Tables, case: &Value, none: &Names) -> Outcome {
    let get = |name: &str| field(case, name);
    if let [_, check_path, member] = items(case) {
        let path = path(check_path, none)?;
        return check(subject()?.has(&path.0) == member.as_bool().unwrap_or_default(), || format!("{path}"));
    }
    if get("schemaFn").is_some() {
        let before = tables.types_of(case, "schemaFn")?;
        let after = if get("newSchemaFn").is_some() {
            tables.types_of(case, "newSchemaFn")?
        } else {
            tables.types_of(case, "schemaFn")?
        };
        let (before, after) =
            (before.schema("type").ok_or("no type")?, after.schema("type").ok_or("no type")?);
        let value = literal::yaml(get("value").and_then(Value::as_str).ok_or("no value")?)?;
        let fields = typed::to_field_set(Type::node(&before), &value).map_err(|e| e.to_string())?;
        same_set(&fields, &set(get("expectedBefore"), none)?)?;
        let named = fields.ensure_named_fields_are_members(Some(Type::node(&after)));
        return same_set(&named, &set(get("expectedAfter"), none)?);
    }
    if get("expected").is_some() {
        return same_set(&set(get("input"), none)?.leaves(), &set(get("expected"), none)?);
    }
    let (a, b) = (set(get("a"), none)?, set(get("b"), none)?);
    if get("expectDifference").is_some() {
        same_set(&a.difference(&b), &set(get("expectDifference"), none)?)?;
        return same_set(&a.recursive_difference(&b), &set(get("expectRecursiveDifference"), none)?);
    }
    let equal = get("equal").and_then(Value::as_bool).unwrap_or_default();
    check((a == b) == equal, || format!("{a} and {b}"))
}
