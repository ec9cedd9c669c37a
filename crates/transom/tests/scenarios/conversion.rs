//! Versions that are converted by rules: docs/conversion.md on a control plane, and what its promises are worth when things go
//! wrong.

mod killed;

use crate::scenarios::user::*;
use serde_json::{Value, json};
use transom_object::meta;
use transom_testkit::process::wait_until;

const GUIDE: &str = include_str!("../../../../docs/conversion.md");
const OLD: &str = "example.org/v1alpha1/Bucket";
const NEW: &str = "example.org/v1/Bucket";
const BUCKETS: &str = "buckets.example.org";

/// A file of the guide.
fn file(name: &str) -> Value {
    let start = format!("```yaml\n# {name}\n");
    let found = GUIDE.split_once(&start).and_then(|(_, rest)| rest.split_once("```"));
    let text = found.map(|(text, _)| text).unwrap_or_else(|| panic!("the guide has no {name}"));
    documents(text).remove(0)
}

/// The definition of the guide with both versions, of which one is referenceable.
fn both(referenceable: &str) -> Value {
    let mut xrd = file("both.yaml");
    for version in xrd["spec"]["versions"].as_array_mut().unwrap() {
        version["referenceable"] = (version["name"] == referenceable).into();
    }
    xrd
}

/// The definition of the guide once the old version is gone.
fn only_new() -> Value {
    let mut xrd = both("v1");
    xrd["spec"]["versions"].as_array_mut().unwrap().retain(|version| version["name"] == "v1");
    xrd["spec"]["conversion"] = json!({"strategy": "Declarative", "rules": []});
    xrd
}

fn bucket(version: &str, name: &str, spec: &Value) -> String {
    let metadata = json!({"name": name, "namespace": "default"});
    json!({"apiVersion": format!("example.org/{version}"), "kind": "Bucket", "metadata": metadata, "spec": spec})
        .to_string()
}

fn composition_for(version: &str) -> String {
    composition(version, "Bucket", &json!({}), &[answer(&json!({}))])
        .replace("example.org/v1\"", &format!("example.org/{version}\""))
}

impl User {
    async fn until_converted(&self, version: &str) {
        self.until(CRD, BUCKETS, |crd| {
            let mut versions = crd["spec"]["versions"].as_array().unwrap().iter();
            versions.any(|v| v["name"] == version) && crd["spec"]["conversion"]["strategy"] == "Webhook"
        })
        .await;
    }

    async fn until_migrated(&self) -> Value {
        self.until(XRD, BUCKETS, |xrd| {
            status_of(xrd, "StorageMigrated") == "True" && xrd["status"]["storedVersions"] == json!(["v1"])
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_evolves_with_a_client_on_each_version() {
    let user = User::new().await;
    user.apply(&file("v1alpha1.yaml").to_string()).await;
    user.apply(&composition_for("v1alpha1")).await;
    user.apply(&bucket("v1alpha1", "photos", &json!({"sizeGi": 10, "region": "eu", "fast": true}))).await;
    user.until_ready(OLD, "default/photos").await;
    user.apply(&both("v1alpha1").to_string()).await;
    user.until_converted("v1").await;
    let seen = user.until(NEW, "default/photos", |_| true).await;
    assert_eq!((&seen["spec"]["size"], &seen["spec"]["class"]), (&json!("10Gi"), &json!("fast")), "{seen:#}");
    assert_eq!(seen["spec"]["location"], json!({"region": "eu"}));
    assert_eq!(status_of(&seen, "Ready"), "True", "Crossplane's own fields are the same");
    // A client of the new version sets what the old one does not have, one of the old version changes what both have.
    let zone = json!({"spec": {"location": {"zone": "eu-1"}}});
    user.patch(NEW, "default/photos", zone).await;
    user.patch(OLD, "default/photos", json!({"spec": {"sizeGi": 20, "fast": false}})).await;
    let seen = user.get(NEW, "default/photos").await.unwrap();
    assert_eq!(seen["spec"]["location"], json!({"region": "eu", "zone": "eu-1"}));
    assert_eq!((&seen["spec"]["size"], &seen["spec"]["class"]), (&json!("20Gi"), &json!("standard")));
    // Server-side apply in both versions.
    user.apply(&bucket("v1", "music", &json!({"size": "7Gi", "location": {"zone": "b"}}))).await;
    user.apply(&bucket("v1alpha1", "films", &json!({"sizeGi": 9}))).await;
    assert_eq!(user.get(OLD, "default/music").await.unwrap()["spec"]["sizeGi"], 7);
    assert_eq!(user.get(NEW, "default/films").await.unwrap()["spec"]["size"], "9Gi");
    // The composition for the new version takes over.
    user.apply(&composition_for("v1")).await;
    user.apply(&both("v1").to_string()).await;
    user.until_migrated().await;
    let crd = user.until(CRD, BUCKETS, |crd| crd["status"]["storedVersions"] == json!(["v1"])).await;
    assert!(crd["spec"]["versions"].as_array().unwrap().len() == 2);
    let to_v1 =
        json!({"spec": {"crossplane": {"compositionRef": {"name": "v1"}, "compositionRevisionRef": null}}});
    user.patch(NEW, "default/photos", to_v1).await;
    user.until_ready(NEW, "default/photos").await;
    let seen = user.get(OLD, "default/photos").await.unwrap();
    assert_eq!((&seen["spec"]["sizeGi"], &seen["spec"]["region"]), (&json!(20), &json!("eu")));
    // The old version goes once nothing is for it.
    let why = user.refused_change(&only_new().to_string()).await;
    assert!(why.contains("version v1alpha1 cannot be removed: Compositions are for it (v1alpha1)"), "{why}");
    user.delete(COMPOSITION, "v1alpha1", None).await;
    user.until_gone(COMPOSITION, "v1alpha1").await;
    user.apply(&only_new().to_string()).await;
    user.until(CRD, BUCKETS, |crd| crd["spec"]["versions"].as_array().unwrap().len() == 1).await;
    let seen = user.get(NEW, "default/photos").await.unwrap();
    assert_eq!(seen["spec"]["location"], json!({"region": "eu", "zone": "eu-1"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_report_each_version_to_its_client() {
    let user = User::new().await;
    user.apply(&both("v1alpha1").to_string()).await;
    user.until_converted("v1").await;
    user.apply(&bucket("v1alpha1", "a", &json!({"sizeGi": 1}))).await;
    let (old_client, new_client) = (user.client().await, user.client().await);
    let path = |version: &str| format!("/apis/example.org/{version}/namespaces/default/buckets?watch=true");
    let mut old = old_client.watch(&path("v1alpha1")).await.unwrap();
    let mut new = new_client.watch(&path("v1")).await.unwrap();
    user.patch(NEW, "default/a", json!({"spec": {"size": "5Gi"}})).await;
    let mut seen = Vec::new();
    for (watch, field) in [(&mut old, "sizeGi"), (&mut new, "size")] {
        let wanted = if field == "size" { json!("5Gi") } else { json!(5) };
        loop {
            let event = watch.next().await.expect("the watch goes on");
            if event["object"]["spec"][field] == wanted {
                seen.push(event["object"]["apiVersion"].clone());
                break;
            }
        }
    }
    assert_eq!(seen, ["example.org/v1alpha1", "example.org/v1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_are_converted_by_the_same_rules() {
    let user = User::new().await;
    let mut xrd = both("v1");
    xrd["apiVersion"] = "apiextensions.crossplane.io/v1".into();
    xrd["spec"]["scope"] = "LegacyCluster".into();
    xrd["spec"]["claimNames"] = json!({"kind": "BucketClaim", "plural": "bucketclaims"});
    user.apply(&xrd.to_string()).await;
    user.until_true(XRD, BUCKETS, "Offered").await;
    user.apply(&composition_for("v1")).await;
    let claim = bucket("v1alpha1", "mine", &json!({"sizeGi": 3, "fast": true}))
        .replace("\"Bucket\"", "\"BucketClaim\"");
    user.apply(&claim).await;
    let bound = user.until_ready("example.org/v1/BucketClaim", "default/mine").await;
    assert_eq!(bound["spec"]["size"], "3Gi");
    let composite = user.until_any(OLD, |xr| xr["spec"]["claimRef"]["name"] == "mine").await;
    assert_eq!((&composite["spec"]["sizeGi"], &composite["spec"]["fast"]), (&json!(3), &json!(true)));
    // A change by a client of the old version reaches the composite resource.
    user.patch("example.org/v1alpha1/BucketClaim", "default/mine", json!({"spec": {"sizeGi": 4}})).await;
    user.until_any(NEW, |xr| xr["spec"]["size"] == "4Gi").await;
    user.until_migrated().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_lose_something_are_refused() {
    let user = User::without_functions(&[], &[]).await;
    let refused = async |change: &dyn Fn(&mut Value)| {
        let mut xrd = both("v1alpha1");
        change(&mut xrd);
        user.refusal(&xrd.to_string()).await
    };
    let rule =
        |xrd: &mut Value, part: &str, value: Value| xrd["spec"]["conversion"]["rules"][0][part] = value;
    let why =
        refused(&|xrd| rule(xrd, "backward", json!([{"path": "spec.sizeGi", "expression": "1"}]))).await;
    assert!(why.contains("v1alpha1 to v1 to v1alpha1: spec.sizeGi was"), "{why}");
    assert!(why.contains("spec.conversion.rules[0]"), "{why}");
    let why = refused(&|xrd| rule(xrd, "moves", json!([{"from": "spec.region", "to": "spec.place"}]))).await;
    assert!(
        why.contains("spec.conversion.rules[0].moves[0].to: version v1 has no field spec.place"),
        "{why}"
    );
    let why = refused(&|xrd| rule(xrd, "forward", json!([]))).await;
    assert!(why.contains("the converted object is refused: spec.size: Required value"), "{why}");
    let why = refused(&|xrd| {
        xrd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"] =
            json!({"type": "string"});
    })
    .await;
    assert!(why.contains("the expression for spec.sizeGi fails"), "{why}");
    let why = refused(&|xrd| xrd["spec"]["conversion"]["rules"] = json!([])).await;
    assert!(why.contains("no rule leads to version v1"), "{why}");
    assert_eq!(user.list(XRD).await.len(), 0, "nothing was stored");
    // A definition without rules is not concerned.
    user.apply(&file("v1alpha1.yaml").to_string()).await;
    user.until_true(XRD, BUCKETS, "Established").await;
    let crd = user.get(CRD, BUCKETS).await.unwrap();
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_goes_on_after_a_kill() {
    const OBJECTS: usize = 200;
    let mut user = User::without_functions(&[], &[]).await;
    user.apply(&both("v1alpha1").to_string()).await;
    user.until_converted("v1").await;
    user.until_true(XRD, BUCKETS, "Established").await;
    let made = (0..OBJECTS).map(|i| {
        let spec = json!({"sizeGi": i + 1, "region": format!("r{i}"), "fast": i % 2 == 0});
        let (user, text) = (&user, bucket("v1alpha1", &format!("b{i}"), &spec));
        async move { user.apply(&text).await }
    });
    futures_util::future::join_all(made).await;
    user.until_idle().await;
    let versions = |all: &[Value]| -> Vec<String> {
        all.iter().map(|object| meta::resource_version(object).to_owned()).collect()
    };
    let before = versions(&user.list(NEW).await);
    assert_eq!(before.len(), OBJECTS);
    user.apply(&both("v1").to_string()).await;
    // In the middle, as far as it can be seen from outside.
    wait_until("an object is stored anew", async || versions(&user.list(NEW).await) != before).await;
    user.restart(&[]).await;
    let xrd = user.until_migrated().await;
    assert_eq!(xrd["status"].get("migration"), None, "it has ended");
    // Without the old version nothing converts any more: what is stored in it could not be read.
    user.apply(&only_new().to_string()).await;
    user.until(CRD, BUCKETS, |crd| crd["spec"]["versions"].as_array().unwrap().len() == 1).await;
    let all = user.list(NEW).await;
    assert_eq!(all.len(), OBJECTS);
    for object in &all {
        let i: usize = meta::name(object).trim_start_matches('b').parse().unwrap();
        let class = if i.is_multiple_of(2) { "fast" } else { "standard" };
        let expected =
            json!({"size": format!("{}Gi", i + 1), "class": class, "location": {"region": format!("r{i}")}});
        let fields =
            ["size", "class", "location"].map(|field| (field.to_owned(), object["spec"][field].clone()));
        assert_eq!(Value::Object(fields.into_iter().collect()), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_may_be_stored_stays() {
    let user = User::without_functions(&[], &[]).await;
    user.apply(&both("v1alpha1").to_string()).await;
    user.until(XRD, BUCKETS, |xrd| xrd["status"]["storedVersions"] == json!(["v1alpha1"])).await;
    let why = user.refused_change(&only_new().to_string()).await;
    assert!(why.contains("version v1alpha1 cannot be removed: objects may be stored in it"), "{why}");
    assert!(why.contains("wait until the condition StorageMigrated is True"), "{why}");
    user.apply(&both("v1").to_string()).await;
    user.until_migrated().await;
    user.apply(&only_new().to_string()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_kept_fields_are_not_stored() {
    let user = User::without_functions(&[], &[]).await;
    let mut xrd = both("v1");
    let status = json!({"type": "object", "properties": {"vpcId": {"type": "string"}}});
    xrd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["status"] = status;
    user.apply(&xrd.to_string()).await;
    user.until_converted("v1").await;
    user.until_true(XRD, BUCKETS, "Established").await;
    user.apply(&bucket("v1alpha1", "a", &json!({"sizeGi": 1, "region": "eu"}))).await;
    let client = user.client().await;
    let path = "/apis/example.org/v1/namespaces/default/buckets/a/status";
    let status = json!({"status": {"vpcId": "true"}}).to_string();
    client.patch(path, "application/merge-patch+json", status).await.unwrap();
    let before = user.get(NEW, "default/a").await.unwrap();
    assert_eq!(before["status"]["vpcId"], "true");
    let fields =
        |object: &Value| ["size", "class", "location", "nope"].map(|field| object["spec"][field].clone());
    for forged in [
        json!([["spec", "location"], {"zone": 7}]),
        json!([["spec", "location"], "x"]),
        json!([["spec", "class"], "huge"]),
        json!([["spec", "nope"], "x"]),
        json!([["status", "vpcId"], "forged"]),
        json!([["status", "other"], "forged"]),
        json!([["metadata", "labels", "forged"], "x"]),
        json!([["forged"], "x"]),
    ] {
        let annotation = json!({"v1": [forged]}).to_string();
        let change = json!({"metadata": {"annotations": {"transom.io/kept-fields": annotation}}});
        user.patch(OLD, "default/a", change).await;
        let stored = user.get(NEW, "default/a").await.unwrap();
        assert_eq!(fields(&stored), fields(&before), "{forged}");
        assert_eq!((&stored["status"]["vpcId"], stored["status"].get("other")), (&json!("true"), None));
        assert_eq!((stored["metadata"]["labels"].get("forged"), stored.get("forged")), (None, None));
        assert_eq!((user.list(OLD).await.len(), user.list(NEW).await.len()), (1, 1), "{forged}");
    }
    // The status that only the new version has is not lost by a client of the old one, and it cannot write it.
    let change = json!({"spec": {"sizeGi": 2}, "status": {"keptFields": null, "vpcId": "forged"}});
    user.patch(OLD, "default/a", change).await;
    let stored = user.get(NEW, "default/a").await.unwrap();
    assert_eq!((&stored["spec"]["size"], &stored["status"]["vpcId"]), (&json!("2Gi"), &json!("true")));
}
