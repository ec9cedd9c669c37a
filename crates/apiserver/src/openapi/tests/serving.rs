//! How documents are served: forms, hashes, caching, and that they are never stale.

use super::{Client, definition};
use serde_json::json;
use std::time::Duration;

const ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const ANSWERED: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const PATH: &str = "apis/example.org/v1";

fn text() -> serde_json::Value {
    json!({"type": "object", "properties": {"color": {"type": "string"}, "n": {"type": "integer"}}})
}

#[tokio::test]
async fn the_client_chooses_the_form_of_v2() {
    let client = Client::start().await;
    for (accept, media) in [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        (ASKED, ANSWERED),
        (ANSWERED, ANSWERED),
        (
            "text/html,application/json;q=0.1, application/com.github.proto-openapi.spec.v2@v1.0+protobuf;q=0.9",
            ANSWERED,
        ),
    ] {
        let reply = client.get("/openapi/v2", &[("accept", accept)]).await;
        assert_eq!((reply.status.as_u16(), reply.header("content-type")), (200, media), "{accept}");
        assert!(reply.header("vary").contains("Accept"));
        assert_eq!(reply.body.starts_with(b"{"), media == "application/json");
    }
    for path in ["/openapi/v2", "/openapi/v3/api/v1"] {
        assert_eq!(client.get(path, &[("accept", "text/html")]).await.status, 406);
    }
    for path in ["/openapi/v3/apis/example.org/v1", "/openapi/v3/api/v2", "/openapi/v4", "/openapi"] {
        assert_eq!(client.get(path, &[]).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn compressed_and_plain_are_the_same_document() {
    let client = Client::start().await;
    let plain = client.get("/openapi/v3/apis/apps/v1", &[]).await;
    let zipped = client.get("/openapi/v3/apis/apps/v1", &[("accept-encoding", "gzip")]).await;
    assert_eq!(zipped.header("content-encoding"), "gzip");
    assert_eq!(plain.header("content-encoding"), "");
    assert_eq!(plain.header("etag"), zipped.header("etag"));
    let mut unzipped = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*zipped.body), &mut unzipped).unwrap();
    assert_eq!(unzipped, plain.body);
}

#[tokio::test]
async fn a_hash_names_the_content() {
    let client = Client::start().await;
    client.define(&definition("widgets", "Widget", &text())).await;
    let before = client.index().await;
    let reply = client.get(&before[PATH], &[]).await;
    assert_eq!(reply.status, 200);
    assert!(reply.header("cache-control").contains("immutable"));
    let etag = reply.header("etag").to_owned();
    assert!(before[PATH].ends_with(etag.trim_matches('"')), "the hash of the address is the ETag");
    let plain = format!("/openapi/v3/{PATH}");
    for address in [&before[PATH], &plain] {
        let again = client.get(address, &[("if-none-match", &etag)]).await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    }
    assert!(!client.get(&plain, &[]).await.header("cache-control").contains("immutable"));

    // What no document shows changes no hash.
    let columns = json!([{"op": "add", "path": "/spec/versions/0/additionalPrinterColumns",
        "value": [{"name": "C", "type": "string", "jsonPath": ".spec.color"}]}]);
    client.patch_definition("widgets.example.org", &columns).await;
    assert_eq!(client.index().await, before);

    // What one document shows changes its hash alone.
    let shape = json!([{"op": "add", "value": {"type": "boolean"},
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/new"}]);
    client.patch_definition("widgets.example.org", &shape).await;
    let after = client.index().await;
    let changed: Vec<&String> = after.keys().filter(|p| after.get(*p) != before.get(*p)).collect();
    assert_eq!(changed, [PATH]);
    let stale = client.get(&before[PATH], &[]).await;
    assert_eq!((stale.status.as_u16(), stale.header("location")), (301, after[PATH].as_str()));
    assert_eq!(client.get(&plain, &[("if-none-match", &etag)]).await.status, 200);
}

#[tokio::test]
async fn v2_keeps_its_tag_until_something_changes() {
    let client = Client::start().await;
    let tag = |reply: super::Reply| reply.header("etag").to_owned();
    for accept in ["application/json", ASKED] {
        let first = tag(client.get("/openapi/v2", &[("accept", accept)]).await);
        assert_eq!(tag(client.get("/openapi/v2", &[("accept", accept)]).await), first);
        let known = client.get("/openapi/v2", &[("accept", accept), ("if-none-match", &first)]).await;
        assert_eq!(known.status, 304);
        let plural = if accept == ASKED { "widgets" } else { "gears" };
        client.define(&definition(plural, &plural[..5].replacen(['w', 'g'], "K", 1), &text())).await;
        assert_ne!(tag(client.get("/openapi/v2", &[("accept", accept)]).await), first);
    }
}

#[tokio::test]
async fn a_new_kind_is_visible_at_once_and_a_deleted_one_is_gone() {
    let client = Client::start().await;
    assert!(!client.index().await.contains_key(PATH));
    client.define(&definition("widgets", "Widget", &text())).await;
    assert!(client.index().await.contains_key(PATH));
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let shown = client.get("/apis", &[("accept", aggregated)]).await;
    assert_eq!(shown.header("content-type"), aggregated);
    assert!(String::from_utf8_lossy(&shown.body).contains("example.org"));
    assert_eq!(client.get("/apis/example.org/v1", &[]).await.status, 200);
    let upkeep = client.server().clone();
    let upkeep = tokio::spawn(async move { upkeep.run_upkeep().await });
    let gone =
        http::Request::delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.org");
    assert_eq!(client.send(gone, None).await.status, 200);
    let vanished = async {
        while client.index().await.contains_key(PATH) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), vanished).await.expect("the kind vanishes from the index");
    assert_eq!(client.get(&format!("/openapi/v3/{PATH}"), &[]).await.status, 404);
    assert_eq!(client.get("/apis/example.org/v1", &[]).await.status, 404);
    upkeep.abort();
}

#[tokio::test]
async fn legacy_discovery_comes_in_upstreams_order() {
    let client = Client::start().await;
    client.define(&definition("widgets", "Widget", &text())).await;
    let group = client.get("/apis/example.org", &[]).await;
    let version = r#"{"groupVersion":"example.org/v1","version":"v1"}"#;
    let want = format!(
        r#"{{"kind":"APIGroup","apiVersion":"v1","name":"example.org","versions":[{version}],"preferredVersion":{version}}}"#
    );
    assert_eq!(String::from_utf8_lossy(&group.body).trim_end(), want);
    let list = client.get("/apis/example.org/v1", &[]).await;
    let list = String::from_utf8_lossy(&list.body).into_owned();
    let begins = r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.org/v1","resources":[{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"storageVersionHash":""#;
    assert!(list.starts_with(begins), "{list}");
    let scale = r#"{"name":"widgets/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]}"#;
    assert!(list.contains(scale), "{list}");
    let core = client.get("/api/v1", &[]).await;
    assert!(core.body.starts_with(br#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"#));
    assert!(client.get("/api", &[]).await.body.starts_with(br#"{"kind":"APIVersions","versions":["v1"],"#));
}

/// On one thread, a request that takes the thread would show as a gap.
#[tokio::test(flavor = "current_thread")]
async fn building_leaves_the_thread_to_others() {
    let client = Client::start().await;
    let building = client.get("/openapi/v2", &[("accept", ASKED)]);
    let mut beats = 0;
    tokio::pin!(building);
    loop {
        tokio::select! {
            reply = &mut building => {
                assert_eq!(reply.status, 200);
                break;
            }
            () = tokio::time::sleep(Duration::from_millis(1)) => beats += 1,
        }
    }
    assert!(beats > 0, "nothing else ran while the document was built");
}
