//! The plan of a rollout, for people and for programs.

use crate::preview::{Fate, Field, ObjectChange, Preview};
use crate::record::Target;
use crate::survey::{Instance, Platform, Selected};
use serde_json::{Value, json};
use std::fmt::Write;

/// The most composite resources whose changes are shown to people, unless they want all.
const SHOWN_RESOURCES: usize = 10;
/// The most fields of an object that are shown, unless all are wanted.
const SHOWN_FIELDS: usize = 10;

/// A rollout that could be started.
pub(crate) struct Planned {
    pub(crate) platform: Platform,
    /// The name of the revision.
    pub(crate) to: String,
    pub(crate) selected: Selected,
    /// What happens to each target.
    pub(crate) previews: Vec<Preview>,
}

impl Planned {
    /// Whether a composite resource would fail.
    pub(crate) fn fails(&self) -> bool {
        self.previews.iter().any(|preview| matches!(preview, Preview::Fails(_)))
    }

    fn count(&self, fate: Fate) -> usize {
        let changes = self.previews.iter().map(|preview| match preview {
            Preview::Changes(changes) => changes.iter().filter(|change| change.fate == fate).count(),
            _ => 0,
        });
        changes.sum()
    }
}

pub(crate) fn value(planned: &Planned) -> Value {
    let Planned { platform, to, selected, previews } = planned;
    let each = selected.targets.iter().zip(previews);
    let number = platform.revisions.iter().find(|r| r.metadata.name == *to).map(|r| r.spec.revision);
    let last = selected.targets.last().map_or(0, |(target, _)| target.wave + 1);
    let sizes: Vec<usize> =
        (0..last).map(|wave| selected.targets.iter().filter(|(t, _)| t.wave == wave).count()).collect();
    let are = |of: fn(&Preview) -> bool| previews.iter().filter(|preview| of(preview)).count();
    json!({
        "composition": platform.composition.metadata.name,
        "type": {"apiVersion": platform.kind.api_version(), "kind": platform.kind.kind},
        "to": to,
        "toNumber": number,
        "waves": sizes,
        "resources": each.map(|((target, instance), preview)| resource(target, instance, preview)).collect::<Vec<_>>(),
        "skipped": skipped(selected),
        "already": selected.already,
        "summary": {
            "resources": selected.targets.len(),
            "create": planned.count(Fate::Create),
            "change": planned.count(Fate::Change),
            "delete": planned.count(Fate::Delete),
            "failing": are(|preview| matches!(preview, Preview::Fails(_))),
            "unknown": are(|preview| matches!(preview, Preview::Unknown(_))),
        },
    })
}

/// What is meant and cannot be moved.
pub(crate) fn skipped(selected: &Selected) -> Value {
    let one = |(key, why): &(transom_engine::Key, &str)| json!({"name": key.to_string(), "reason": why});
    selected.skipped.iter().map(one).collect()
}

fn resource(target: &Target, instance: &Instance, preview: &Preview) -> Value {
    let mut value = json!({
        "name": target.xr.to_string(),
        "claim": target.claim.as_ref().map(|(key, _)| key.to_string()),
        "wave": target.wave + 1,
        "from": instance.revision(),
        "policy": target.before.policy,
    });
    match preview {
        Preview::Changes(changes) => value["changes"] = changes.iter().map(change).collect(),
        Preview::Fails(why) => value["fails"] = why.as_str().into(),
        Preview::Unknown(why) => value["unknown"] = why.as_str().into(),
    }
    value
}

fn change(change: &ObjectChange) -> Value {
    let field = |f: &Field| json!({"path": f.path, "before": f.before, "after": f.after});
    json!({
        "action": change.fate.name(),
        "resource": change.resource,
        "apiVersion": change.api_version,
        "kind": change.kind,
        "namespace": change.namespace,
        "name": change.name,
        "fields": change.fields.iter().map(field).collect::<Vec<_>>(),
    })
}

fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

pub(crate) fn text(plan: &Value, full: bool) -> String {
    let mut out = String::new();
    let kind = word(&plan["type"], "kind");
    let resources = array(plan, "resources");
    let shown = if full { resources.len() } else { SHOWN_RESOURCES.min(resources.len()) };
    // Writing to a string cannot fail.
    for one in &resources[..shown] {
        let _ = write!(out, "{}", resource_text(one, kind, full));
    }
    if shown < resources.len() {
        let _ = writeln!(out, "… and {} more; --full shows all", resources.len() - shown);
    }
    for one in array(plan, "skipped") {
        let _ = writeln!(out, "skipped: {kind} {}: {}", word(one, "name"), word(one, "reason"));
    }
    let blank = if out.is_empty() { "" } else { "\n" };
    let _ = write!(out, "{blank}{}", summary(plan, kind));
    out
}

fn summary(plan: &Value, kind: &str) -> String {
    let count = |name: &str| plan["summary"][name].as_u64().unwrap_or_default();
    let waves: Vec<String> = array(plan, "waves").iter().map(ToString::to_string).collect();
    let mut out = String::new();
    let to = format!("{} (revision {})", word(plan, "to"), plan["toNumber"]);
    let in_waves =
        if waves.is_empty() { String::new() } else { format!(" in waves of {}", waves.join(", ")) };
    let _ = writeln!(
        out,
        "{} {kind} of Composition {} to {to}{in_waves}",
        count("resources"),
        word(plan, "composition")
    );
    let _ = writeln!(
        out,
        "composed resources: {} to create, {} to change, {} to delete",
        count("create"),
        count("change"),
        count("delete")
    );
    if count("failing") > 0 {
        let _ = writeln!(out, "{} would fail", count("failing"));
    }
    if count("unknown") > 0 {
        let _ = writeln!(out, "what would change in {} is not known", count("unknown"));
    }
    if plan["already"].as_u64().is_some_and(|already| already > 0) {
        let _ = writeln!(out, "at this revision already: {}", plan["already"]);
    }
    out
}

fn resource_text(one: &Value, kind: &str, full: bool) -> String {
    let claim = one["claim"].as_str().map(|claim| format!(", through its claim {claim}"));
    let policy = match one["policy"].as_str() {
        Some("Manual") => String::new(),
        other => format!(", whose update policy {} becomes Manual", other.unwrap_or("(none)")),
    };
    let mut out = format!(
        "wave {}: {kind} {} from {}{}{policy}\n",
        one["wave"],
        word(one, "name"),
        word(one, "from"),
        claim.unwrap_or_default()
    );
    match (one["fails"].as_str(), one["unknown"].as_str()) {
        (Some(why), _) => drop(writeln!(out, "  would fail: {why}")),
        (_, Some(why)) => drop(writeln!(out, "  what would change is not known: {why}")),
        _ if array(one, "changes").is_empty() => drop(writeln!(out, "  nothing changes")),
        _ => array(one, "changes").iter().for_each(|change| out.push_str(&change_text(change, full))),
    }
    out
}

fn change_text(change: &Value, full: bool) -> String {
    let namespace = word(change, "namespace");
    let slash = if namespace.is_empty() { "" } else { "/" };
    let mut out = format!(
        "  {} {} {namespace}{slash}{} ({})\n",
        word(change, "action"),
        word(change, "kind"),
        word(change, "name"),
        word(change, "resource")
    );
    let fields = array(change, "fields");
    let shown = if full { fields.len() } else { SHOWN_FIELDS.min(fields.len()) };
    for field in &fields[..shown] {
        let path = word(field, "path");
        let _ = match (field["before"].as_str(), field["after"].as_str()) {
            (Some(before), Some(after)) => writeln!(out, "    {path}: {before} → {after}"),
            (None, Some(after)) => writeln!(out, "    {path}: + {after}"),
            (before, None) => writeln!(out, "    {path}: - {}", before.unwrap_or_default()),
        };
    }
    if shown < fields.len() {
        let _ = writeln!(out, "    … and {} more fields", fields.len() - shown);
    }
    out
}
