//! References and selectors. Nothing is polled here, and retries come after a day: what waits goes on because of a watch.

use crate::cloud::{Cloud, Stand, condition, is_ready};
use serde_json::{Value, json};

async fn stand() -> Stand {
    Stand::without_polls(Cloud::new(7, true)).await
}

/// Labels, and a controller with this uid, if any.
fn metadata(labels: &Value, controller: &str) -> Value {
    let owner =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "xr", "uid": controller, "controller": true});
    match controller {
        "" => json!({"labels": labels}),
        _ => json!({"labels": labels, "ownerReferences": [owner]}),
    }
}

fn spec(parameters: &Value) -> Value {
    json!({"forProvider": parameters})
}

impl Stand {
    /// Makes something that can be referred to, and waits until it is ready.
    async fn target(&self, name: &str, labels: &Value, controller: &str) {
        self.create(name, &spec(&json!({"size": 1})), &metadata(labels, controller)).await;
        self.until("a target is ready", name, is_ready).await;
    }

    async fn until_synced_says(&self, name: &str, words: &str) {
        let says = |o: Option<&Value>| o.is_some_and(|o| condition(o, "Synced").message == words);
        self.until(words, name, says).await;
    }

    /// The parameters of an object that is ready.
    async fn parameters_when_ready(&self, name: &str) -> Value {
        self.until("it is ready", name, is_ready).await.unwrap()["spec"]["forProvider"].take()
    }

    async fn until_field(&self, name: &str, field: &str, value: &Value) {
        let has = |o: Option<&Value>| o.is_some_and(|o| o["spec"]["forProvider"][field] == *value);
        self.until(&format!("{field} is {value}"), name, has).await;
    }

    /// Has an object reconciled, and waits until it was.
    async fn reconcile(&self, name: &str, token: &str) -> Value {
        let asked = json!({"crossplane.io/reconcile-requested-at": token});
        self.patch(name, &json!({"metadata": {"annotations": asked}})).await;
        let handled = |o: Option<&Value>| o.is_some_and(|o| o["status"]["lastHandledReconcileAt"] == token);
        self.until("it was reconciled", name, handled).await.unwrap()["spec"]["forProvider"].take()
    }
}

const NO_MATCH: &str =
    "cannot resolve references: spec.forProvider.neighbor: no resources matched selector: Thing with";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_the_first_by_name_is_chosen() {
    let stand = stand().await;
    for name in ["y", "x", "z"] {
        stand.target(name, &json!({"role": "first"}), "").await;
    }
    stand.target("alone", &json!({"role": "second"}), "").await;
    let selector = |role: &str| spec(&json!({"neighborSelector": {"matchLabels": {"role": role}}}));
    stand.create("of-one", &selector("second"), &json!({})).await;
    assert_eq!(stand.parameters_when_ready("of-one").await["neighborRef"], json!({"name": "alone"}));
    stand.create("of-three", &selector("first"), &json!({})).await;
    let chosen = stand.parameters_when_ready("of-three").await;
    assert_eq!((&chosen["neighbor"], &chosen["neighborRef"]), (&json!("x"), &json!({"name": "x"})));
    let words = "spec.forProvider.neighborSelector matches several objects of kind Thing: \"x\" was selected, the \
                 first by name";
    stand.until_event("of-three", "Normal", "SelectedReference", words).await;
    // Events are written in their order: those of the one before are there.
    let told = stand.events("of-one").await;
    assert!(told.iter().all(|[_, reason, _]| reason != "SelectedReference"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_exist_yet_is_waited_for_by_a_watch() {
    let stand = stand().await;
    for (name, parameters, words) in [
        (
            "by-labels",
            json!({"neighborSelector": {"matchLabels": {"role": "late"}}}),
            format!("{NO_MATCH} role=late"),
        ),
        (
            "by-controller",
            json!({"neighborSelector": {"matchControllerRef": true, "matchLabels": {"role": "late"}}}),
            format!("{NO_MATCH} role=late, the same controller"),
        ),
        (
            "by-name",
            json!({"neighborRef": {"name": "late"}}),
            "cannot resolve references: spec.forProvider.neighbor: cannot get referenced resource: Thing \"late\" not \
             found"
                .to_owned(),
        ),
        (
            "by-names",
            json!({"neighborRefs": [{"name": "late"}, {"name": "later"}]}),
            "cannot resolve references: spec.forProvider.neighbors: cannot get referenced resource: Thing \"late\" not \
             found"
                .to_owned(),
        ),
    ] {
        stand.create(name, &spec(&parameters), &metadata(&json!({}), "u")).await;
        stand.until_synced_says(name, &words).await;
        stand
            .until_event(
                name,
                "Warning",
                "CannotResolveResourceReferences",
                words.trim_start_matches("cannot resolve references: "),
            )
            .await;
    }
    // It exists, and has no external name as long as it is paused.
    let mut paused = metadata(&json!({"role": "late"}), "u");
    paused["annotations"] = json!({"crossplane.io/paused": "true"});
    stand.create("late", &spec(&json!({"size": 1})), &paused).await;
    let empty = "cannot resolve references: spec.forProvider.neighbor: referenced field was empty (referenced resource \
                 may not yet be ready): Thing";
    stand.until_synced_says("by-name", &format!("{empty} \"late\"")).await;
    stand.until_synced_says("by-labels", &format!("{empty} with role=late")).await;
    stand.patch("late", &json!({"metadata": {"annotations": {"crossplane.io/paused": null}}})).await;
    for name in ["by-labels", "by-controller", "by-name"] {
        let parameters = stand.parameters_when_ready(name).await;
        assert_eq!(parameters["neighbor"], "late", "{name}");
    }
    let words = "cannot resolve references: spec.forProvider.neighbors: cannot get referenced resource: Thing \"later\" \
                 not found";
    stand.until_synced_says("by-names", words).await;
    stand.target("later", &json!({}), "").await;
    assert_eq!(stand.parameters_when_ready("by-names").await["neighbors"], json!(["late", "later"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selectors_can_be_bound_to_the_controller() {
    let stand = stand().await;
    stand.target("a-stranger", &json!({}), "other").await;
    stand.target("an-orphan", &json!({}), "").await;
    stand.target("sibling", &json!({}), "u").await;
    for spelling in ["matchControllerRef", "matchComposite"] {
        let name = format!("with-{}", spelling.to_lowercase());
        let parameters = spec(&json!({"neighborSelector": {spelling: true, "matchLabels": {}}}));
        // It is not chosen itself: it has no controller of the others' kind before, and sorts behind.
        stand.create(&name, &parameters, &metadata(&json!({}), "u")).await;
        assert_eq!(stand.parameters_when_ready(&name).await["neighbor"], "sibling", "{spelling}");
        let free = format!("free-{}", spelling.to_lowercase());
        stand.create(&free, &parameters, &json!({})).await;
        stand.until_synced_says(&free, &format!("{NO_MATCH} the same controller")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_optional_reference_holds_nothing_up() {
    let stand = stand().await;
    let optional = json!({"resolution": "Optional"});
    for (name, parameters) in [
        ("ref", json!({"size": 1, "neighborRef": {"name": "missing", "policy": optional}})),
        ("selector", json!({"size": 1, "neighborSelector": {"matchLabels": {"a": "b"}, "policy": optional}})),
        (
            "refs",
            json!({"size": 1, "neighborRefs": [{"name": "missing", "policy": optional}, {"name": "known"}]}),
        ),
    ] {
        if name == "refs" {
            stand.target("known", &json!({}), "").await;
        }
        stand.create(name, &spec(&parameters), &json!({})).await;
        let parameters = stand.parameters_when_ready(name).await;
        assert!(parameters.get("neighbor").is_none(), "{parameters}");
        let known = (name == "refs").then(|| json!(["known"]));
        assert_eq!(parameters.get("neighbors"), known.as_ref());
    }
    // The same, required: nothing is created.
    let required =
        json!({"size": 1, "neighborRef": {"name": "missing", "policy": {"resolution": "Required"}}});
    stand.create("required", &spec(&required), &json!({})).await;
    let refused = |o: Option<&Value>| o.is_some_and(|o| condition(o, "Synced").reason == "ReconcileError");
    stand.until("it is an error", "required", refused).await;
    assert!(!stand.cloud.things.lock().unwrap().contains_key("required"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resolve_always_follows_what_changes() {
    let stand = stand().await;
    stand.target("y", &json!({"role": "first"}), "").await;
    for (policy, suffix) in [("Always", "always"), ("IfNotPresent", "once")] {
        let policy = json!({"resolve": policy});
        let reference = json!({"neighborRef": {"name": "y", "policy": policy}});
        let selector = json!({"neighborSelector": {"matchLabels": {"role": "first"}, "policy": policy}});
        let several = json!({"neighborsSelector": {"matchLabels": {"role": "first"}, "policy": policy}});
        for (name, parameters) in [("ref", reference), ("selector", selector), ("several", several)] {
            stand.create(&format!("{name}-{suffix}"), &spec(&parameters), &json!({})).await;
            stand.parameters_when_ready(&format!("{name}-{suffix}")).await;
        }
    }
    // One that comes first by name, and then another external name of the one that is referred to.
    stand.target("x", &json!({"role": "first"}), "").await;
    stand.until_field("selector-always", "neighbor", &json!("x")).await;
    stand.until_field("selector-always", "neighborRef", &json!({"name": "x"})).await;
    stand.until_field("several-always", "neighbors", &json!(["x", "y"])).await;
    let renamed = json!({"metadata": {"annotations": {"crossplane.io/external-name": "w"}}});
    stand.patch("y", &renamed).await;
    stand.until_field("ref-always", "neighbor", &json!("w")).await;
    // Values are sorted and references are in the order of their values.
    stand.until_field("several-always", "neighbors", &json!(["w", "x"])).await;
    stand.until_field("several-always", "neighborRefs", &json!([{"name": "y"}, {"name": "x"}])).await;
    // The others keep what they have, also when they are reconciled.
    assert_eq!(stand.reconcile("ref-once", "1").await["neighbor"], "y");
    assert_eq!(stand.reconcile("selector-once", "1").await["neighborRef"], json!({"name": "y"}));
    assert_eq!(stand.reconcile("several-once", "1").await["neighbors"], json!(["y"]));
    // Until the value is taken away.
    let cleared = json!({"spec": {"forProvider": {"neighbor": null, "neighborRef": null}}});
    stand.patch("selector-once", &cleared).await;
    stand.until_field("selector-once", "neighbor", &json!("x")).await;
}

/// References in a list are resolved in their order; those that a selector finds, once each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_references_have_lists_of_values() {
    let stand = stand().await;
    for (name, external) in [("a", "same"), ("b", "other"), ("c", "same")] {
        let mut metadata = metadata(&json!({"of": "list"}), "");
        metadata["annotations"] = json!({"crossplane.io/external-name": external});
        stand.create(name, &spec(&json!({})), &metadata).await;
        stand.until("a target is ready", name, is_ready).await;
    }
    let named = json!({"neighborRefs": [{"name": "c"}, {"name": "b"}, {"name": "a"}]});
    stand.create("named", &spec(&named), &json!({})).await;
    let parameters = stand.parameters_when_ready("named").await;
    assert_eq!(parameters["neighbors"], json!(["same", "other", "same"]));
    assert_eq!(parameters["neighborRefs"], named["neighborRefs"], "what a user wrote stays");
    let selected = json!({"neighborsSelector": {"matchLabels": {"of": "list"}}});
    stand.create("selected", &spec(&selected), &json!({})).await;
    let parameters = stand.parameters_when_ready("selected").await;
    assert_eq!(parameters["neighbors"], json!(["other", "same"]));
    assert_eq!(parameters["neighborRefs"], json!([{"name": "b"}, {"name": "a"}]));
}
