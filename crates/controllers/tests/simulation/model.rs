//! What must be when all is quiet, computed from what the user did and from nothing else.

use crate::simulation::functions::model::{End, FunctionModel};
use crate::simulation::ledger::{Ledger, Thing, show, sort_of};
use crate::simulation::packages::model::PackageModel;
use crate::simulation::platform::{CLAIMS, HOME, Part, Sort, Spec, inner, parts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use transom_store::Key;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub spec: Spec,
    pub paused: bool,
}

/// What the user wants.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    /// The version of each sort's Composition.
    pub versions: BTreeMap<Sort, u64>,
    /// Composite resources and claims.
    pub roots: BTreeMap<Key, Wanted>,
    /// The values of ConfigMaps that functions read.
    pub configs: BTreeMap<&'static str, u64>,
    /// Objects of others, at the revision at which others left them.
    pub foreign: BTreeMap<Key, u64>,
    pub packages: PackageModel,
    pub functions: FunctionModel,
}

pub(super) type Outcome = Result<(), String>;

pub(super) fn differ(what: &Key, why: impl std::fmt::Display) -> Outcome {
    Err(format!("{}: {why}", show(what)))
}

pub(super) fn ensure(holds: bool, what: &Key, why: impl std::fmt::Display) -> Outcome {
    if holds { Ok(()) } else { differ(what, why) }
}

/// The status of a condition.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array();
    all.into_iter().flatten().find(|c| c["type"] == kind).unwrap_or(&Value::Null)
}

impl Model {
    /// What a root is composed of. The name is that of the composite resource.
    pub(super) fn parts_of(
        &self,
        sort: Sort,
        namespace: &str,
        name: &str,
        spec: &Spec,
    ) -> BTreeMap<String, Part> {
        self.parts_by(self.version_of(sort), namespace, name, spec)
    }

    fn version_of(&self, sort: Sort) -> u64 {
        self.versions.get(&sort).copied().unwrap_or_default()
    }

    fn parts_by(&self, version: u64, namespace: &str, name: &str, spec: &Spec) -> BTreeMap<String, Part> {
        let config = spec.config.and_then(|c| self.configs.get(c)).map(u64::to_string);
        parts(namespace, name, spec, version, config.as_deref())
    }

    /// The names of the parts of every root.
    pub(super) fn wishes(&self) -> BTreeMap<Key, BTreeSet<String>> {
        let wish = |(key, wanted): (&Key, &Wanted)| {
            let sort = sort_of(&key.resource).unwrap_or(Sort::Thing);
            let (namespace, name) = (&key.object.namespace, &key.object.name);
            (key.clone(), self.parts_of(sort, namespace, name, &wanted.spec).into_keys().collect())
        };
        self.roots.iter().map(wish).collect()
    }

    /// Whether everything is as it must be; if not, one thing that is not.
    pub(super) fn compare(&self, ledger: &Ledger) -> Outcome {
        let mut accounted: BTreeSet<Key> = BTreeSet::new();
        for (key, wanted) in &self.roots {
            let Some(object) = ledger.objects.get(key) else { return differ(key, "is missing") };
            ensure(!object.deleting, key, "is being deleted")?;
            accounted.insert(key.clone());
            if wanted.paused {
                let synced = condition(&object.value, "Synced");
                ensure(synced["reason"] == "ReconcilePaused", key, "does not say that it is paused")?;
                account_for(ledger, object, &mut accounted);
            } else if &*key.resource == CLAIMS {
                self.compare_claim(ledger, key, object, &wanted.spec, &mut accounted)?;
            } else {
                self.compare_composite(ledger, key, object, &wanted.spec, &mut accounted)?;
            }
        }
        for (key, revision) in &self.foreign {
            let Some(object) = ledger.objects.get(key) else {
                return differ(key, "is gone, and was foreign");
            };
            ensure(object.revision == *revision, key, "was changed, and is foreign")?;
            accounted.insert(key.clone());
        }
        for name in self.configs.keys() {
            accounted.insert(Key::new("configmaps", HOME, name));
        }
        // What the server itself keeps in namespaces.
        let own = |key: &Key| key.object.name.starts_with("kube-");
        let left = ledger.objects.keys().find(|key| !accounted.contains(*key) && !own(key));
        match left {
            Some(key) => differ(key, "is left over")?,
            None => self.packages.compare(&ledger.packages)?,
        }
        self.functions.compare(&ledger.functions)
    }

    fn compare_claim(
        &self,
        ledger: &Ledger,
        key: &Key,
        claim: &Thing,
        spec: &Spec,
        accounted: &mut BTreeSet<Key>,
    ) -> Outcome {
        let Some(name) = claim.value["spec"]["resourceRef"]["name"].as_str() else {
            return differ(key, "is not bound");
        };
        let xr_key = Key::new(Sort::Thing.resource(), "", name);
        let Some(xr) = ledger.objects.get(&xr_key) else { return differ(key, "is bound to nothing") };
        let bound = &xr.value["spec"]["claimRef"];
        let mutual = bound["name"] == *key.object.name && bound["namespace"] == *key.object.namespace;
        ensure(mutual, &xr_key, "is not bound to its claim")?;
        self.compare_composite(ledger, &xr_key, xr, spec, accounted)?;
        if self.functions.may_fail(&ledger.functions, Sort::Thing) && is_not_synced(xr) {
            accounted.insert(xr_key);
            return Ok(());
        }
        for kind in ["Ready", "Synced"] {
            ensure(condition(&claim.value, kind)["status"] == "True", key, format!("is not {kind}"))?;
        }
        ensure(claim.value["status"]["parts"] == xr.value["status"]["parts"], key, "has an old status")?;
        if spec.secret {
            compare_secret(ledger, &secret_of(key), &claim.uid, spec, accounted)?;
        }
        accounted.insert(xr_key);
        Ok(())
    }

    /// A composite resource is composed by the version that its step chooses, or it reports that it cannot be, and what was
    /// composed before is kept.
    fn compare_composite(
        &self,
        ledger: &Ledger,
        key: &Key,
        xr: &Thing,
        spec: &Spec,
        accounted: &mut BTreeSet<Key>,
    ) -> Outcome {
        let Some(sort) = sort_of(&key.resource) else { return differ(key, "is not a composite resource") };
        let mut first = Ok(());
        for end in self.functions.ends(&ledger.functions, sort, self.version_of(sort)) {
            let outcome = match end {
                End::Composed(version) => self.compare_composed(ledger, key, xr, (spec, version), accounted),
                End::Failed => ensure(is_not_synced(xr), key, "is synced, and its step cannot be called")
                    .map(|()| account_for(ledger, xr, accounted)),
            };
            if outcome.is_ok() {
                return Ok(());
            }
            first = first.and(outcome);
        }
        first
    }

    fn compare_composed(
        &self,
        ledger: &Ledger,
        key: &Key,
        xr: &Thing,
        (spec, version): (&Spec, u64),
        accounted: &mut BTreeSet<Key>,
    ) -> Outcome {
        let Some(sort) = sort_of(&key.resource) else { return differ(key, "is not a composite resource") };
        for (field, value) in spec.fields().as_object().into_iter().flatten() {
            ensure(xr.value["spec"][field] == *value, key, format!("has another {field}"))?;
        }
        let (namespace, name) = (&*key.object.namespace, &*key.object.name);
        let wanted = self.parts_by(version, namespace, name, spec);
        let mut found: BTreeMap<&str, &Key> = BTreeMap::new();
        for child in ledger.children_of(&xr.uid) {
            let part = ledger.objects[child].part.as_deref().unwrap_or_default();
            ensure(wanted.contains_key(part), child, "is not wanted")?;
            found.insert(part, child);
            accounted.insert(child.clone());
        }
        let mut taken = false;
        for (name, part) in &wanted {
            let place = part.name.as_ref().map(|n| Key::new("configmaps", &part.namespace, n));
            if place.is_some_and(|p| self.foreign.contains_key(&p)) {
                taken = true;
                continue;
            }
            let Some(child) = found.get(name.as_str()) else { return differ(key, format!("lacks {name}")) };
            self.compare_part(ledger, child, part, spec, accounted)?;
        }
        if taken {
            // What cannot be had is not had, and what was had before is kept.
            account_for(ledger, xr, accounted);
        }
        let references = sort.machinery(&xr.value)["resourceRefs"].as_array().map_or(0, Vec::len);
        ensure(
            references == wanted.len(),
            key,
            format!("has {references} references, not {}", wanted.len()),
        )?;
        if taken {
            return ensure(condition(&xr.value, "Synced")["status"] == "False", key, "is synced");
        }
        for kind in ["Ready", "Synced"] {
            let (found, all) = (condition(&xr.value, kind), &xr.value["status"]["conditions"]);
            ensure(found["status"] == "True", key, format!("is not {kind}: {all}"))?;
        }
        ensure(xr.value["status"]["parts"] == wanted.len(), key, "has an old status")?;
        if sort == Sort::Thing {
            // Where the user says, or where the Composition does.
            let own = spec.secret && xr.value["spec"]["claimRef"].is_null();
            let place = if own { secret_of(key) } else { Key::new("secrets", HOME, &xr.uid) };
            compare_secret(ledger, &place, &xr.uid, spec, accounted)?;
        }
        Ok(())
    }

    fn compare_part(
        &self,
        ledger: &Ledger,
        key: &Key,
        part: &Part,
        spec: &Spec,
        accounted: &mut BTreeSet<Key>,
    ) -> Outcome {
        let object = &ledger.objects[key];
        ensure(*key.object.namespace == part.namespace, key, "is in the wrong place")?;
        if let Some(name) = &part.name {
            ensure(*key.object.name == **name, key, format!("is not called {name}"))?;
        }
        let labelled = object.value["metadata"]["labels"]["crossplane.io/composite"].is_string();
        ensure(labelled, key, "has lost its label")?;
        match part.sort {
            None => {
                let (data, wanted) = (&object.value["data"], &part.content);
                ensure(data == wanted, key, format!("has the data {data}, not {wanted}"))
            }
            Some(_) => self.compare_composite(ledger, key, object, &inner(spec), accounted),
        }
    }
}

fn is_not_synced(xr: &Thing) -> bool {
    condition(&xr.value, "Synced")["status"] == "False"
}

/// The secret that a root asks for.
pub(super) fn secret_of(root: &Key) -> Key {
    let namespace = if root.object.namespace.is_empty() { HOME } else { &root.object.namespace };
    Key::new("secrets", namespace, &format!("secret-{}", root.object.name))
}

fn compare_secret(
    ledger: &Ledger,
    key: &Key,
    owner: &str,
    spec: &Spec,
    accounted: &mut BTreeSet<Key>,
) -> Outcome {
    use base64::Engine;
    let Some(secret) = ledger.objects.get(key) else { return differ(key, "is missing") };
    let password = base64::engine::general_purpose::STANDARD.encode(spec.value.to_string());
    ensure(secret.value["data"]["password"] == password, key, "has an old password")?;
    ensure(secret.controller.as_deref() == Some(owner), key, "belongs to someone else")?;
    accounted.insert(key.clone());
    Ok(())
}

/// Everything below an object that is paused, whatever it is.
fn account_for(ledger: &Ledger, object: &Thing, accounted: &mut BTreeSet<Key>) {
    let below: Vec<Key> = ledger
        .objects
        .iter()
        .filter(|(key, o)| {
            o.controller.as_deref() == Some(&object.uid)
                || (object.value["spec"]["resourceRef"]["name"] == *key.object.name
                    && &*key.resource == Sort::Thing.resource())
        })
        .map(|(key, _)| key.clone())
        .collect();
    for key in below {
        if accounted.insert(key.clone()) {
            account_for(ledger, &ledger.objects[&key], accounted);
        }
    }
}
