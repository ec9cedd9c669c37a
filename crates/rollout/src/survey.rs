//! What a rollout starts from: the Composition, its revisions, and the composite resources that use it.

use crate::choice::Choice;
use crate::record::Target;
use crate::waves::Waves;
use crate::writing::explain;
use serde_json::Value;
use std::collections::BTreeMap;
use transom_console::Failure;
use transom_console::control_plane::within;
use transom_engine::{Cluster, Key};
use transom_object::labels::{Labels, Selector};
use transom_object::{GroupVersion, GroupVersionKind, meta, suggest};
use transom_xapi::composite::{Composite, Layout};
use transom_xapi::composition::LabelMatch;
use transom_xapi::constants::{condition, group, kind, label};
use transom_xapi::metadata::Metadata;
use transom_xapi::{Composition, CompositionRevision, Definition, claim, conditions, metadata, revision};

/// A Composition with its revisions.
pub(crate) struct Platform {
    pub(crate) composition: Composition,
    /// By number, newest first.
    pub(crate) revisions: Vec<CompositionRevision>,
    /// The kind of the composite resources.
    pub(crate) kind: GroupVersionKind,
    pub(crate) layout: Layout,
    pub(crate) claim_kind: Option<GroupVersionKind>,
}

/// A composite resource that uses the Composition.
pub(crate) struct Instance {
    pub(crate) xr: Value,
    pub(crate) claim: Option<Value>,
    /// What the composite resource has.
    pub(crate) own: Choice,
    /// The labels that its revision must have, if it says so.
    pub(crate) selector: Option<LabelMatch>,
}

impl Instance {
    pub(crate) fn key(&self) -> Key {
        Key::of(&self.xr)
    }

    /// The revision that it is composed with.
    pub(crate) fn revision(&self) -> &str {
        self.own.revision.as_deref().unwrap_or_default()
    }
}

async fn list(
    cluster: &Cluster,
    gvk: &GroupVersionKind,
    labels: &BTreeMap<String, String>,
) -> Result<Vec<Value>, Failure> {
    let listed = within(&gvk.kind, cluster.list(gvk, "", labels)).await?;
    listed.map_err(|e| explain(&gvk.kind, &e))
}

/// An object that is not what its kind promises.
fn unreadable(kind: &str) -> impl Fn(serde_json::Error) -> Failure {
    move |e| Failure::new(format!("a {kind} cannot be read: {e}"))
}

impl Platform {
    pub(crate) async fn read(cluster: &Cluster, name: &str) -> Result<Self, Failure> {
        let of = |kind: &str| GroupVersionKind::new(group::APIEXTENSIONS, "v1", kind);
        let subject = format!("Composition {name}");
        let read = within(&subject, cluster.get(&of(kind::COMPOSITION), "", name)).await?;
        let Some(object) = read.map_err(|e| explain(&subject, &e))? else {
            let all = list(cluster, &of(kind::COMPOSITION), &BTreeMap::new()).await?;
            let meant = suggest::did_you_mean(name, all.iter().map(meta::name));
            let remedy = meant.unwrap_or_else(|| "`kubectl get compositions` shows all".to_owned());
            return Err(Failure::new(format!("there is no Composition {name:?}")).remedy(remedy));
        };
        let composition: Composition =
            serde_json::from_value(object).map_err(unreadable(kind::COMPOSITION))?;
        let labels = BTreeMap::from([(label::COMPOSITION_NAME.to_owned(), name.to_owned())]);
        let revisions = list(cluster, &of(kind::COMPOSITION_REVISION), &labels).await?;
        let revisions: Result<Vec<CompositionRevision>, _> =
            revisions.into_iter().map(serde_json::from_value).collect();
        let mut revisions = revisions.map_err(unreadable(kind::COMPOSITION_REVISION))?;
        revisions.retain(|revision| revision.metadata.is_controlled_by(&composition.metadata.uid));
        revisions.sort_by_key(|revision| -revision.spec.revision);
        let reference = &composition.spec.composite_type_ref;
        let kind = GroupVersion::parse(&reference.api_version).unwrap_or_default().with_kind(&reference.kind);
        let definition = Self::definition(cluster, &of(kind::XRD), &kind).await?;
        Ok(Self {
            layout: definition.layout(),
            claim_kind: definition.claim_type(),
            composition,
            revisions,
            kind,
        })
    }

    async fn definition(
        cluster: &Cluster,
        of: &GroupVersionKind,
        kind: &GroupVersionKind,
    ) -> Result<Definition, Failure> {
        for object in list(cluster, of, &BTreeMap::new()).await? {
            let definition: Definition = serde_json::from_value(object).map_err(unreadable(kind::XRD))?;
            if definition.spec.group == kind.group && definition.spec.names.kind == kind.kind {
                return Ok(definition);
            }
        }
        let what = format!("no CompositeResourceDefinition defines {} of {}", kind.kind, kind.api_version());
        Err(Failure::new(what)
            .remedy("the Composition is for a kind of composite resource that cannot be created"))
    }

    /// A revision by name, by number, or the newest.
    pub(crate) fn revision(&self, wanted: &str) -> Result<&CompositionRevision, Failure> {
        let found = match wanted {
            "latest" => revision::latest(&self.composition.metadata.uid, &self.revisions),
            _ => self.revisions.iter().find(|revision| {
                revision.metadata.name == wanted || revision.spec.revision.to_string() == wanted
            }),
        };
        found.ok_or_else(|| {
            let known: Vec<String> =
                self.revisions.iter().map(|r| format!("{} ({})", r.metadata.name, r.spec.revision)).collect();
            let what = format!("Composition {:?} has no revision {wanted:?}", self.composition.metadata.name);
            Failure::new(what).remedy(match known.is_empty() {
                true => "it has no revisions yet".to_owned(),
                false => format!("its revisions are {}", known.join(", ")),
            })
        })
    }

    /// The revision that composite resources are moved to. One that the control plane refuses to run is a failure.
    pub(crate) fn destination(&self, wanted: &str) -> Result<&CompositionRevision, Failure> {
        let revision = self.revision(wanted)?;
        let valid = conditions::get(&revision.status.conditions, condition::VALID_PIPELINE);
        match valid.status == "False" {
            true => Err(Failure::new(format!(
                "the pipeline of revision {} cannot run: {}",
                revision.metadata.name, valid.message
            ))
            .remedy("install the functions that it needs, or choose another revision with --to")),
            false => Ok(revision),
        }
    }

    /// The composite resources that use the Composition, by namespace and name.
    pub(crate) async fn instances(&self, cluster: &Cluster) -> Result<Vec<Instance>, Failure> {
        let mut claims = BTreeMap::new();
        if let Some(kind) = &self.claim_kind {
            for claim in list(cluster, kind, &BTreeMap::new()).await? {
                claims.insert(Key::of(&claim), claim);
            }
        }
        let name = &self.composition.metadata.name;
        let all = list(cluster, &self.kind, &BTreeMap::new()).await?;
        let mut instances: Vec<Instance> = all
            .into_iter()
            .map(|object| Composite::new(object, self.layout))
            .filter(|xr| xr.composition_ref().is_some_and(|reference| reference.name == *name))
            .map(|xr| {
                let claim = xr.claim_ref().and_then(|reference| {
                    let bound = claims.remove(&Key::new(reference.namespace, reference.name))?;
                    claim::is_bound(&bound, &xr).then_some(bound)
                });
                let selector = xr.composition_revision_selector();
                Instance { own: Choice::of(&xr.object, self.layout), xr: xr.object, claim, selector }
            })
            .collect();
        instances.sort_by_key(Instance::key);
        Ok(instances)
    }
}

/// Which composite resources a user wants to move.
pub(crate) struct Wanted {
    pub(crate) labels: Selector,
    /// Of the composite resource, or of its claim.
    pub(crate) namespace: Option<String>,
    /// The name of the revision that they have.
    pub(crate) from: Option<String>,
}

/// What is moved, and what is not and why.
pub(crate) struct Selected {
    /// With their instances, by wave and then by name.
    pub(crate) targets: Vec<(Target, Instance)>,
    /// Those that are meant and cannot be moved.
    pub(crate) skipped: Vec<(Key, &'static str)>,
    /// How many have the revision already.
    pub(crate) already: usize,
}

/// Chooses what is moved to a revision with this metadata.
pub(crate) fn select(instances: Vec<Instance>, wanted: &Wanted, to: &Metadata, waves: &Waves) -> Selected {
    let labels = to.label_map();
    let mut selected = Selected { targets: Vec::new(), skipped: Vec::new(), already: 0 };
    let mut chosen = Vec::new();
    for instance in instances.into_iter().filter(|instance| wanted.is_meant(instance)) {
        match (instance.revision() == to.name, obstacle(&instance, &labels)) {
            (true, _) => selected.already += 1,
            (false, Some(why)) => selected.skipped.push((instance.key(), why)),
            (false, None) => chosen.push(instance),
        }
    }
    let labels: Vec<Labels> = chosen.iter().map(|instance| meta::labels(&instance.xr)).collect();
    let waves = waves.assign(&labels);
    selected.targets = waves.into_iter().zip(chosen).map(|(wave, one)| (one.target(wave), one)).collect();
    // The order by name stays within each wave.
    selected.targets.sort_by_key(|(target, _)| target.wave);
    selected
}

impl Wanted {
    fn is_meant(&self, instance: &Instance) -> bool {
        let in_namespace = |namespace: &String| {
            let of_claim = instance.claim.as_ref().is_some_and(|claim| meta::namespace(claim) == namespace);
            of_claim || meta::namespace(&instance.xr) == namespace
        };
        self.labels.matches(&meta::labels(&instance.xr))
            && self.namespace.as_ref().is_none_or(in_namespace)
            && self.from.as_ref().is_none_or(|from| instance.own.revision.as_ref() == Some(from))
    }
}

impl Instance {
    fn target(&self, wave: usize) -> Target {
        let claim = self.claim.as_ref().map(|claim| (Key::of(claim), Choice::of(claim, Layout::Legacy)));
        Target { xr: self.key(), before: self.own.clone(), claim, wave }
    }
}

/// Why a composite resource cannot be moved to a revision with these labels.
fn obstacle(instance: &Instance, labels: &BTreeMap<String, String>) -> Option<&'static str> {
    let either = |is: fn(&Value) -> bool| is(&instance.xr) || instance.claim.as_ref().is_some_and(is);
    if either(meta::is_deleting) {
        return Some("it is being deleted");
    }
    if either(metadata::is_paused) {
        return Some("it is paused, so it would not be reconciled");
    }
    if instance.selector.as_ref().is_some_and(|selector| !selector.matches(labels)) {
        return Some(
            "the revision does not have the labels of its compositionRevisionSelector: change that to move it",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn instance(name: &str, revision: Option<&str>, more: &Value) -> Instance {
        let mut xr = json!({"metadata": {"name": name}});
        for (field, value) in more.as_object().unwrap() {
            xr["metadata"][field] = value.clone();
        }
        Choice { policy: Some("Manual".into()), revision: revision.map(str::to_owned) }
            .apply(&mut xr, Layout::Modern);
        Instance { own: Choice::of(&xr, Layout::Modern), xr, claim: None, selector: None }
    }

    fn selecting(name: &str, channel: &str) -> Instance {
        let match_labels = BTreeMap::from([("channel".to_owned(), channel.to_owned())]);
        Instance { selector: Some(LabelMatch { match_labels }), ..instance(name, Some("r-1"), &json!({})) }
    }

    #[test]
    fn what_is_meant_and_can_be_moved_is_chosen() {
        let claimed = Instance {
            claim: Some(json!({"metadata": {"name": "c", "namespace": "n"}, "spec": {}})),
            ..instance("claimed", Some("r-1"), &json!({}))
        };
        let all = || {
            vec![
                instance("a", Some("r-1"), &json!({"labels": {"ring": "late"}, "namespace": "n"})),
                instance("b", Some("r-2"), &json!({})),
                instance("c", Some("r-0"), &json!({"labels": {"ring": "late"}})),
                instance("d", Some("r-1"), &json!({"annotations": {"crossplane.io/paused": "true"}})),
                instance("e", Some("r-1"), &json!({"deletionTimestamp": "2024-01-01T00:00:00Z"})),
                instance("f", None, &json!({})),
                instance("g", Some("r-1"), &json!({})),
            ]
        };
        let choose = |wanted: Wanted, more: Vec<Instance>, waves: &str| {
            let all = all().into_iter().chain(more).collect();
            let labels = BTreeMap::from([("channel".to_owned(), "alpha".to_owned())]);
            let to = Metadata { name: "r-2".into(), labels: Some(labels), ..Metadata::default() };
            select(all, &wanted, &to, &Waves::parse(waves).unwrap())
        };
        let everything = || Wanted { labels: Selector::everything(), namespace: None, from: None };
        let names = |selected: &Selected| -> Vec<(String, usize)> {
            selected.targets.iter().map(|(target, _)| (target.xr.to_string(), target.wave)).collect()
        };
        let plain = |names: &[(&str, usize)]| -> Vec<(String, usize)> {
            names.iter().map(|(name, wave)| ((*name).to_owned(), *wave)).collect()
        };
        let selected = choose(everything(), vec![], "1,100%");
        assert_eq!(names(&selected), plain(&[("n/a", 0), ("c", 1), ("f", 1), ("g", 1)]));
        assert_eq!((selected.already, selected.skipped.len()), (1, 2));
        let selected = choose(everything(), vec![selecting("h", "alpha"), selecting("i", "stable")], "100%");
        assert_eq!(selected.targets.len(), 5, "h is moved, i is not");
        assert!(selected.skipped.iter().any(|(key, why)| *key.name == *"i" && why.contains("labels")));
        let selected = choose(everything(), vec![], "ring!=late,100%");
        assert_eq!(names(&selected), plain(&[("f", 0), ("g", 0), ("n/a", 1), ("c", 1)]));
        let wanted = Wanted { namespace: Some("n".into()), ..everything() };
        assert_eq!(names(&choose(wanted, vec![claimed], "100%")), plain(&[("n/a", 0), ("claimed", 0)]));
        let wanted = Wanted { from: Some("r-0".into()), ..everything() };
        assert_eq!(names(&choose(wanted, vec![], "100%")), plain(&[("c", 0)]));
        let wanted = Wanted { labels: Selector::parse("ring=late").unwrap(), ..everything() };
        assert_eq!(names(&choose(wanted, vec![], "100%")), plain(&[("n/a", 0), ("c", 0)]));
    }
}
