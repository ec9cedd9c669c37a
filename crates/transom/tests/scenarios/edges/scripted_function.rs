//! Things whose only function, called `wishes`, wants what the test says.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use transom_function::{Ready, Resource, RunFunctionResponse};

const DEFINITION: &str = "things.example.org";

type Script = Arc<dyn Fn(&mut RunFunctionResponse) + Send + Sync>;

pub(super) struct Things {
    pub user: User,
    script: Arc<Mutex<Script>>,
}

impl Things {
    pub(super) async fn new(scope: &str) -> Self {
        Self::defined_by(&definition("Thing", scope, "")).await
    }

    pub(super) async fn defined_by(definition: &str) -> Self {
        let nothing: Script = Arc::new(|_: &mut RunFunctionResponse| {});
        let things = Self { user: User::new().await, script: Arc::new(Mutex::new(nothing)) };
        let script = things.script.clone();
        things
            .user
            .function("wishes", move |_, response| {
                let script = script.lock().unwrap().clone();
                script(response);
                Ok(())
            })
            .await;
        things.user.apply(definition).await;
        things.user.apply(&composition("things", "Thing", &json!({}), &[("wishes", Value::Null)])).await;
        things.user.until_true(XRD, DEFINITION, "Established").await;
        things
    }

    /// Things of which one, called `one`, is composed of a map; and the map.
    pub(super) async fn with_one(scope: &str) -> (Self, Vec<Value>) {
        let things = Self::new(scope).await;
        things.want(&[("map", map("before"))]);
        things.user.apply(&object("Thing", "one", "")).await;
        things.until_well("one").await;
        let composed = things.user.composed(MAP, "one").await;
        (things, composed)
    }

    /// From now on the function answers so.
    pub(super) fn answer(&self, script: impl Fn(&mut RunFunctionResponse) + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Arc::new(script);
    }

    /// From now on it wants these resources, all of them ready.
    pub(super) fn want(&self, resources: &[(&str, Value)]) {
        let resources: BTreeMap<String, Value> =
            resources.iter().map(|(name, object)| ((*name).to_owned(), object.clone())).collect();
        self.answer(move |response| {
            for (name, object) in &resources {
                let resource = Resource::new(object.clone()).expect("an object");
                response.set_composed(name.as_str(), resource.with_ready(Ready::True));
            }
        });
    }

    /// Has a thing composed anew.
    pub(super) async fn look_again(&self, name: &str) {
        let nonce = format!("{:?}", std::time::Instant::now());
        self.user.patch(THING, name, json!({"metadata": {"annotations": {"look-again": nonce}}})).await;
    }

    /// Waits until a thing complains in these words, and of an error.
    pub(super) async fn until_wrong(&self, name: &str, words: &str) -> Value {
        let thing = self.user.until(THING, name, |o| message_of(o, "Synced").contains(words)).await;
        assert_eq!(reason_of(&thing, "Synced"), "ReconcileError");
        thing
    }

    /// Waits until a thing that complained is well.
    pub(super) async fn until_well(&self, name: &str) -> Value {
        let thing = self.user.until_ready(THING, name).await;
        assert_eq!(message_of(&thing, "Synced"), "", "nothing is left of an error");
        thing
    }
}

/// A map in the default namespace.
pub(super) fn map(says: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}, "data": {"says": says}})
}

/// The object with this merged into its metadata.
pub(super) fn with(mut object: Value, metadata: Value) -> Value {
    if let (Some(into), Value::Object(from)) = (object["metadata"].as_object_mut(), metadata) {
        into.extend(from);
    }
    object
}

pub(super) fn references(thing: &Value) -> Vec<Value> {
    thing["spec"]["crossplane"]["resourceRefs"].as_array().cloned().unwrap_or_default()
}
