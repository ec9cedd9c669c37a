//! Group, version, kind and resource; the words of field errors.

use super::Plan::{Run, Skip};
use super::{Case, is, run, same};
use serde_json::Value;
use std::cmp::Ordering;
use transom_object::conditions;
use transom_object::field::{Error, Kind, Path};
use transom_object::ids::{self, GroupVersionResource};
use transom_object::{GroupKind, GroupResource, GroupVersion, GroupVersionKind};

fn part(v: &Value, name: &str) -> String {
    v.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn kind(v: &Value) -> GroupVersionKind {
    GroupVersionKind::new(part(v, "Group"), part(v, "Version"), part(v, "Kind"))
}

#[test]
fn group_version_kind() {
    let plan = [
        (
            "TestGroupVersionParse",
            Run(|c: &Case<'_>| {
                let want = c.expected("out");
                let want = GroupVersion::new(part(want, "Group"), part(want, "Version"));
                match GroupVersion::parse(c.text("input")) {
                    None => is(!c.want_err().is_null(), "parse failed"),
                    Some(got) => same(got, want),
                }
            }),
        ),
        (
            "TestGroupResourceParse",
            Run(|c| {
                let want = c.expected("out");
                same(
                    GroupResource::parse(c.text("input")),
                    GroupResource::new(part(want, "Group"), part(want, "Resource")),
                )
            }),
        ),
        (
            "TestParseGroupKind",
            Run(|c| same(GroupKind::parse(c.text("input")), kind(c.expected("out")).group_kind())),
        ),
        (
            "TestParseKindArg",
            Run(|c| {
                same(GroupKind::parse(c.text("input")), kind(c.input("gk")).group_kind())?;
                let want = Some(c.input("gvk")).filter(|v| !v.is_null()).map(kind);
                same(GroupVersionKind::parse_arg(c.text("input")), want)
            }),
        ),
        (
            "TestParseResourceArg",
            Run(|c| {
                let gr = c.input("gr");
                same(
                    GroupResource::parse(c.text("input")),
                    GroupResource::new(part(gr, "Group"), part(gr, "Resource")),
                )?;
                let want = Some(c.input("gvr")).filter(|v| !v.is_null()).map(|v| GroupVersionResource {
                    group: part(v, "Group"),
                    version: part(v, "Version"),
                    resource: part(v, "Resource"),
                });
                same(GroupVersionResource::parse_arg(c.text("input")), want)
            }),
        ),
        (
            "TestToAPIVersionAndKind",
            Run(|c| {
                let gvk = kind(c.input("input"));
                same(gvk.api_version(), c.text("GroupVersion").to_owned())?;
                same(gvk.kind, c.text("Kind").to_owned())
            }),
        ),
        ("TestBestMatch", Skip("chooses among Go types registered for a codec; objects here are dynamic")),
        ("TestKindForGroupVersionKinds", Skip("chooses among Go types registered for a codec")),
    ];
    run("gvk", &plan);
}

#[test]
fn versions() {
    let plan = [
        (
            "TestCompareKubeAwareVersionStrings",
            Run(|c: &Case<'_>| {
                let greater = ids::compare_versions(c.text("v1"), c.text("v2")) == Ordering::Less;
                same(greater, c.expects("expectedGreater"))
            }),
        ),
        ("Test_parseKubeVersion", Skip("an internal of the comparison above")),
    ];
    run("version/kube-aware", &plan);
}

fn kind_of(words: &str) -> Option<Kind> {
    Some(match words {
        "Not found" => Kind::NotFound,
        "Required value" => Kind::Required,
        "Duplicate value" => Kind::Duplicate,
        "Invalid value" => Kind::Invalid,
        "Unsupported value" => Kind::NotSupported,
        "Forbidden" => Kind::Forbidden,
        "Too long" => Kind::TooLong,
        "Too short" => Kind::TooShort,
        "Too many" => Kind::TooMany,
        "Too few" => Kind::TooFew,
        "Internal error" => Kind::Internal,
        _ => return None,
    })
}

/// The tables carry errors only as text, so the value is read back from it.
fn reprinted(error: &Value) -> Option<String> {
    let (field, detail) = (part(error, "field"), part(error, "detail"));
    let kind = kind_of(&part(error, "type"))?;
    let text = part(error, "$error");
    let shown = text.strip_prefix(&format!("{field}: {}", part(error, "type")))?;
    let shown = if detail.is_empty() { shown } else { shown.strip_suffix(&format!(": {detail}"))? };
    let value = match shown.strip_prefix(": ") {
        None => Value::from("<unspecified>"),
        // Not JSON: a Go value that only prints itself.
        Some(json) => serde_json::from_str(json).ok()?,
    };
    Some(Error::new(kind, &Path::new(&field), value, detail).to_string())
}

#[test]
fn field_errors() {
    let plan = [
        (
            "TestErrorFormatting",
            Run(|c: &Case<'_>| match reprinted(c.input("input")) {
                None => Ok(()),
                Some(got) => same(got.as_str(), c.expected("expect").as_str().unwrap()),
            }),
        ),
        ("error_matcher", Skip("a helper of Go tests")),
        ("Declarative", Skip("bookkeeping of Go's generated validation")),
        ("TestErrorListOrigin", Skip("origins are a helper of Go tests")),
    ];
    run("field-errors", &plan);
}

fn list(v: &Value) -> Vec<Value> {
    v.as_array().cloned().unwrap_or_default()
}

#[test]
fn status_conditions() {
    let plan = [
        (
            "TestFindStatusCondition",
            Run(|c: &Case<'_>| {
                let conditions = list(c.input("conditions"));
                let got = conditions::find(&conditions, c.text("conditionType"));
                same(got, Some(c.expected("expected")).filter(|v| !v.is_null()))
            }),
        ),
        (
            "TestIsStatusConditionPresentAndEqual",
            Run(|c| {
                let conditions = list(c.input("conditions"));
                let got =
                    conditions::has_status(&conditions, c.text("conditionType"), c.text("conditionStatus"));
                same(got, c.expects("expected"))
            }),
        ),
        (
            "TestRemoveStatusCondition",
            Run(|c| {
                let mut conditions = list(c.input("conditions"));
                same(
                    conditions::remove(&mut conditions, c.text("conditionType")),
                    c.expects("expectRemoval"),
                )?;
                same(conditions, list(c.expected("expected")))
            }),
        ),
        (
            "TestSetStatusCondition",
            Run(|c| {
                let mut conditions = list(c.input("conditions"));
                let now = transom_object::time::parse("2024-01-01T00:00:00Z").unwrap();
                let changed = conditions::set(&mut conditions, c.input("toAdd").clone(), now);
                same(changed, c.expects("expectChanged"))?;
                same(conditions, list(c.expected("expected")))
            }),
        ),
        ("restmapper", Skip("resolves names to kinds on the client's side")),
        ("conditions-and-mapper/priority", Skip("resolves names to kinds on the client's side")),
    ];
    run("conditions-and-mapper", &plan);
    let plan = [(
        "TestGroupVersion",
        Run(|c: &Case<'_>| {
            let word = |s: &str| {
                s.trim_matches(['{', '}']).split_once(':').map(|(_, v)| v.trim_matches([' ', '"']).to_owned())
            };
            let (input, want) = (c.text("input"), c.expected("expect").as_str().unwrap());
            let input = word(input).unwrap_or_else(|| input.to_owned());
            let want = word(want).unwrap_or_else(|| want.to_owned());
            same(GroupVersion::parse(&input).map(|gv| gv.to_string()), Some(want))
        }),
    )];
    run("meta-v1/group_version", &plan);
    run("meta-v1/types", &[("", Skip("Go structs of discovery and of selectors, written as JSON"))]);
}
