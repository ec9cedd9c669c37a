//! `transom rollout pin` and `unpin`: composite resources with the update policy Automatic take up a new revision by
//! themselves, as soon as it exists. Pinned ones stay where they are until a rollout moves them.
//!
//! Both can be interrupted and repeated: an annotation on each object says which policy it had.

use crate::choice::{Choice, MANUAL};
use crate::drive::identity;
use crate::survey::{Instance, Platform};
use crate::writing::{FIELD_MANAGER, explain, write};
use crate::{At, STOPPED};
use clap::Args;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::Instant;
use transom_console::Failure;
use transom_engine::{Cluster, Key};
use transom_object::{GroupVersionKind, meta};
use transom_xapi::composite::Layout;
use transom_xapi::composition::LabelMatch;
use transom_xapi::selection;

/// The annotation with the update policy that an object had before it was pinned.
const PINNED: &str = "transom.io/rollout-pinned";
/// Stands for no policy at all.
const NONE: &str = "None";
/// How long the policy of a claim may take to reach its composite resource.
const REACH_TIMEOUT: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Objects that are written at the same time.
const MAX_PARALLEL_WRITES: usize = 16;

/// Keep all composite resources of a Composition at the revision that they have
///
/// Do this before a new version of a Composition is applied whose rollout is to be controlled: composite resources
/// with the update policy Automatic would take it up at once. Their policy becomes Manual; `unpin` undoes it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom rollout pin apps")]
pub struct Pin {
    /// The Composition
    composition: String,

    #[command(flatten)]
    at: At,
}

/// Let composite resources follow the newest revision again, as they did before they were pinned
///
/// Only those that are at the revision that they would choose: others would be moved at once, which is what a rollout
/// is for.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom rollout unpin apps")]
pub struct Unpin {
    /// The Composition
    composition: String,

    #[command(flatten)]
    at: At,
}

/// A patch of an object.
#[derive(Debug, PartialEq)]
struct Patch {
    claim: bool,
    key: Key,
    patch: Value,
}

pub(crate) async fn pin(options: &Pin) -> Result<ExitCode, Failure> {
    let cluster = options.at.control_plane.open().await?;
    let platform = Platform::read(&cluster, &options.composition).await?;
    let instances = platform.instances(&cluster).await?;
    let patches: Vec<Patch> = instances.iter().filter_map(|one| pinning(one, platform.layout)).collect();
    carry_out(&cluster, &platform, &patches).await?;
    let instances = match patches.iter().any(|patch| patch.claim) {
        true => reached(&cluster, &platform).await?,
        false => instances,
    };
    let unused: Vec<String> =
        instances.iter().filter(|one| one.own.revision.is_none()).map(|one| one.key().to_string()).collect();
    let kind = &platform.kind.kind;
    let value = json!({
        "composition": options.composition, "pinned": patches.len(), "resources": instances.len(), "notComposed": unused,
    });
    let text = |_: &Value| {
        let mut out =
            format!("{} of {} {kind} were pinned to their revision\n", patches.len(), instances.len());
        for name in &unused {
            out.push_str(&format!("not pinned: {kind} {name} has no revision yet\n"));
        }
        out
    };
    transom_console::print(options.at.output.write(&value, text).as_bytes())
}

/// What came of unpinning.
pub(crate) struct Unpinned {
    pub(crate) kind: String,
    pub(crate) count: usize,
    /// Those that stay pinned, with their revisions.
    behind: Vec<String>,
}

/// Gives all composite resources of a Composition back the policy that they had, unless they would be moved by that.
pub(crate) async fn release(cluster: &Cluster, composition: &str) -> Result<Unpinned, Failure> {
    let platform = Platform::read(cluster, composition).await?;
    let instances = platform.instances(cluster).await?;
    let (staying, behind): (Vec<&Instance>, Vec<&Instance>) = instances
        .iter()
        .filter(|one| unpinning(one, platform.layout).is_some())
        .partition(|one| stays(one, &platform));
    let patches: Vec<Patch> = staying.into_iter().filter_map(|one| unpinning(one, platform.layout)).collect();
    carry_out(cluster, &platform, &patches).await?;
    let behind = behind.into_iter().map(|one| format!("{} at {}", one.key(), one.revision())).collect();
    Ok(Unpinned { kind: platform.kind.kind, count: patches.len(), behind })
}

pub(crate) async fn unpin(options: &Unpin) -> Result<ExitCode, Failure> {
    let cluster = options.at.control_plane.open().await?;
    let Unpinned { kind, count, behind } = release(&cluster, &options.composition).await?;
    let value = json!({"composition": options.composition, "unpinned": count, "behind": behind});
    let text = |_: &Value| {
        let mut out = format!("{count} {kind} follow the newest revision again\n");
        for name in &behind {
            out.push_str(&format!("still pinned: {kind} {name}, which it would leave\n"));
        }
        out
    };
    transom_console::print(options.at.output.write(&value, text).as_bytes())?;
    Ok(if behind.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(STOPPED) })
}

/// Waits until the policies of claims have reached their composite resources: until then those would move.
async fn reached(cluster: &Cluster, platform: &Platform) -> Result<Vec<Instance>, Failure> {
    let started = Instant::now();
    loop {
        let instances = platform.instances(cluster).await?;
        let lagging = instances.iter().find(|one| {
            let claim = one.claim.as_ref().map(|claim| Choice::of(claim, Layout::Legacy));
            claim.is_some_and(|claim| claim.is_manual()) && !one.own.is_manual()
        });
        let Some(lagging) = lagging else { return Ok(instances) };
        if started.elapsed() > REACH_TIMEOUT {
            let what = format!(
                "the update policy of its claim does not reach {} {}",
                platform.kind.kind,
                lagging.key()
            );
            return Err(Failure::new(what).remedy("see the conditions of the claim, and repeat the command"));
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// The object that says what a composite resource uses, with its layout: its claim, if it has one.
fn decisive(instance: &Instance, layout: Layout) -> (&Value, bool, Layout) {
    match &instance.claim {
        Some(claim) => (claim, true, Layout::Legacy),
        None => (&instance.xr, false, layout),
    }
}

/// How a composite resource is pinned; nothing if it is, or has no revision that it could be pinned to.
fn pinning(instance: &Instance, layout: Layout) -> Option<Patch> {
    let (object, claim, layout) = decisive(instance, layout);
    let choice = Choice::of(object, layout);
    if choice.is_manual()
        || instance.own.is_manual()
        || instance.own.revision.is_none()
        || meta::is_deleting(object)
    {
        return None;
    }
    let pinned = Choice { policy: Some(MANUAL.to_owned()), ..choice.clone() };
    let mut patch = pinned.policy_patch(layout);
    let before = choice.policy.as_deref().unwrap_or(NONE);
    patch["metadata"] = json!({"annotations": {PINNED: before}});
    Some(Patch { claim, key: Key::of(object), patch })
}

/// Whether a composite resource stays at its revision when it chooses by itself: that is the newest, also of those that its
/// selector allows.
fn stays(instance: &Instance, platform: &Platform) -> bool {
    let newest_of = |labels: &LabelMatch| {
        let newest = selection::latest(&platform.composition, labels, &platform.revisions).ok()?;
        Some(newest.metadata.name.as_str())
    };
    match &instance.selector {
        Some(labels) => newest_of(labels) == Some(instance.revision()),
        None => newest_of(&LabelMatch::default()) == Some(instance.revision()),
    }
}

/// How a composite resource gets back the policy that it had before it was pinned.
fn unpinning(instance: &Instance, layout: Layout) -> Option<Patch> {
    let (object, claim, layout) = decisive(instance, layout);
    let before = meta::annotation(object, PINNED)?;
    let restored =
        Choice { policy: (before != NONE).then(|| before.to_owned()), ..Choice::of(object, layout) };
    let mut patch = restored.policy_patch(layout);
    patch["metadata"] = json!({"annotations": {PINNED: null}});
    Some(Patch { claim, key: Key::of(object), patch })
}

async fn carry_out(cluster: &Cluster, platform: &Platform, patches: &[Patch]) -> Result<(), Failure> {
    let one = async |patch: &Patch| {
        let kind: &GroupVersionKind = match &platform.claim_kind {
            Some(kind) if patch.claim => kind,
            _ => &platform.kind,
        };
        let subject = format!("{} {}", kind.kind, patch.key);
        let object = identity(kind, &patch.key);
        let written = write(&subject, cluster.merge_patch(&object, &patch.patch, FIELD_MANAGER)).await?;
        match written {
            Err(e) if !e.is_not_found() => Err(explain(&subject, &e)),
            _ => Ok(()),
        }
    };
    stream::iter(patches)
        .map(one)
        .buffer_unordered(MAX_PARALLEL_WRITES)
        .try_collect::<Vec<()>>()
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(policy: Option<&str>, revision: Option<&str>) -> Instance {
        let mut xr = json!({"metadata": {"name": "a"}, "spec": {}});
        let choice = Choice { policy: policy.map(str::to_owned), revision: revision.map(str::to_owned) };
        choice.apply(&mut xr, Layout::Modern);
        Instance { own: choice, xr, claim: None, selector: None }
    }

    #[test]
    fn only_what_would_move_by_itself_is_pinned_and_unpinning_restores_it() {
        assert_eq!(pinning(&instance(Some("Manual"), Some("r")), Layout::Modern), None);
        assert_eq!(pinning(&instance(None, None), Layout::Modern), None, "it has nothing to stay at");
        for (policy, noted) in [(Some("Automatic"), "Automatic"), (None, "None")] {
            let mut one = instance(policy, Some("r"));
            let patch = pinning(&one, Layout::Modern).unwrap().patch;
            let expected = json!({
                "metadata": {"annotations": {PINNED: noted}},
                "spec": {"crossplane": {"compositionUpdatePolicy": "Manual"}},
            });
            assert_eq!(patch, expected);
            one.xr["metadata"]["annotations"] = json!({PINNED: noted});
            let back = unpinning(&one, Layout::Modern).unwrap().patch;
            let expected = json!({
                "metadata": {"annotations": {PINNED: null}},
                "spec": {"crossplane": {"compositionUpdatePolicy": policy}},
            });
            assert_eq!(back, expected);
        }
        assert_eq!(unpinning(&instance(Some("Manual"), Some("r")), Layout::Modern), None);
    }

    #[test]
    fn what_its_selector_allows_is_what_it_would_choose() {
        let owner =
            json!([{"apiVersion": "a", "kind": "Composition", "name": "c", "uid": "u", "controller": true}]);
        let revision = |number: i64, channel: &str| {
            serde_json::from_value(json!({
                "metadata": {
                    "name": format!("c-{number}"), "ownerReferences": owner,
                    "labels": {"crossplane.io/composition-name": "c", "channel": channel},
                },
                "spec": {"revision": number},
            }))
            .unwrap()
        };
        let platform = Platform {
            composition: serde_json::from_value(json!({"metadata": {"name": "c", "uid": "u"}})).unwrap(),
            revisions: vec![revision(3, "alpha"), revision(2, "stable"), revision(1, "stable")],
            kind: GroupVersionKind::new("example.org", "v1", "App"),
            layout: Layout::Modern,
            claim_kind: None,
        };
        let mut one = instance(Some("Manual"), Some("c-3"));
        assert!(stays(&one, &platform));
        one.own.revision = Some("c-2".to_owned());
        assert!(!stays(&one, &platform));
        let match_labels = [("channel".to_owned(), "stable".to_owned())].into();
        one.selector = Some(LabelMatch { match_labels });
        assert!(stays(&one, &platform), "the newest is not for it");
        one.own.revision = Some("c-1".to_owned());
        assert!(!stays(&one, &platform));
    }

    #[test]
    fn a_claim_is_pinned_in_place_of_its_composite_resource() {
        let claim = json!({"metadata": {"name": "c", "namespace": "n"}, "spec": {}});
        let one = Instance { claim: Some(claim), ..instance(Some("Automatic"), Some("r")) };
        let patch = pinning(&one, Layout::Legacy).unwrap();
        assert_eq!((patch.claim, patch.key), (true, Key::new("n", "c")));
        assert_eq!(patch.patch["spec"], json!({"compositionUpdatePolicy": "Manual"}));
    }
}
