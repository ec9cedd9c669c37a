//! What users do with packages.

use super::catalogue::{self, EDGES, NAMES};
use super::ledger::packages_owning;
use super::model::{WantedPackage, key_of};
use super::{COMPOSITIONS, DEFINITIONS, LOCKS, PACKAGES};
use crate::simulation::ledger::show;
use crate::simulation::life::Life;
use serde_json::{Value, json};
use transom_engine::DeleteOptions;
use transom_object::GroupVersionKind;
use transom_store::Key;

fn kind_of(key: &Key) -> GroupVersionKind {
    match &*key.resource {
        PACKAGES => GroupVersionKind::new("pkg.crossplane.io", "v1", "Configuration"),
        DEFINITIONS => {
            GroupVersionKind::new("apiextensions.crossplane.io", "v1", "CompositeResourceDefinition")
        }
        _ => GroupVersionKind::new("apiextensions.crossplane.io", "v1", "Composition"),
    }
}

impl Life {
    /// One act of a user of packages.
    pub(crate) async fn act_on_packages(&mut self) -> Result<(), String> {
        match self.rng.below(100) {
            0..50 => self.install().await,
            50..66 => self.remove().await,
            66..74 => self.pause_package().await,
            74..84 => self.move_tag(),
            84..94 => self.delete_brought().await,
            94..97 => self.edit_lock().await,
            _ => self.kill_controllers(),
        }
    }

    /// Installs a package, upgrades it, rolls it back, or changes how it is installed.
    async fn install(&mut self) -> Result<(), String> {
        let name = *self.rng.pick(&NAMES);
        let key = key_of(name);
        self.until_package_is_not_deleting(&key).await?;
        let tag = *self.rng.pick(&catalogue::tags(name));
        let paused = self.model.packages.wanted.get(name).is_some_and(|wanted| wanted.paused);
        let wanted = WantedPackage {
            tag,
            always: self.rng.permille(300),
            history_limit: *self.rng.pick(&[1, 1, 2]),
            paused,
        };
        self.print_act(&format!("install {} {wanted:?}", show(&key)));
        let policy = if wanted.always { "Always" } else { "IfNotPresent" };
        let object = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration",
            "metadata": {"name": &*key.object.name},
            "spec": {
                "package": format!("{}:{tag}", catalogue::source(name)), "packagePullPolicy": policy,
                "revisionHistoryLimit": wanted.history_limit,
            },
        });
        self.plane.wire.ledger().packages.released.remove(&key);
        self.plane.apply(&object).await;
        self.model.packages.wanted.insert(name, wanted);
        Ok(())
    }

    async fn remove(&mut self) -> Result<(), String> {
        let Some(name) = self.draw_package() else { return Ok(()) };
        let key = key_of(name);
        let propagation = *self.rng.pick(&[None, Some("Foreground"), Some("Background")]);
        self.print_act(&format!("remove {} {propagation:?}", show(&key)));
        self.model.packages.wanted.remove(name);
        self.delete_released(&key, propagation).await;
        Ok(())
    }

    fn draw_package(&mut self) -> Option<&'static str> {
        let all: Vec<&'static str> = self.model.packages.wanted.keys().copied().collect();
        if all.is_empty() { None } else { Some(*self.rng.pick(&all)) }
    }

    async fn delete_released(&mut self, key: &Key, propagation: Option<&str>) {
        self.plane.wire.ledger().packages.released.insert(key.clone());
        let options = DeleteOptions { propagation, uid: None };
        self.plane.user.delete(&kind_of(key), "", &key.object.name, options).await.unwrap();
    }

    async fn pause_package(&mut self) -> Result<(), String> {
        let Some(name) = self.draw_package() else { return Ok(()) };
        let Some(wanted) = self.model.packages.wanted.get_mut(name) else { return Ok(()) };
        wanted.paused = !wanted.paused;
        let value = if wanted.paused { Value::from("true") } else { Value::Null };
        let key = key_of(name);
        self.print_act(&format!("{} paused: {value}", show(&key)));
        let object = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration", "metadata": {"name": &*key.object.name},
        });
        let patch = json!({"metadata": {"annotations": {"crossplane.io/paused": value}}});
        self.plane.user.merge_patch(&object, &patch, "kubectl-edit").await.unwrap();
        Ok(())
    }

    fn move_tag(&mut self) -> Result<(), String> {
        let edge = self.rng.below(EDGES);
        self.print_act(&format!("the tag that moves leads to {edge}"));
        self.model.packages.edge = edge;
        self.plane.registry.move_edge(edge);
        Ok(())
    }

    /// Deletes something that a package brought.
    async fn delete_brought(&mut self) -> Result<(), String> {
        self.follow()?;
        let brought: Vec<Key> = {
            let ledger = self.plane.wire.ledger();
            let all = ledger.packages.of(COMPOSITIONS).chain(ledger.packages.of(DEFINITIONS));
            let brought = all.filter(|(_, object)| !object.deleting && !packages_owning(object).is_empty());
            brought.map(|(key, _)| key.clone()).collect()
        };
        if brought.is_empty() {
            return Ok(());
        }
        let key = self.rng.pick(&brought).clone();
        self.print_act(&format!("delete {}", show(&key)));
        self.delete_released(&key, None).await;
        Ok(())
    }

    /// Takes an entry out of the Lock; it must come back.
    async fn edit_lock(&mut self) -> Result<(), String> {
        self.follow()?;
        let lock = self.plane.wire.ledger().packages.objects.get(&Key::new(LOCKS, "", "lock")).cloned();
        let mut kept = lock.and_then(|lock| lock.value["packages"].as_array().cloned()).unwrap_or_default();
        if kept.is_empty() {
            return Ok(());
        }
        let removed = kept.remove(self.rng.index(kept.len()));
        self.print_act(&format!("take {} out of the Lock", removed["name"]));
        let object =
            json!({"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "Lock", "metadata": {"name": "lock"}});
        self.plane.user.merge_patch(&object, &json!({"packages": kept}), "kubectl-edit").await.unwrap();
        Ok(())
    }

    async fn until_package_is_not_deleting(&mut self, key: &Key) -> Result<(), String> {
        self.until(&format!("{}: does not go", show(key)), |ledger| {
            !ledger.packages.objects.get(key).is_some_and(|package| package.deleting)
        })
        .await
    }
}
