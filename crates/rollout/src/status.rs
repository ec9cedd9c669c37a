//! How far a rollout is, for people and for programs.

use crate::decide::{Objects, Standing, standings};
use crate::record::{Phase, Record};
use crate::writing::explain;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use transom_console::control_plane::within;
use transom_console::{Failure, Format, table};
use transom_engine::{Cluster, Key, existing};
use transom_object::GroupVersionKind;

/// Prints how far a rollout is, with all composite resources as they are now.
pub(crate) async fn print(cluster: &Cluster, record: &Record, output: Format) -> Result<(), Failure> {
    let composites = objects(cluster, &record.kind).await?;
    let claims = match &record.claim_kind {
        Some(kind) if record.targets.iter().any(|target| target.claim.is_some()) => {
            objects(cluster, kind).await?
        }
        _ => BTreeMap::new(),
    };
    let each: Vec<Objects<'_>> = record
        .targets
        .iter()
        .map(|target| Objects {
            xr: composites.get(&target.xr),
            claim: target.claim.as_ref().and_then(|(key, _)| claims.get(key)),
        })
        .collect();
    transom_console::print(output.write(&value(record, &each), text).as_bytes())?;
    Ok(())
}

async fn objects(cluster: &Cluster, kind: &GroupVersionKind) -> Result<BTreeMap<Key, Value>, Failure> {
    let listed = within(&kind.kind, cluster.list(kind, "", &BTreeMap::new())).await?;
    let listed = existing(listed.map(Some)).map_err(|e| explain(&kind.kind, &e))?;
    Ok(listed.unwrap_or_default().into_iter().map(|object| (Key::of(&object), object)).collect())
}

/// The state of a rollout, given the objects of all targets.
fn value(record: &Record, objects: &[Objects<'_>]) -> Value {
    // How all of them stand to the new revision, whatever is being done.
    let all = Record { phase: Phase::Progressing, wave: record.waves(), ..record.clone() };
    let standings = standings(&all, objects);
    let waves = (0..record.waves()).map(|wave| {
        let of: Vec<&Standing> = record
            .targets
            .iter()
            .zip(&standings)
            .filter_map(|(target, standing)| (target.wave == wave).then_some(standing))
            .collect();
        let moved = of.iter().filter(|standing| !matches!(standing, Standing::Due(_))).count();
        let ready = of.iter().filter(|standing| matches!(standing, Standing::Ready | Standing::Gone)).count();
        json!({"wave": wave + 1, "resources": of.len(), "moved": moved, "ready": ready})
    });
    let resources = record.targets.iter().zip(&standings).map(|(target, standing)| {
        let (state, message) = state(standing);
        json!({
            "name": target.xr.to_string(),
            "claim": target.claim.as_ref().map(|(key, _)| key.to_string()),
            "wave": target.wave + 1,
            "from": target.before.revision,
            "policyBefore": target.before.policy,
            "state": state,
            "message": message,
        })
    });
    let mut value = header(record);
    value["waves"] = waves.collect();
    value["resources"] = resources.collect();
    value
}

fn state(standing: &Standing) -> (&'static str, Option<&str>) {
    match standing {
        Standing::Gone => ("Deleted", None),
        Standing::Due(_) => ("NotMoved", None),
        Standing::Waiting(why) => ("Waiting", Some(why)),
        Standing::Ready => ("Ready", None),
        Standing::Failed(why) => ("Failed", Some(why)),
    }
}

fn header(record: &Record) -> Value {
    let problem = record.problem.as_ref();
    json!({
        "composition": record.composition,
        "type": {"apiVersion": record.kind.api_version(), "kind": record.kind.kind},
        "to": record.to,
        "phase": record.phase.name(),
        "wave": record.wave + 1,
        "waveCount": record.waves(),
        "paused": record.paused,
        "active": record.holder.is_some(),
        "problem": problem.map(|p| json!({"resource": p.resource, "message": p.message})),
    })
}

fn text(value: &Value) -> String {
    let word = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let composition = word(value, "composition");
    let phase = word(value, "phase");
    let mut out = format!(
        "{} of Composition {composition} to {}: {phase}{}, wave {} of {}\n",
        word(&value["type"], "kind"),
        word(value, "to"),
        if value["paused"] == true { " (paused)" } else { "" },
        value["wave"],
        value["waveCount"]
    );
    // Writing to a string cannot fail.
    if value["problem"].is_object() {
        let problem = &value["problem"];
        let _ = writeln!(out, "problem: {}: {}", word(problem, "resource"), word(problem, "message"));
    }
    let cell = |wave: &Value, name: &str| wave[name].to_string();
    let mut rows = vec![["WAVE", "RESOURCES", "MOVED", "READY"].map(str::to_owned).to_vec()];
    let waves = value["waves"].as_array().map(Vec::as_slice).unwrap_or_default();
    rows.extend(
        waves
            .iter()
            .map(|wave| ["wave", "resources", "moved", "ready"].map(|name| cell(wave, name)).to_vec()),
    );
    for row in table(&rows) {
        let _ = writeln!(out, "{row}");
    }
    if let Some(next) = advice(&phase, value["active"] == true, &composition) {
        let _ = writeln!(out, "{next}");
    }
    out
}

/// What the user can do next.
fn advice(phase: &str, active: bool, composition: &str) -> Option<String> {
    let back = format!("`transom rollout rollback {composition}` undoes it");
    match phase {
        _ if active => None,
        "Progressing" | "Stopped" => {
            Some(format!("`transom rollout resume {composition}` continues, {back}"))
        }
        "RollingBack" => Some(format!("`transom rollout resume {composition}` continues")),
        "Done" => Some(format!(
            "`transom rollout unpin {composition}` lets pinned ones follow the newest revision again, {back}"
        )),
        _ => None,
    }
}

/// All rollouts.
pub(crate) fn list(records: &[Record]) -> Value {
    records.iter().map(header).collect()
}

pub(crate) fn list_text(list: &Value) -> String {
    let mut rows = vec![["COMPOSITION", "KIND", "TO", "PHASE", "WAVE"].map(str::to_owned).to_vec()];
    for one in list.as_array().into_iter().flatten() {
        let word = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        let kind = one["type"]["kind"].as_str().unwrap_or_default().to_owned();
        let wave = format!("{}/{}", one["wave"], one["waveCount"]);
        rows.push(vec![word("composition"), kind, word("to"), word("phase"), wave]);
    }
    table(&rows).iter().fold(String::new(), |out, row| out + row + "\n")
}
