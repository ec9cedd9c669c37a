//! What users do.

use crate::simulation::foreign;
use crate::simulation::ledger::{Ledger, show, sort_of};
use crate::simulation::life::Life;
use crate::simulation::model::{Wanted, secret_of};
use crate::simulation::platform::{self, CLAIMS, CONFIGS, HOME, Sort, Spec};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use transom_engine::DeleteOptions;
use transom_object::{GroupVersionKind, meta};
use transom_store::Key;

/// How long a user waits for something to be gone, in virtual time.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Everything that users create.
fn places() -> Vec<Key> {
    let thing = Sort::Thing.resource();
    let (app, zone) = (Sort::App.resource(), Sort::Zone.resource());
    vec![
        Key::new(thing, "", "x0"),
        Key::new(thing, "", "x1"),
        Key::new(app, "one", "a0"),
        Key::new(app, "two", "a0"),
        Key::new(app, "two", "a1"),
        Key::new(zone, "", "z0"),
        Key::new(zone, "", "z1"),
        Key::new(CLAIMS, "one", "c0"),
        Key::new(CLAIMS, "one", "c1"),
        Key::new(CLAIMS, "two", "c0"),
    ]
}

/// The kind of composite resource that an object of a user is, or becomes.
pub(super) fn composed_sort(key: &Key) -> Option<Sort> {
    if &*key.resource == CLAIMS { Some(Sort::Thing) } else { sort_of(&key.resource) }
}

fn kind_of(key: &Key) -> GroupVersionKind {
    match (&*key.resource, sort_of(&key.resource)) {
        (_, Some(sort)) => sort.gvk(),
        (CLAIMS, _) => platform::claim_kind(),
        ("secrets", _) => GroupVersionKind::new("", "v1", "Secret"),
        _ => GroupVersionKind::new("", "v1", "ConfigMap"),
    }
}

/// An object with nothing but its place.
fn at(key: &Key) -> Value {
    let kind = kind_of(key);
    let mut object = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": &*key.object.name},
    });
    meta::set_namespace(&mut object, &key.object.namespace);
    object
}

impl Life {
    /// One act of a user, whatever comes to mind.
    pub(super) async fn act(&mut self) -> Result<(), String> {
        match self.rng.below(100) {
            0..45 => self.write_root().await,
            45..58 => self.delete_root().await,
            58..66 => self.write_composition().await,
            66..74 => self.write_config().await,
            74..84 => self.meddle().await,
            84..88 => self.pause().await,
            88..92 => self.occupy().await,
            92..99 => self.touch_claimed().await,
            _ => self.kill_controllers(),
        }
    }

    pub(super) fn kill_controllers(&mut self) -> Result<(), String> {
        self.print_act("the controllers are killed");
        self.plane.wire.cut();
        self.plane.wire.crash.notify_one();
        Ok(())
    }

    fn draw_spec(&mut self, key: &Key) -> Spec {
        let rng = &mut self.rng;
        let claim = &*key.resource == CLAIMS;
        // What is composed of composite resources depends on more than one choice.
        let functions = self.model.functions.wanted.is_some();
        let config = if rng.permille(300) { Some(*rng.pick(&CONFIGS)) } else { None };
        Spec {
            count: rng.below(3),
            value: rng.below(1000),
            config,
            fixed: !claim && rng.permille(250),
            nested: !functions && &*key.resource == Sort::Zone.resource() && rng.permille(400),
            secret: !functions
                && (claim || &*key.resource == Sort::Thing.resource())
                && key.object.name.ends_with('1'),
        }
    }

    pub(super) async fn write_root(&mut self) -> Result<(), String> {
        let key = self.rng.pick(&places()).clone();
        let spec = self.draw_spec(&key);
        self.apply_root(&key, spec).await
    }

    pub(super) async fn apply_root(&mut self, key: &Key, spec: Spec) -> Result<(), String> {
        self.until_not_deleting(key).await?;
        self.print_act(&format!("apply {} {spec:?}", show(key)));
        let mut object = at(key);
        object["spec"] = spec.fields();
        if spec.secret {
            let secret = secret_of(key);
            let mut reference = json!({"name": &*secret.object.name});
            if &*key.resource != CLAIMS {
                reference["namespace"] = (&*secret.object.namespace).into();
            }
            object["spec"]["writeConnectionSecretToRef"] = reference;
        }
        if &*key.resource == CLAIMS && key.object.name.ends_with('0') {
            object["spec"]["compositeDeletePolicy"] = "Foreground".into();
        }
        let paused = self.model.roots.get(key).is_some_and(|w| w.paused);
        self.plane.wire.ledger().lagging.insert(key.clone());
        self.plane.apply(&object).await;
        self.model.roots.insert(key.clone(), Wanted { spec, paused });
        Ok(())
    }

    /// Waits until an object is not being deleted: users do not apply to it before.
    async fn until_not_deleting(&mut self, key: &Key) -> Result<(), String> {
        self.until(&format!("{}: does not go", show(key)), |ledger| {
            !ledger.objects.get(key).is_some_and(|o| o.deleting)
        })
        .await
    }

    /// Waits as long as a user does.
    pub(super) async fn until(
        &mut self,
        otherwise: &str,
        holds: impl Fn(&Ledger) -> bool,
    ) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.follow()?;
            if holds(&self.plane.wire.ledger()) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(otherwise.to_owned());
            }
            sleep(Duration::from_millis(300)).await;
        }
    }

    fn draw_root(&mut self) -> Option<Key> {
        let all: Vec<Key> = self.model.roots.keys().cloned().collect();
        if all.is_empty() { None } else { Some(self.rng.pick(&all).clone()) }
    }

    pub(super) async fn delete_root(&mut self) -> Result<(), String> {
        let Some(key) = self.draw_root() else { return Ok(()) };
        if self.model.roots.get(&key).is_some_and(|w| w.paused) {
            self.set_paused(&key, false).await;
        }
        let propagation = *self.rng.pick(&[None, Some("Foreground"), Some("Background")]);
        self.print_act(&format!("delete {} {propagation:?}", show(&key)));
        self.model.roots.remove(&key);
        // Until it is gone it may still follow its Composition, and the user expects nothing of it.
        self.plane.wire.ledger().wishes.remove(&key);
        self.delete(&key, propagation).await;
        Ok(())
    }

    async fn delete(&mut self, key: &Key, propagation: Option<&str>) {
        self.plane.wire.ledger().released.insert(key.clone());
        let options = DeleteOptions { propagation, uid: None };
        let (namespace, name) = (&key.object.namespace, &key.object.name);
        self.plane.user.delete(&kind_of(key), namespace, name, options).await.unwrap();
    }

    async fn write_composition(&mut self) -> Result<(), String> {
        let sort = *self.rng.pick(&Sort::ALL);
        let version = self.rng.below(4);
        self.print_act(&format!("{sort:?} is composed by version {version}"));
        self.model.versions.insert(sort, version);
        self.plane.apply(&platform::composition(sort, version)).await;
        Ok(())
    }

    async fn write_config(&mut self) -> Result<(), String> {
        let name = *self.rng.pick(&CONFIGS);
        let key = Key::new("configmaps", HOME, name);
        if self.model.configs.contains_key(name) && self.rng.permille(300) {
            self.print_act(&format!("delete {name}"));
            self.model.configs.remove(name);
            self.delete(&key, None).await;
            return Ok(());
        }
        let value = self.rng.below(1000);
        self.print_act(&format!("{name} is {value}"));
        self.model.configs.insert(name, value);
        let mut object = at(&key);
        object["data"] = json!({"value": value.to_string()});
        self.plane.apply(&object).await;
        Ok(())
    }

    /// Changes or deletes something that is composed; that must not last.
    pub(super) async fn meddle(&mut self) -> Result<(), String> {
        self.follow()?;
        let composed: Vec<Key> = {
            let ledger = self.plane.wire.ledger();
            let ours = ledger.objects.iter().filter(|(_, o)| o.part.is_some() && !o.deleting);
            ours.map(|(key, _)| key.clone()).collect()
        };
        if composed.is_empty() {
            return Ok(());
        }
        let key = self.rng.pick(&composed).clone();
        let patch = match self.rng.below(4) {
            0 => {
                self.print_act(&format!("delete composed {}", show(&key)));
                self.delete(&key, None).await;
                return Ok(());
            }
            1 => json!({"metadata": {"labels": {"crossplane.io/composite": null}}}),
            _ if &*key.resource == "configmaps" => {
                json!({"data": {*self.rng.pick(&["value", "version"]): null}})
            }
            _ => json!({"spec": {"value": "meddled"}}),
        };
        self.print_act(&format!("meddle with {}: {patch}", show(&key)));
        self.patch(&key, &patch).await;
        Ok(())
    }

    async fn patch(&mut self, key: &Key, patch: &Value) {
        // The object may be deleted at any moment; a patch that fails because of that is fine.
        let _ = self.plane.user.merge_patch(&at(key), patch, "kubectl-edit").await;
    }

    pub(super) async fn pause(&mut self) -> Result<(), String> {
        let Some(key) = self.draw_root() else { return Ok(()) };
        let paused = !self.model.roots.get(&key).is_some_and(|w| w.paused);
        self.set_paused(&key, paused).await;
        Ok(())
    }

    async fn set_paused(&mut self, key: &Key, paused: bool) {
        self.print_act(&format!("{} {}", if paused { "pause" } else { "go on with" }, show(key)));
        let value = if paused { Value::from("true") } else { Value::Null };
        self.patch(key, &json!({"metadata": {"annotations": {"crossplane.io/paused": value}}})).await;
        if let Some(wanted) = self.model.roots.get_mut(key) {
            wanted.paused = paused;
        }
    }

    /// Takes a name that a composite resource may want, for an object of another owner; or gives it up.
    async fn occupy(&mut self) -> Result<(), String> {
        let taken: Vec<Key> = self.model.foreign.keys().cloned().collect();
        if !taken.is_empty() && self.rng.permille(600) {
            let key = self.rng.pick(&taken).clone();
            self.print_act(&format!("delete foreign {}", show(&key)));
            self.model.foreign.remove(&key);
            self.delete(&key, None).await;
            return Ok(());
        }
        let roots: Vec<Key> = places().into_iter().filter(|k| &*k.resource != CLAIMS).collect();
        let key = foreign::place(self.rng.pick(&roots));
        if let Some(revision) = foreign::occupy(&self.plane.user, &key).await {
            self.print_act(&format!("{} is foreign", show(&key)));
            self.model.foreign.insert(key, revision);
        }
        Ok(())
    }

    /// Deletes or changes a composite resource behind its claim's back.
    async fn touch_claimed(&mut self) -> Result<(), String> {
        self.follow()?;
        let claimed: Vec<Key> = {
            let ledger = self.plane.wire.ledger();
            let claimed = ledger.objects.iter().filter(|(key, o)| {
                &*key.resource == Sort::Thing.resource()
                    && !o.deleting
                    && !o.value["spec"]["claimRef"].is_null()
            });
            claimed.map(|(key, _)| key.clone()).collect()
        };
        if claimed.is_empty() {
            return Ok(());
        }
        let key = self.rng.pick(&claimed).clone();
        if self.rng.permille(500) {
            self.print_act(&format!("delete claimed {}", show(&key)));
            self.delete(&key, None).await;
        } else {
            let patch = json!({"spec": {"value": "meddled"}});
            self.print_act(&format!("meddle with claimed {}: {patch}", show(&key)));
            self.patch(&key, &patch).await;
        }
        Ok(())
    }
}
