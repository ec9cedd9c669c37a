//! Tables of standings, and rollouts against a model of a control plane that is interrupted at any point.

use super::*;
use crate::record::tests::record;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use transom_object::GroupVersionKind;
use transom_testkit::rng::Rng;
use transom_xapi::claim;
use transom_xapi::composite::Composite;

const OLD: &str = "apps-1";
const NEW: &str = "apps-2";

fn choice(policy: Option<&str>, revision: Option<&str>) -> Choice {
    Choice { policy: policy.map(str::to_owned), revision: revision.map(str::to_owned) }
}

fn xr(conditions: &Value, generation: i64) -> Value {
    json!({"metadata": {"name": "a", "generation": generation}, "status": {"conditions": conditions}})
}

#[test]
fn readiness_is_about_the_current_generation() {
    let condition = |kind: &str, status: &str, generation: i64| json!({"type": kind, "status": status, "reason": "R", "message": "m", "observedGeneration": generation});
    let not_reconciled = Standing::Waiting("it has not been reconciled since it was changed".to_owned());
    for (synced, ready, expected) in [
        (("True", 2), ("True", 2), Standing::Ready),
        (("True", 3), ("True", 3), Standing::Ready),
        (("True", 1), ("True", 1), not_reconciled.clone()),
        (("False", 1), ("True", 1), not_reconciled.clone()),
        (("False", 2), ("True", 2), Standing::Failed("Synced is False: R: m".to_owned())),
        (("True", 2), ("False", 2), Standing::Waiting("Ready is False: R: m".to_owned())),
        (("True", 2), ("True", 1), Standing::Waiting("Ready is True: R: m".to_owned())),
        (("True", 0), ("True", 0), Standing::Ready),
    ] {
        let conditions =
            json!([condition("Synced", synced.0, synced.1), condition("Ready", ready.0, ready.1)]);
        assert_eq!(readiness(&xr(&conditions, 2)), expected, "{conditions}");
    }
    assert_eq!(readiness(&xr(&json!([]), 1)), not_reconciled);
    let alone = json!([condition("Synced", "True", 1)]);
    assert_eq!(readiness(&xr(&alone, 1)), Standing::Waiting("Ready is Unknown".to_owned()));
}

/// A control plane: composite resources and claims, and what its controllers make of them.
#[derive(Clone)]
struct Model {
    layout: Layout,
    xrs: BTreeMap<Key, Value>,
    claims: BTreeMap<Key, Value>,
    /// The fields of composite resources that claims set, which go when the claim no longer has them.
    claimed: BTreeSet<(Key, &'static str)>,
    /// The composite resources that cannot be composed with the new revision.
    failing: BTreeSet<Key>,
    /// The same, but they do not become ready.
    unready: BTreeSet<Key>,
}

const FIELDS: [&str; 2] = ["compositionUpdatePolicy", "compositionRevisionRef"];

impl Model {
    fn new(rng: &mut Rng, layout: Layout) -> Self {
        let mut model = Self {
            layout,
            xrs: BTreeMap::new(),
            claims: BTreeMap::new(),
            claimed: BTreeSet::new(),
            failing: BTreeSet::new(),
            unready: BTreeSet::new(),
        };
        for i in 0..1 + rng.below(6) {
            let key = Key::new("", format!("x{i}"));
            let policy = *rng.pick(&[Some("Manual"), Some("Manual"), Some("Automatic"), None]);
            let mut xr = json!({
                "apiVersion": "example.org/v1", "kind": "App", "spec": {},
                "metadata": {"name": &*key.name, "generation": 1, "uid": format!("u{i}"), "creationTimestamp": "t"},
            });
            choice(policy, Some(OLD)).apply(&mut xr, layout);
            if layout == Layout::Legacy && rng.permille(500) {
                let of_claim = *rng.pick(&[Some("Manual"), Some("Automatic"), None]);
                let name = format!("c{i}");
                let mut claim = json!({
                    "apiVersion": "example.org/v1", "kind": "Claim",
                    "metadata": {"name": name, "namespace": "n"},
                    "spec": {"resourceRef": {"apiVersion": "example.org/v1", "kind": "App", "name": &*key.name}},
                });
                choice(of_claim, of_claim.map(|_| OLD)).apply(&mut claim, Layout::Legacy);
                model.claims.insert(Key::new("n", name), claim);
            }
            model.xrs.insert(key, xr);
        }
        model.reconcile_until_stable();
        model
    }

    /// The revision that composite resources with the policy Automatic choose.
    fn latest(&self) -> &'static str {
        OLD
    }

    fn reconcile_until_stable(&mut self) -> bool {
        let mut any = false;
        loop {
            let before = (self.xrs.clone(), self.claims.clone());
            self.sync_claims();
            self.reconcile();
            if before == (self.xrs.clone(), self.claims.clone()) {
                return any;
            }
            any = true;
        }
    }

    /// The controller of claims, by the decisions of the real one.
    fn sync_claims(&mut self) {
        let of = GroupVersionKind::new("example.org", "v1", "App");
        for claim in self.claims.values_mut() {
            let name = claim::resource_ref(claim).unwrap().name;
            let key = Key::new("", name.as_str());
            let observed = Composite::new(self.xrs[&key].clone(), Layout::Legacy);
            let binding = claim::bind(claim, &observed, &of, &name, false).unwrap();
            *claim = binding.claim;
            let mut xr = observed.object;
            for field in FIELDS {
                match binding.composite["spec"].get(field) {
                    Some(value) => {
                        xr["spec"][field] = value.clone();
                        self.claimed.insert((key.clone(), field));
                    }
                    None if self.claimed.remove(&(key.clone(), field)) => {
                        xr["spec"].as_object_mut().unwrap().remove(field);
                    }
                    None => {}
                }
            }
            store(self.xrs.get_mut(&key).unwrap(), xr);
        }
    }

    /// The controller of composite resources.
    fn reconcile(&mut self) {
        let latest = self.latest();
        for (key, stored) in &mut self.xrs {
            let mut xr = stored.clone();
            let mut own = Choice::of(&xr, self.layout);
            own.policy.get_or_insert_with(|| "Automatic".to_owned());
            if !own.is_manual() {
                own.revision = Some(latest.to_owned());
            }
            own.apply(&mut xr, self.layout);
            store(stored, xr);
            let is_new = own.revision.as_deref() == Some(NEW);
            let status = |fine: bool| if fine { "True" } else { "False" };
            let synced = status(!(is_new && self.failing.contains(key)));
            let ready = status(!(is_new && self.unready.contains(key)));
            let generation = meta::generation(stored);
            stored["status"] = json!({"conditions": [
                {"type": "Synced", "status": synced, "observedGeneration": generation},
                {"type": "Ready", "status": ready, "observedGeneration": generation},
            ]});
        }
    }

    fn write(&mut self, write: &Write) {
        let stored = match write.of {
            Moved::Claim => self.claims.get_mut(&write.key).unwrap(),
            Moved::Composite => self.xrs.get_mut(&write.key).unwrap(),
        };
        let mut object = stored.clone();
        merge(&mut object, &write.patch);
        store(stored, object);
    }

    fn objects(&self, target: &Target) -> Objects<'_> {
        let claim = target.claim.as_ref().and_then(|(key, _)| self.claims.get(key));
        Objects { xr: self.xrs.get(&target.xr), claim }
    }

    fn choices(&self) -> BTreeMap<&Key, Choice> {
        let xrs = self.xrs.iter().map(|(key, xr)| (key, Choice::of(xr, self.layout)));
        xrs.chain(self.claims.iter().map(|(key, claim)| (key, Choice::of(claim, Layout::Legacy)))).collect()
    }

    fn record(&self, rng: &mut Rng) -> Record {
        let claim_of = |key: &Key| {
            let mut claims = self.claims.iter();
            let claim = claims.find(|(_, claim)| claim::resource_ref(claim).unwrap().name == *key.name)?;
            Some((claim.0.clone(), Choice::of(claim.1, Layout::Legacy)))
        };
        let mut wave = 0;
        let targets = self.xrs.iter().enumerate().map(|(i, (key, xr))| {
            wave += usize::from(i > 0 && rng.permille(400));
            Target { xr: key.clone(), before: Choice::of(xr, self.layout), claim: claim_of(key), wave }
        });
        Record { layout: self.layout, ..record(targets.collect()) }
    }
}

fn store(stored: &mut Value, object: Value) {
    let spec_changed = stored["spec"] != object["spec"];
    let generation = meta::generation(stored);
    *stored = object;
    if spec_changed {
        stored["metadata"]["generation"] = json!(generation + 1);
    }
}

fn merge(object: &mut Value, patch: &Value) {
    for (field, value) in patch.as_object().unwrap() {
        match value {
            Value::Null => drop(object.as_object_mut().unwrap().remove(field)),
            Value::Object(_) => {
                if !object[field].is_object() {
                    object[field] = json!({});
                }
                merge(&mut object[field], value);
            }
            value => object[field] = value.clone(),
        }
    }
}

/// Carries out a rollout. Whatever is written may be the last that a command does: then the next one continues.
fn run(model: &mut Model, record: &mut Record, rng: &mut Rng, interruptions: u64) {
    for step in 0.. {
        assert!(step < 10_000, "{record:#?}");
        let objects: Vec<Objects<'_>> = record.begun().iter().map(|target| model.objects(target)).collect();
        let action = decide(record, &objects);
        let action = match action {
            Action::Wait { first, .. } if !model.reconcile_until_stable() => too_slow(record, first),
            other => other,
        };
        match action {
            Action::Write(mut writes) => {
                if rng.permille(interruptions) {
                    let kept = rng.index(writes.len() + 1);
                    let at = rng.index(writes.len());
                    writes.rotate_left(at);
                    writes.truncate(kept);
                }
                writes.iter().for_each(|write| model.write(write));
                if rng.permille(500) {
                    model.reconcile_until_stable();
                }
            }
            Action::Wait { .. } => {}
            Action::Record { .. } if rng.permille(interruptions) => {}
            Action::Record { phase, wave, problem } => {
                (record.phase, record.wave, record.problem) = (phase, wave, problem);
            }
            Action::End => break,
        }
        for target in record.targets.iter().filter(|target| target.wave > record.wave) {
            let objects = model.objects(target);
            assert_eq!(Choice::of(objects.xr.unwrap(), record.layout), target.before, "before its wave");
        }
    }
    model.reconcile_until_stable();
}

#[test]
fn an_interrupted_rollout_ends_as_one_that_is_not() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let layout = *rng.pick(&[Layout::Modern, Layout::Legacy]);
        let mut model = Model::new(&mut rng, layout);
        let mut record = model.record(&mut rng);
        let (mut other, mut same) = (model.clone(), record.clone());
        let before = model.clone();
        run(&mut model, &mut record, &mut rng, 0);
        run(&mut other, &mut same, &mut rng, 600);
        assert_eq!(record.phase, Phase::Done, "seed {seed}");
        assert_eq!((&record, model.choices()), (&same, other.choices()), "seed {seed}");
        let choices = model.choices();
        assert!(choices.values().all(|choice| *choice == Choice::pinned(NEW)), "seed {seed}: {choices:#?}");
        // And back again, with the same record.
        record.phase = Phase::RollingBack;
        run(&mut model, &mut record, &mut rng, 600);
        assert_eq!(record.phase, Phase::RolledBack, "seed {seed}");
        for (key, choice) in before.choices() {
            assert!(
                model.choices()[key].means(&choice),
                "seed {seed}: {key}: {choice:?} {:?}",
                model.choices()[key]
            );
        }
    }
}

#[test]
fn a_wave_that_fails_stops_or_rolls_back_all() {
    let (mut stopped, mut rolled_back) = (0, 0);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let layout = *rng.pick(&[Layout::Modern, Layout::Legacy]);
        let mut model = Model::new(&mut rng, layout);
        let mut record = model.record(&mut rng);
        record.rollback_on_failure = rng.permille(500);
        let keys: Vec<Key> = model.xrs.keys().cloned().collect();
        let bad = rng.pick(&keys).clone();
        if rng.permille(500) {
            model.failing.insert(bad.clone());
        } else {
            model.unready.insert(bad.clone());
        }
        let wave = record.targets.iter().find(|target| target.xr == bad).unwrap().wave;
        let before = model.clone();
        run(&mut model, &mut record, &mut rng, 300);
        assert_eq!(record.wave, wave, "seed {seed}: later waves do not start");
        assert_eq!(record.problem.as_ref().unwrap().resource, format!("App {bad}"), "seed {seed}");
        if record.rollback_on_failure {
            rolled_back += 1;
            assert_eq!(record.phase, Phase::RolledBack);
            let (was, is) = (before.choices(), model.choices());
            assert!(was.iter().all(|(key, choice)| is[key].means(choice)), "seed {seed}: {was:#?} {is:#?}");
            continue;
        }
        stopped += 1;
        assert_eq!(record.phase, Phase::Stopped);
        // What was wrong is repaired, and the rollout continues.
        model.failing.clear();
        model.unready.clear();
        model.reconcile_until_stable();
        record.phase = Phase::Progressing;
        run(&mut model, &mut record, &mut rng, 300);
        assert_eq!(record.phase, Phase::Done, "seed {seed}");
    }
    assert!(stopped > 50 && rolled_back > 50);
}

#[test]
fn what_is_deleted_holds_nothing_up() {
    let mut rng = Rng::new(7);
    let mut model = Model::new(&mut rng, Layout::Modern);
    let mut record = model.record(&mut rng);
    let first = record.targets[0].xr.clone();
    model.xrs.remove(&first);
    run(&mut model, &mut record, &mut rng, 0);
    assert_eq!(record.phase, Phase::Done);
}
