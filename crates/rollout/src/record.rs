//! The record of a rollout: all that is needed to continue it or to roll it back, from anywhere. Pure.
//!
//! It is a ConfigMap, one for each Composition, so that a Composition has at most one rollout at a time. It is written
//! before the first composite resource is, and has what each of them had before. `state` is small and written often;
//! `resources` has a line for each composite resource and is written once.

use crate::choice::Choice;
use serde_json::{Value, json};
use std::time::Duration;
use transom_engine::Key;
use transom_object::hash::fnv1a;
use transom_object::{GroupVersion, GroupVersionKind, meta};
use transom_xapi::composite::Layout;

/// The label by which records are found.
pub(crate) const LABEL: &str = "transom.io/rollout";
const PREFIX: &str = "transom-rollout-";
/// The most bytes of the lines about composite resources. API servers accept ConfigMaps of 1 MiB.
const MAX_RESOURCES_BYTES: usize = 900 << 10;
/// The longest name of an object.
const MAX_NAME_BYTES: usize = 253;
/// Stands for a field that is not set.
const NOTHING: &str = "-";

/// How far a rollout is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Composite resources are moved to the revision.
    Progressing,
    /// One of them did not become ready.
    Stopped,
    /// All are moved and ready.
    Done,
    /// Composite resources are given back what they had.
    RollingBack,
    /// All have what they had before.
    RolledBack,
}

impl Phase {
    const ALL: [Self; 5] =
        [Self::Progressing, Self::Stopped, Self::Done, Self::RollingBack, Self::RolledBack];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Progressing => "Progressing",
            Self::Stopped => "Stopped",
            Self::Done => "Done",
            Self::RollingBack => "RollingBack",
            Self::RolledBack => "RolledBack",
        }
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::RolledBack)
    }
}

/// Why a rollout stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Such as `App team-a/shop`.
    pub(crate) resource: String,
    /// The condition that is not as it should be, and its message.
    pub(crate) message: String,
}

/// A composite resource that is moved. One that has a claim is moved through it, because the claim's fields win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) xr: Key,
    /// What the composite resource had.
    pub(crate) before: Choice,
    /// Its claim, and what that had.
    pub(crate) claim: Option<(Key, Choice)>,
    /// Its wave, from zero.
    pub(crate) wave: usize,
}

/// A rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) composition: String,
    /// The kind of the composite resources.
    pub(crate) kind: GroupVersionKind,
    pub(crate) layout: Layout,
    /// The kind of their claims, if there can be any.
    pub(crate) claim_kind: Option<GroupVersionKind>,
    /// The name of the revision that they are moved to.
    pub(crate) to: String,
    /// How long each wave may take.
    pub(crate) timeout: Duration,
    /// Whether all is rolled back when a wave fails.
    pub(crate) rollback_on_failure: bool,
    /// Whether composite resources that were pinned are unpinned when all is done.
    pub(crate) unpin: bool,
    pub(crate) phase: Phase,
    /// The wave that is being moved, from zero.
    pub(crate) wave: usize,
    pub(crate) problem: Option<Problem>,
    /// Whether the command that works on it is asked to stop.
    pub(crate) paused: bool,
    /// The command that works on it.
    pub(crate) holder: Option<String>,
    /// Changes while the holder works.
    pub(crate) renewals: u64,
    /// By wave, then by name.
    pub(crate) targets: Vec<Target>,
}

impl Record {
    /// The name of the record of a Composition.
    pub(crate) fn name(composition: &str) -> String {
        let name = format!("{PREFIX}{composition}");
        if name.len() <= MAX_NAME_BYTES {
            return name;
        }
        // The end of a long name is replaced by a number made of all of it, in the same way everywhere (FNV-1a).
        let hash = fnv1a(composition.bytes());
        let start: String = name.chars().take(MAX_NAME_BYTES - 17).collect();
        format!("{}-{hash:016x}", start.trim_end_matches(['.', '-']))
    }

    /// How many waves there are.
    pub(crate) fn waves(&self) -> usize {
        self.targets.iter().map(|target| target.wave + 1).max().unwrap_or_default()
    }

    /// The composite resources up to the current wave: those that may have been moved.
    pub(crate) fn begun(&self) -> &[Target] {
        let count = self.targets.partition_point(|target| target.wave <= self.wave);
        &self.targets[..count]
    }

    /// The ConfigMap, to be created in a namespace. An error says that there are too many composite resources.
    pub(crate) fn object(&self, namespace: &str) -> Result<Value, String> {
        let lines: String = self.targets.iter().map(line).collect();
        if lines.len() > MAX_RESOURCES_BYTES {
            return Err(format!(
                "a rollout of {} composite resources at once does not fit into its record",
                self.targets.len()
            ));
        }
        Ok(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": Self::name(&self.composition), "namespace": namespace, "labels": {LABEL: "true"},
            },
            "data": {"state": self.state().to_string(), "resources": lines},
        }))
    }

    /// The part of the record that changes.
    pub(crate) fn state(&self) -> Value {
        let kind = |kind: &GroupVersionKind| json!({"apiVersion": kind.api_version(), "kind": kind.kind});
        let problem = |p: &Problem| json!({"resource": p.resource, "message": p.message});
        json!({
            "composition": self.composition,
            "type": kind(&self.kind),
            "layout": if self.layout == Layout::Legacy { "Legacy" } else { "Modern" },
            "claimType": self.claim_kind.as_ref().map(kind),
            "to": self.to,
            "timeoutMilliseconds": u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            "rollbackOnFailure": self.rollback_on_failure,
            "unpin": self.unpin,
            "phase": self.phase.name(),
            "wave": self.wave,
            "problem": self.problem.as_ref().map(problem),
            "paused": self.paused,
            "holder": self.holder,
            "renewals": self.renewals,
        })
    }

    /// Reads a ConfigMap. An error says what is wrong with it.
    pub(crate) fn read(object: &Value) -> Result<Self, String> {
        let name = meta::name(object);
        let data =
            |key: &str| object.pointer(&format!("/data/{key}")).and_then(Value::as_str).unwrap_or_default();
        let state: Value = serde_json::from_str(data("state"))
            .map_err(|e| format!("ConfigMap {name:?} has no state of a rollout: {e}"))?;
        let wrong = |field: &str| format!("the state in ConfigMap {name:?} has no {field}");
        let text = |field: &str| state[field].as_str().map(str::to_owned).ok_or_else(|| wrong(field));
        let phase = text("phase")?;
        let targets: Option<Vec<Target>> = data("resources").lines().map(read_line).collect();
        let problem = &state["problem"];
        let part = |field: &str| problem[field].as_str().map(str::to_owned);
        Ok(Self {
            composition: text("composition")?,
            kind: read_kind(&state["type"]).ok_or_else(|| wrong("type"))?,
            layout: if text("layout")? == "Legacy" { Layout::Legacy } else { Layout::Modern },
            claim_kind: read_kind(&state["claimType"]),
            to: text("to")?,
            timeout: Duration::from_millis(
                state["timeoutMilliseconds"].as_u64().ok_or_else(|| wrong("timeoutMilliseconds"))?,
            ),
            rollback_on_failure: state["rollbackOnFailure"] == true,
            unpin: state["unpin"] == true,
            phase: Phase::ALL.into_iter().find(|p| p.name() == phase).ok_or_else(|| wrong("phase"))?,
            wave: state["wave"].as_u64().and_then(|n| n.try_into().ok()).ok_or_else(|| wrong("wave"))?,
            problem: part("resource")
                .zip(part("message"))
                .map(|(resource, message)| Problem { resource, message }),
            paused: state["paused"] == true,
            holder: state["holder"].as_str().map(str::to_owned),
            renewals: state["renewals"].as_u64().unwrap_or_default(),
            targets: targets
                .ok_or_else(|| format!("ConfigMap {name:?} has a line in resources that is damaged"))?,
        })
    }
}

fn read_kind(value: &Value) -> Option<GroupVersionKind> {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    Some(GroupVersion::parse(text("apiVersion")?)?.with_kind(text("kind")?))
}

/// Wave, composite resource, policy and revision; then claim, policy and revision, if it has one. Names have no spaces.
fn line(target: &Target) -> String {
    let word = |text: &Option<String>| text.clone().unwrap_or_else(|| NOTHING.to_owned());
    let mut words = vec![target.wave.to_string()];
    for (key, choice) in
        [(&target.xr, &target.before)].into_iter().chain(target.claim.iter().map(|(k, c)| (k, c)))
    {
        words.extend([key.to_string(), word(&choice.policy), word(&choice.revision)]);
    }
    words.join(" ") + "\n"
}

fn read_line(line: &str) -> Option<Target> {
    let words: Vec<&str> = line.split(' ').collect();
    let (wave, rest) = words.split_first()?;
    let object = |words: &[&str]| {
        let [key, policy, revision] = words else { return None };
        let word = |text: &str| (text != NOTHING).then(|| text.to_owned());
        Some((read_key(key), Choice { policy: word(policy), revision: word(revision) }))
    };
    let (xr, before) = object(rest.get(..3)?)?;
    let claim = match rest.get(3..)? {
        [] => None,
        claim => Some(object(claim)?),
    };
    Some(Target { xr, before, claim, wave: wave.parse().ok()? })
}

fn read_key(text: &str) -> Key {
    let (namespace, name) = text.split_once('/').unwrap_or(("", text));
    Key::new(namespace, name)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn record(targets: Vec<Target>) -> Record {
        Record {
            composition: "apps".to_owned(),
            kind: GroupVersionKind::new("example.org", "v1", "App"),
            layout: Layout::Modern,
            claim_kind: None,
            to: "apps-2".to_owned(),
            timeout: Duration::from_millis(600_500),
            rollback_on_failure: false,
            unpin: true,
            phase: Phase::Progressing,
            wave: 0,
            problem: None,
            paused: false,
            holder: None,
            renewals: 0,
            targets,
        }
    }

    fn choice(policy: Option<&str>, revision: Option<&str>) -> Choice {
        Choice { policy: policy.map(str::to_owned), revision: revision.map(str::to_owned) }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let plain = Target { xr: Key::new("", "one"), before: choice(None, None), claim: None, wave: 0 };
        let claimed = Target {
            xr: Key::new("", "two-x7k2p"),
            before: choice(Some("Automatic"), Some("apps-1")),
            claim: Some((Key::new("team-a", "two"), choice(Some("Manual"), None))),
            wave: 1,
        };
        let namespaced = Target { xr: Key::new("team-b", "three"), wave: 2, ..plain.clone() };
        for phase in Phase::ALL {
            let record = Record {
                phase,
                layout: Layout::Legacy,
                claim_kind: Some(GroupVersionKind::new("example.org", "v1", "Claim")),
                problem: Some(Problem { resource: "App one".into(), message: "Synced: \"no\"\nway".into() }),
                paused: true,
                holder: Some("me".into()),
                renewals: 7,
                wave: 1,
                ..record(vec![plain.clone(), claimed.clone(), namespaced.clone()])
            };
            let object = record.object("ns").unwrap();
            assert_eq!(Record::read(&object), Ok(record.clone()));
            assert_eq!((record.waves(), record.begun().len()), (3, 2));
        }
    }

    #[test]
    fn a_damaged_record_is_an_error_that_names_it() {
        let whole = record(vec![]).object("ns").unwrap();
        for (data, words) in [
            (json!({}), "has no state of a rollout"),
            (json!({"state": "{}"}), "has no phase"),
            (
                json!({"state": whole["data"]["state"], "resources": "0 a -\n"}),
                "line in resources that is damaged",
            ),
            (json!({"state": whole["data"]["state"], "resources": "x a - -\n"}), "damaged"),
            (json!({"state": whole["data"]["state"], "resources": "0 a - - b -\n"}), "damaged"),
        ] {
            let object = json!({"metadata": {"name": "transom-rollout-apps"}, "data": data});
            let error = Record::read(&object).unwrap_err();
            assert!(error.contains(words) && error.contains("transom-rollout-apps"), "{error}");
        }
    }

    #[test]
    fn its_size_is_bounded() {
        let target = |i: usize| Target {
            xr: Key::new("some-namespace", format!("some-application-{i:05}")),
            before: choice(Some("Automatic"), Some("applications-1a2b3c4")),
            claim: None,
            wave: 0,
        };
        assert!(record((0..10_000).map(target).collect()).object("ns").is_ok());
        let error = record((0..20_000).map(target).collect()).object("ns").unwrap_err();
        assert!(error.contains("20000 composite resources"), "{error}");
    }

    #[test]
    fn a_long_name_is_shortened_and_stays_distinct() {
        assert_eq!(Record::name("apps"), "transom-rollout-apps");
        let long = |end: &str| Record::name(&format!("{}{end}", "a".repeat(250)));
        assert!(long("b").len() <= MAX_NAME_BYTES && long("b") != long("c"));
    }
}
