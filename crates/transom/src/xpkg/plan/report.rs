//! A plan for people and for programs.

use super::objects::PlannedObject;
use super::resolve::Change;
use serde_json::{Value, json};
use std::fmt::Write;
use transom_console::table;
use transom_packages::Reference;
use transom_packages::constraint::versions;

pub(super) fn value(changes: &[Change], objects: &[PlannedObject], conflicts: &[String]) -> Value {
    json!({
        "packages": changes.iter().map(package).collect::<Vec<_>>(),
        "objects": objects.iter().map(object).collect::<Vec<_>>(),
        "conflicts": conflicts,
    })
}

fn package(change: &Change) -> Value {
    let requires = |(name, constraint): &(String, String)| json!({"package": name, "constraint": constraint});
    json!({
        "action": action(change),
        "kind": change.kind.kind(),
        "name": change.name,
        "package": change.package,
        "before": change.before.as_ref().filter(|before| **before != change.package),
        "digest": change.read.digest.as_ref().map(|digest| digest.as_str()),
        "builtIn": change.read.package.is_none(),
        "requiredBy": change.required_by.iter().map(requires).collect::<Vec<_>>(),
    })
}

/// What happens to a package. Versions that cannot be compared are merely changed.
fn action(change: &Change) -> &'static str {
    let tag = |text: &str| Reference::parse(text).ok()?.tag;
    match &change.before {
        None => "create",
        Some(before) if *before == change.package => "keep",
        Some(before) => {
            let tags = [tag(before).unwrap_or_default(), tag(&change.package).unwrap_or_default()];
            match &versions(&tags)[..] {
                [_, later] if later.original == tags[1] => "upgrade",
                [_, _] => "downgrade",
                _ => "change",
            }
        }
    }
}

fn object(object: &PlannedObject) -> Value {
    json!({
        "action": object.fate.name(),
        "apiVersion": object.api_version,
        "kind": object.kind,
        "name": object.name,
        "package": object.of,
        "fields": object.fields,
    })
}

pub(super) fn text(plan: &Value) -> String {
    let mut out = String::new();
    let list = |name: &str| plan[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let field = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let packages: Vec<Vec<String>> = list("packages").iter().map(package_row).collect();
    section(&mut out, "Packages", &packages);
    let objects: Vec<Vec<String>> = list("objects")
        .iter()
        .map(|object| {
            let fields = object["fields"].as_array().map(Vec::as_slice).unwrap_or_default();
            let fields: Vec<&str> = fields.iter().filter_map(Value::as_str).collect();
            let mut row: Vec<String> =
                ["action", "kind", "name", "package"].iter().map(|name| field(object, name)).collect();
            row.push(fields.join(", "));
            row
        })
        .collect();
    section(&mut out, "Objects", &objects);
    let conflicts: Vec<Vec<String>> =
        list("conflicts").iter().filter_map(Value::as_str).map(|text| vec![text.to_owned()]).collect();
    section(&mut out, "Conflicts", &conflicts);
    out
}

fn package_row(package: &Value) -> Vec<String> {
    let field = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
    let required = package["requiredBy"].as_array().map(Vec::as_slice).unwrap_or_default();
    let required: Vec<String> = required
        .iter()
        .map(|by| {
            let text = |name: &str| by[name].as_str().unwrap_or_default().to_owned();
            format!("{} requires {}", text("package"), text("constraint"))
        })
        .collect();
    let name = format!("{}/{}", field("kind").to_lowercase(), field("name"));
    let digest = if package["builtIn"] == true { "built in".to_owned() } else { field("digest") };
    let mut notes = Vec::new();
    if !field("before").is_empty() {
        notes.push(format!("from {}", field("before")));
    }
    notes.extend(required);
    vec![field("action"), name, field("package"), digest, notes.join("; ")]
}

fn section(out: &mut String, title: &str, rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let blank = if out.is_empty() { "" } else { "\n" };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{blank}{title}");
    for row in table(rows) {
        let _ = writeln!(out, "  {}", row.trim_end());
    }
}
