//! When admission plugins are called, what they see and may change, and what happens when they fail.

use crate::client::{Client, config_map, widgets};
use http::Method;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use transom_apiserver::{
    Admission, Endpoint, Identity, Operation, Options, Phase, Review, Verdict, async_trait,
};
use transom_object::Status;
use transom_store::Store;

type Calls = Arc<Mutex<Vec<String>>>;
type Decide = fn(&Review<'_>) -> Verdict;

/// Notes every review, and decides as the test says.
struct Plugin {
    calls: Calls,
    decide: Decide,
}

#[async_trait]
impl Admission for Plugin {
    fn name(&self) -> &str {
        "test"
    }

    fn wants(&self, _: Phase, _: Operation, endpoint: &Endpoint<'_>) -> bool {
        endpoint.resource != "namespaces"
    }

    async fn review(&self, review: &Review<'_>) -> Verdict {
        let r = review;
        let version =
            |o: Option<&Value>| o.map_or("-", |o| o["data"]["k"].as_str().unwrap_or("?")).to_owned();
        let endpoint = [r.endpoint.resource, r.endpoint.subresource].join("/");
        let (operation, name) = (r.operation.as_str(), r.name);
        let (old, new, user) = (version(r.old_object), version(r.object), &r.user.user);
        let dry_run = if r.dry_run { " dry run" } else { "" };
        let line = format!("{:?} {operation} {endpoint} {name} {old}→{new} by {user}{dry_run}", r.phase);
        self.calls.lock().unwrap().push(line);
        (self.decide)(review)
    }
}

async fn with(decide: Decide) -> (Client, Calls) {
    let calls = Calls::default();
    let store = Store::in_step(transom_store::Options::default());
    let admission: Vec<Box<dyn Admission>> = vec![Box::new(Plugin { calls: calls.clone(), decide })];
    let client = Client::with(&store, Options { admission, ..Options::default() }).await;
    calls.lock().unwrap().clear();
    (client, calls)
}

fn taken(calls: &Calls) -> Vec<String> {
    std::mem::take(&mut *calls.lock().unwrap())
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn apply(name: &str) -> (Method, String, &'static str) {
    (Method::PATCH, format!("{MAPS}/{name}?fieldManager=m"), "application/apply-patch+yaml")
}

#[tokio::test]
async fn each_write_is_reviewed_once_in_each_phase() {
    let (client, calls) = with(|_| Verdict::allow()).await;
    let both = |rest: &str| vec![format!("Mutate {rest} by admin"), format!("Validate {rest} by admin")];
    client.post(MAPS, &config_map("a")).await.expect(201);
    assert_eq!(taken(&calls), both("CREATE configmaps/ a -→v"));
    client.merge(&format!("{MAPS}/a"), &json!({"data": {"k": "w"}})).await.expect(200);
    assert_eq!(taken(&calls), both("UPDATE configmaps/ a v→w"));
    client.put(&format!("{MAPS}/a"), &config_map("a")).await.expect(200);
    assert_eq!(taken(&calls), both("UPDATE configmaps/ a w→v"));
    let (method, path, media) = apply("b");
    client.send(method.clone(), &path, media, &config_map("b")).await.expect(201);
    assert_eq!(taken(&calls), both("CREATE configmaps/ b -→v"), "an apply that creates");
    client.send(method, &path, media, &config_map("b")).await.expect(200);
    assert_eq!(taken(&calls), both("UPDATE configmaps/ b v→v"), "an apply that changes nothing");
    client.get(&format!("{MAPS}/a")).await.expect(200);
    client.get(MAPS).await.expect(200);
    assert!(taken(&calls).is_empty(), "reads are not reviewed");
    client.post(&format!("{MAPS}?dryRun=All"), &config_map("c")).await.expect(201);
    let dry_run: Vec<String> =
        both("CREATE configmaps/ c -→v").iter().map(|line| format!("{line} dry run")).collect();
    assert_eq!(taken(&calls), dry_run);
    client.delete(&format!("{MAPS}/a")).await.expect(200);
    assert_eq!(taken(&calls), both("DELETE configmaps/ a v→-"));
    client.post(MAPS, &config_map("c")).await.expect(201);
    taken(&calls);
    client.delete(MAPS).await.expect(200);
    let each = [both("DELETE configmaps/ b v→-"), both("DELETE configmaps/ c v→-")].concat();
    assert_eq!(taken(&calls), each, "deletecollection");
}

#[tokio::test]
async fn what_never_reaches_admission() {
    let (client, calls) = with(|_| Verdict::allow()).await;
    client.post("/api/v1/namespaces/none/configmaps", &config_map("a")).await.expect(404);
    client.send(Method::POST, MAPS, "application/json", &json!({"metadata": 3})).await.expect(400);
    client.merge(&format!("{MAPS}/none"), &json!({})).await.expect(404);
    client.delete(&format!("{MAPS}/none")).await.expect(404);
    let jane = client.seen_by(Some(Identity::new("jane", [])));
    jane.post(MAPS, &config_map("a")).await.expect(403);
    assert!(taken(&calls).is_empty());
    // An object that is invalid is not shown to validating plugins.
    client.post(MAPS, &config_map("Not A Name")).await.expect(422);
    assert_eq!(taken(&calls), ["Mutate CREATE configmaps/ Not A Name -→v by admin"]);
}

#[tokio::test]
async fn a_generated_name_is_chosen_between_the_phases() {
    let (client, calls) = with(|_| Verdict::allow()).await;
    let mut object = config_map("");
    object["metadata"] = json!({"generateName": "g-"});
    let created = client.post(MAPS, &object).await.expect(201).json();
    let name = created["metadata"]["name"].as_str().unwrap();
    assert_eq!(
        taken(&calls),
        [
            "Mutate CREATE configmaps/  -→v by admin".to_owned(),
            format!("Validate CREATE configmaps/ {name} -→v by admin")
        ]
    );
}

#[tokio::test]
async fn a_mutating_plugin_changes_what_is_validated_and_stored() {
    let (client, calls) = with(|review| match (review.phase, review.object) {
        (Phase::Mutate, Some(object)) if review.endpoint.resource == "configmaps" => {
            let mut object = object.clone();
            object["data"]["added"] = "by the plugin".into();
            object["data"]["k"] = "m".into();
            object["unknown"] = "pruned".into();
            object["metadata"]["managedFields"] = json!([]);
            Verdict::replace(object).warn("changed by the plugin")
        }
        _ => Verdict::allow(),
    })
    .await;
    let reply = client.post(MAPS, &config_map("a")).await.expect(201);
    assert_eq!(reply.warnings(), ["299 - \"changed by the plugin\""]);
    let created = reply.json();
    assert_eq!(created["data"], json!({"k": "m", "added": "by the plugin"}));
    assert!(created.get("unknown").is_none());
    let managers = created["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(
        managers[0]["fieldsV1"],
        json!({"f:data": {".": {}, "f:k": {}}}),
        "the client's, as Kubernetes has it"
    );
    assert_eq!(taken(&calls)[1], "Validate CREATE configmaps/ a -→m by admin");
    let updated = client.put(&format!("{MAPS}/a"), &config_map("a")).await.expect(200).json();
    assert_eq!(updated["data"], json!({"k": "m", "added": "by the plugin"}));
    assert_eq!(
        updated["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"],
        "nothing changed"
    );
}

#[tokio::test]
async fn a_mutated_object_is_validated() {
    let (client, calls) = with(|review| match (review.phase, review.object) {
        (Phase::Mutate, Some(object)) if review.endpoint.resource == "configmaps" => {
            let mut object = object.clone();
            object["metadata"]["labels"] = json!({"not a label": "x"});
            Verdict::replace(object)
        }
        _ => Verdict::allow(),
    })
    .await;
    let refused = client.post(MAPS, &config_map("a")).await.expect(422).json();
    assert!(refused["message"].as_str().unwrap().contains("metadata.labels"), "{refused}");
    assert_eq!(taken(&calls).len(), 1, "no validating phase");
}

#[tokio::test]
async fn a_refusal_is_the_response() {
    let (client, _) = with(|review| match (review.phase, review.operation) {
        (Phase::Validate, Operation::Delete) => {
            let policy = review.options["propagationPolicy"].as_str().unwrap_or("none");
            Verdict::refuse(Status::new(409, "InUse", format!("in use: {policy}"))).warn("think twice")
        }
        (Phase::Mutate, Operation::Update) => Verdict::refuse(Status::new(418, "", "no updates")),
        _ => Verdict::allow(),
    })
    .await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a");
    let refused = client.delete(&format!("{path}?propagationPolicy=Foreground")).await.expect(409);
    assert_eq!(refused.warnings(), ["299 - \"think twice\""]);
    assert_eq!(
        (&refused.json()["message"], &refused.json()["reason"]),
        (&json!("in use: Foreground"), &json!("InUse"))
    );
    client.delete(&format!("{path}?dryRun=All")).await.expect(409);
    client.delete(MAPS).await.expect(409);
    client.merge(&path, &json!({"data": {"k": "w"}})).await.expect(418);
    let (method, apply_path, media) = apply("a");
    client.send(method, &apply_path, media, &config_map("a")).await.expect(418);
    assert_eq!(client.get(&path).await.expect(200).json()["data"]["k"], "v");
}

#[tokio::test]
async fn subresources_are_reviewed_as_their_own_kinds() {
    let (client, calls) = with(|review| match (review.phase, review.object) {
        (Phase::Mutate, Some(object)) if object["kind"] == "Scale" => {
            let mut object = object.clone();
            object["spec"]["replicas"] = 5.into();
            Verdict::replace(object)
        }
        _ => Verdict::allow(),
    })
    .await;
    let (path, widget) = widgets(&client).await;
    client.post(&path, &widget).await.expect(201);
    taken(&calls);
    let scaled =
        client.merge(&format!("{path}/w/scale"), &json!({"spec": {"replicas": 3}})).await.expect(200);
    assert_eq!(scaled.json()["spec"]["replicas"], 5);
    assert_eq!(client.get(&format!("{path}/w")).await.json()["spec"]["replicas"], 5);
    client.merge(&format!("{path}/w/status"), &json!({"status": {"replicas": 1}})).await.expect(200);
    let subresources: Vec<String> = taken(&calls);
    assert_eq!(
        subresources,
        [
            "Mutate UPDATE widgets/scale w ?→? by admin",
            "Validate UPDATE widgets/scale w ?→? by admin",
            "Mutate UPDATE widgets/status w ?→? by admin",
            "Validate UPDATE widgets/status w ?→? by admin",
        ]
    );
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}});
    client.post("/api/v1/namespaces/default/serviceaccounts", &account).await.expect(201);
    taken(&calls);
    client.post("/api/v1/namespaces/default/serviceaccounts/sa/token", &json!({})).await.expect(201);
    assert_eq!(
        taken(&calls),
        [
            "Mutate CREATE serviceaccounts/token sa -→? by admin",
            "Validate CREATE serviceaccounts/token sa -→? by admin"
        ]
    );
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await.expect(201);
    assert_eq!(taken(&calls).len(), 2, "reviews are created, too");
}

#[tokio::test(start_paused = true)]
async fn upkeep_is_reviewed_under_a_name_of_its_own() {
    let (client, calls) = with(|_| Verdict::allow()).await;
    let server = client.server.clone();
    tokio::spawn(async move { server.run_upkeep().await });
    let owner = client.post(MAPS, &config_map("owner")).await.expect(201).json();
    let mut owned = config_map("owned");
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    client.post(MAPS, &owned).await.expect(201);
    client.delete(&format!("{MAPS}/owner")).await.expect(200);
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.get(&format!("{MAPS}/owned")).await.expect(404);
    let collector = "system:serviceaccount:kube-system:generic-garbage-collector";
    let expected = format!("Validate DELETE configmaps/ owned v→- by {collector}");
    assert!(taken(&calls).contains(&expected));
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_panics_or_hangs_fails_its_request_only() {
    struct Failing;

    #[async_trait]
    impl Admission for Failing {
        fn name(&self) -> &str {
            "failing"
        }

        fn wants(&self, phase: Phase, _: Operation, endpoint: &Endpoint<'_>) -> bool {
            phase == Phase::Validate && endpoint.resource == "configmaps"
        }

        async fn review(&self, review: &Review<'_>) -> Verdict {
            match review.name {
                "panics" => panic!("as the test wants"),
                "hangs" => std::future::pending().await,
                _ => Verdict::allow(),
            }
        }
    }

    let store = Store::in_step(transom_store::Options::default());
    let options = Options { admission: vec![Box::new(Failing)], ..Options::default() };
    let client = Client::with(&store, options).await;
    let server = client.server.clone();
    tokio::spawn(async move { server.run_upkeep().await });
    let (panics, hangs) = (config_map("panics"), config_map("hangs"));
    let started = tokio::time::Instant::now();
    let hanging = client.post(MAPS, &hangs);
    let others = async {
        let refused = client.post(MAPS, &panics).await.expect(500).json();
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("the admission plugin \"failing\" failed unexpectedly"), "{message}");
        client.post(MAPS, &config_map("fine")).await.expect(201);
        client.get(&format!("{MAPS}/fine")).await.expect(200);
        assert!(started.elapsed() < Duration::from_secs(1), "nothing waits for the plugin that hangs");
    };
    let (hung, ()) = tokio::join!(hanging, others);
    let refused = hung.expect(500).json();
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("the admission plugin \"failing\" did not respond within 30 seconds"),
        "{message}"
    );
    for name in ["panics", "hangs"] {
        client.get(&format!("{MAPS}/{name}")).await.expect(404);
    }
    // Upkeep goes on, too.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}});
    client.post("/api/v1/namespaces", &namespace).await.expect(201);
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.get("/api/v1/namespaces/later/serviceaccounts/default").await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_slow_plugin_on_one_definition_delays_no_other() {
    struct Slow;

    #[async_trait]
    impl Admission for Slow {
        fn name(&self) -> &str {
            "slow"
        }

        fn wants(&self, phase: Phase, _: Operation, endpoint: &Endpoint<'_>) -> bool {
            phase == Phase::Validate && endpoint.resource == "customresourcedefinitions"
        }

        async fn review(&self, review: &Review<'_>) -> Verdict {
            if review.name == "widgets.example.org" {
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
            Verdict::allow()
        }
    }

    let store = Store::in_step(transom_store::Options::default());
    let options = Options { admission: vec![Box::new(Slow)], ..Options::default() };
    let client = Client::with(&store, options).await;
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let started = tokio::time::Instant::now();
    let (widgets, gadgets) = (crate::client::definition("Widget"), crate::client::definition("Gadget"));
    let quick = async {
        client.post(crds, &gadgets).await.expect(201);
        started.elapsed()
    };
    let (slow, quick) = tokio::join!(client.post(crds, &widgets), quick);
    slow.expect(201);
    assert!(quick < Duration::from_secs(1), "{quick:?}");
}
