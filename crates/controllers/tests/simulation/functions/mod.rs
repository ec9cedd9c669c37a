//! Revisions of a function in the simulation: they come with upgrades, go with limits, become unhealthy and healthy again,
//! while composite resources choose between them.
//!
//! | module | what it holds |
//! |---|---|
//! | `maker` | the function, by version, and the runtime that its revisions have |
//! | `acts` | what users do: upgrade, roll back, label, limit, choose revisions, activate by hand; and what happens to revisions |
//! | `ledger` | what must never happen, checked at every write and at every call |
//! | `model` | what must be when nothing goes wrong any more |

mod acts;
pub(super) mod ledger;
pub(super) mod maker;
pub(super) mod model;

use crate::simulation::packages::catalogue::REGISTRY;
use crate::simulation::platform::{self, Sort};
use serde_json::{Value, json};
use transom_packages::names::revision_name;
use transom_packages::{Digest, Reference};

/// What the objects are stored under.
pub(super) const FUNCTIONS: &str = "functions.pkg.crossplane.io";
pub(super) const REVISIONS: &str = "functionrevisions.pkg.crossplane.io";

/// The name of the Function, and the last part of its source.
pub(super) const NAME: &str = "maker";
/// The versions of its package, the tags of which are v1 to v4.
pub(super) const VERSIONS: std::ops::RangeInclusive<u64> = 1..=4;
/// The label by which steps choose revisions, and its values.
pub(super) const CHANNEL: &str = "channel";
pub(super) const CHANNELS: [&str; 2] = ["alpha", "stable"];

pub(super) fn source() -> String {
    format!("{REGISTRY}/{NAME}")
}

/// The content of `package.yaml` of a version.
fn stream(version: u64) -> String {
    json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Function",
        "metadata": {"name": NAME, "annotations": {"version": version.to_string()}},
        "spec": {"capabilities": ["composition"]},
    })
    .to_string()
}

fn digest(version: u64) -> Digest {
    Digest::of(stream(version).as_bytes())
}

/// The name of the FunctionRevision of a version.
pub(super) fn revision(version: u64) -> String {
    revision_name(NAME, &digest(version))
}

/// The version that a FunctionRevision is of.
pub(super) fn version_of(name: &str) -> Option<u64> {
    VERSIONS.into_iter().find(|version| revision(*version) == name)
}

/// The image in the registry.
pub(super) fn image(reference: &Reference) -> Option<(Digest, String)> {
    if reference.source() != source() {
        return None;
    }
    let is_it = |version: &u64| match &reference.digest {
        Some(wanted) => digest(*version) == *wanted,
        None => reference.tag.as_deref() == Some(&format!("v{version}")),
    };
    VERSIONS.into_iter().find(is_it).map(|version| (digest(version), stream(version)))
}

/// What is in composed objects as their version, when a version of the function composes for a version of a Composition.
/// It is even when that of the Composition is: all versions of the function compose the same parts.
pub(super) fn composed_version(composition: u64, function: u64) -> u64 {
    function * 10 + composition
}

/// Which revision a step chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Newest,
    /// `functionRevisionRef`, by version.
    Named(u64),
    /// `functionRevisionSelector`.
    Labelled(&'static str),
    /// `function: REPOSITORY@DIGEST`, by version.
    Image(u64),
}

/// A Composition whose step chooses a revision. Its input says which, so that the function can check it.
pub(super) fn composition(sort: Sort, version: u64, choice: Choice) -> Value {
    let mut composition = platform::composition(sort, version);
    let step = &mut composition["spec"]["pipeline"][0];
    step["functionRef"]["name"] = NAME.into();
    match choice {
        Choice::Newest => {}
        Choice::Named(version) => step["functionRevisionRef"] = json!({"name": revision(version)}),
        Choice::Labelled(channel) => {
            step["functionRevisionSelector"] = json!({"matchLabels": {CHANNEL: channel}});
        }
        Choice::Image(version) => {
            *step = json!({
                "step": step["step"], "input": step["input"],
                "function": format!("{}@{}", source(), digest(version)),
            });
        }
    }
    step["input"]["revision"] = match choice {
        Choice::Named(version) | Choice::Image(version) => revision(version).into(),
        Choice::Newest | Choice::Labelled(_) => Value::Null,
    };
    step["input"]["channel"] = match choice {
        Choice::Labelled(channel) => channel.into(),
        _ => Value::Null,
    };
    composition
}
