//! POST.

use crate::client::{Client, config_map, widgets};
use serde_json::json;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn a_new_object_gets_its_metadata_from_the_server() {
    let client = Client::in_memory().await;
    let mut object = config_map("a");
    object["metadata"]["uid"] = "chosen".into();
    object["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    object["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z".into();
    let created = client.post(&format!("{MAPS}?fieldManager=me"), &object).await.expect(201).json();
    let metadata = &created["metadata"];
    assert_eq!((metadata["name"].as_str(), metadata["namespace"].as_str()), (Some("a"), Some("default")));
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert_ne!(metadata["creationTimestamp"], "2001-01-01T00:00:00Z");
    assert!(metadata.get("deletionTimestamp").is_none());
    assert!(metadata["resourceVersion"].as_str().unwrap().parse::<u64>().is_ok());
    assert_eq!(metadata["managedFields"][0]["manager"], "me");
    assert_eq!(client.get(&format!("{MAPS}/a")).await.expect(200).json(), created);
}

#[tokio::test]
async fn what_is_refused() {
    let client = Client::in_memory().await;
    client.post(MAPS, &config_map("a")).await.expect(201);
    let exists = client.post(MAPS, &config_map("a")).await.expect(409).json();
    assert_eq!(exists["reason"], "AlreadyExists");
    assert_eq!(exists["message"], "configmaps \"a\" already exists");
    let mut elsewhere = config_map("b");
    elsewhere["metadata"]["namespace"] = "elsewhere".into();
    client.post(MAPS, &elsewhere).await.expect(400);
    client.post("/api/v1/namespaces/none/configmaps", &config_map("b")).await.expect(404);
    let mut versioned = config_map("b");
    versioned["metadata"]["resourceVersion"] = "1".into();
    client.post(MAPS, &versioned).await.expect(500);
    let invalid = client.post(MAPS, &config_map("Not_A_Name")).await.expect(422).json();
    assert_eq!((&invalid["reason"], &invalid["details"]["name"]), (&json!("Invalid"), &json!("Not_A_Name")));
    client
        .post(MAPS, &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}}))
        .await
        .expect(400);
    client.get(&format!("{MAPS}/b")).await.expect(404);
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let client = Client::in_memory().await;
    let dry_run = format!("{MAPS}?dryRun=All");
    let created = client.post(&dry_run, &config_map("a")).await.expect(201).json();
    assert!(created["metadata"]["uid"].is_string());
    client.get(&format!("{MAPS}/a")).await.expect(404);
    client.post(MAPS, &config_map("a")).await.expect(201);
    client.post(&dry_run, &config_map("a")).await.expect(409);
    client.post(&format!("{MAPS}?dryRun=Some"), &config_map("b")).await.expect(422);
}

#[tokio::test]
async fn generated_names_are_distinct() {
    let client = Client::in_memory().await;
    let mut object = config_map("");
    object["metadata"] = json!({"generateName": "g-"});
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let created = client.post(MAPS, &object).await.expect(201).json();
        let name = created["metadata"]["name"].as_str().unwrap().to_owned();
        assert!(name.starts_with("g-") && name.len() == 7, "{name}");
        names.insert(name);
    }
    assert_eq!(names.len(), 20);
}

#[tokio::test]
async fn custom_objects_are_defaulted_pruned_and_validated() {
    let client = Client::in_memory().await;
    let (path, mut widget) = widgets(&client).await;
    widget["spec"]["unknown"] = "pruned".into();
    let created = client.post(&path, &widget).await.expect(201);
    assert_eq!(created.warnings(), ["299 - \"unknown field \\\"spec.unknown\\\"\""]);
    assert_eq!(created.json()["spec"], json!({"color": "red", "replicas": 2}));
    assert_eq!(created.json()["metadata"]["generation"], 1);
    widget["metadata"]["name"] = "strict".into();
    client.post(&format!("{path}?fieldValidation=Strict"), &widget).await.expect(400);
    widget["spec"] = json!({"color": "blue"});
    let invalid = client.post(&path, &widget).await.expect(422).json();
    assert!(invalid["message"].as_str().unwrap().contains("spec.color: Unsupported value"), "{invalid}");
}
