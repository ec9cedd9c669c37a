//! Bodies: too deep, too large, in no encoding, in the wrong one.

use super::{CONFIG_MAPS, DEFINITIONS, Target};
use http::Method;
use serde_json::json;
use transom_testkit::rng::Rng;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const DEEP: usize = 10_000;

/// A ConfigMap with `filling` where a value belongs.
fn around(filling: &str) -> Vec<u8> {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x"}},"data":{filling}}}"#)
        .into_bytes()
}

fn nested(open: &str, middle: &str, close: &str) -> String {
    format!("{}{middle}{}", open.repeat(DEEP), close.repeat(DEEP))
}

#[tokio::test]
async fn bodies_that_are_too_deep_are_refused() {
    let target = Target::start().await;
    let block: String = (0..2_000).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
    let bodies = [
        (JSON, around(&nested("[", "", "]"))),
        (JSON, around(&nested("{\"a\":", "1", "}"))),
        (JSON, around(&"[".repeat(DEEP))),
        (JSON, nested("[", "", "]").into_bytes()),
        (YAML, around(&nested("[", "", "]"))),
        (YAML, around(&nested("{a: ", "1", "}"))),
        (YAML, nested("- ", "x", "").into_bytes()),
        (YAML, block.into_bytes()),
        (YAML, "? ".repeat(DEEP).into_bytes()),
    ];
    for (i, (ty, body)) in bodies.into_iter().enumerate() {
        for path in [CONFIG_MAPS, DEFINITIONS] {
            target.refuses(&format!("deep body {i}"), Method::POST, path, ty, body.clone()).await;
        }
        let path = format!("{CONFIG_MAPS}/bystander");
        let apply = format!("{path}?fieldManager=m");
        let what = format!("deep patch {i}");
        target.refuses(&what, Method::PUT, &path, ty, body.clone()).await;
        target.refuses(&what, Method::PATCH, &apply, "application/apply-patch+yaml", body.clone()).await;
        if ty == JSON {
            target.refuses(&what, Method::PATCH, &path, "application/merge-patch+json", body.clone()).await;
            let strategic = "application/strategic-merge-patch+json";
            target.refuses(&what, Method::PATCH, &path, strategic, body.clone()).await;
            target.refuses(&what, Method::PATCH, &path, "application/json-patch+json", body).await;
        }
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn references_in_yaml_do_not_multiply() {
    let target = Target::start().await;
    let mut bomb = String::from("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\na0: &a0 [x, x, x]\n");
    for i in 1..60 {
        bomb.push_str(&format!("a{i}: &a{i} [*a{p}, *a{p}, *a{p}, *a{p}]\n", p = i - 1));
    }
    target.refuses("aliases that multiply", Method::POST, CONFIG_MAPS, YAML, bomb.into_bytes()).await;
    let cycle = "apiVersion: v1\nkind: ConfigMap\nmetadata: &m {name: x, labels: *m}\n";
    target.refuses("an alias of itself", Method::POST, CONFIG_MAPS, YAML, cycle.into()).await;
    let merge = "a: &a {<<: *a}\n";
    target.refuses("a merge of itself", Method::POST, CONFIG_MAPS, YAML, merge.into()).await;
    let two = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\na: b\n";
    target.refuses("two documents", Method::POST, CONFIG_MAPS, YAML, two.into()).await;
    target.assert_intact().await;
}

#[tokio::test]
async fn bodies_that_are_too_large_are_refused() {
    let target = Target::start().await;
    let limit = 3 * 1024 * 1024;
    for len in [limit + 1, limit * 4] {
        let mut body = around("{}");
        body.resize(len, b' ');
        let what = format!("{len} bytes");
        for (method, path) in
            [(Method::POST, CONFIG_MAPS.to_owned()), (Method::PUT, format!("{CONFIG_MAPS}/bystander"))]
        {
            let reply = target.refuses(&what, method, &path, JSON, body.clone()).await;
            assert_eq!(reply.status, 413, "{what}");
        }
        let path = format!("{CONFIG_MAPS}/bystander");
        let reply = target.refuses(&what, Method::PATCH, &path, "application/merge-patch+json", body).await;
        assert_eq!(reply.status, 413, "{what}");
    }
    let mut body = around("{}");
    body.resize(limit, b' ');
    let reply = target.try_send("just small enough", Method::POST, CONFIG_MAPS, JSON, body).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let value = "v".repeat(2 * 1024 * 1024);
    let big =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": {"k": value}});
    target.refuses("too much data", Method::POST, CONFIG_MAPS, JSON, big.to_string().into()).await;
    target.assert_intact().await;
}

#[tokio::test]
async fn bodies_in_no_encoding_are_refused() {
    let target = Target::start().await;
    let table: &[(&str, &str, &[u8])] = &[
        ("nothing", JSON, b""),
        ("white space", JSON, b" \n\t "),
        ("no JSON", JSON, b"not json"),
        ("half of it", JSON, b"{\"apiVersion\":\"v1\",\"kind\":"),
        ("more behind it", JSON, b"{} {}"),
        ("a number", JSON, b"1e999999999"),
        ("null", JSON, b"null"),
        ("a list", JSON, b"[]"),
        (
            "bad UTF-8 in a value",
            JSON,
            b"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"\xFF\xFE\"}}",
        ),
        ("bad UTF-8 in a key", JSON, b"{\"\xC3\x28\":1}"),
        ("bad UTF-8 in YAML", YAML, b"kind: \xFF\xFE\n"),
        ("half a surrogate", JSON, b"{\"kind\":\"\\uD800\"}"),
        ("a byte order mark", JSON, b"\xEF\xBB\xBF{"),
        ("a tab in YAML", YAML, b"a:\n\t- b\n"),
        ("an unknown anchor", YAML, b"a: *nowhere\n"),
        (
            "a huge number for a string",
            JSON,
            br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":1e400}}"#,
        ),
        ("objects for strings", JSON, br#"{"apiVersion":{},"kind":[],"metadata":"x"}"#),
        ("metadata that is not an object", JSON, br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":[1]}"#),
        (
            "labels that are not a map",
            JSON,
            br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","labels":[["a"]]}}"#,
        ),
        ("a protobuf without its magic", PROTOBUF, b"garbage"),
        ("an empty protobuf", PROTOBUF, b"k8s\0"),
        ("a protobuf with an endless length", PROTOBUF, b"k8s\0\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F"),
    ];
    for (what, ty, body) in table {
        target.refuses(what, Method::POST, CONFIG_MAPS, ty, body.to_vec()).await;
        target.refuses(what, Method::PUT, &format!("{CONFIG_MAPS}/bystander"), ty, body.to_vec()).await;
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn random_protobuf_is_refused() {
    let target = Target::start().await;
    let mut rng = Rng::new(7);
    // type meta {apiVersion "v1", kind "ConfigMap"} and a body of garbage
    let envelope = |garbage: &[u8]| {
        let mut body = b"k8s\0\x0A\x0F\x0A\x02v1\x12\x09ConfigMap\x12".to_vec();
        body.push(garbage.len() as u8);
        body.extend_from_slice(garbage);
        body
    };
    for i in 0..300 {
        let len = (rng.next_u64() % 100) as usize;
        let garbage = rng.bytes(len);
        let body = if i % 2 == 0 { envelope(&garbage) } else { [b"k8s\0".to_vec(), garbage].concat() };
        let reply = target.try_send(&format!("garbage {i}"), Method::POST, CONFIG_MAPS, PROTOBUF, body).await;
        assert_ne!(reply.status, 201, "garbage {i} made an object: {}", reply.text());
    }
    let groups = envelope(&[0x0B; 100]);
    target.refuses("groups in groups", Method::POST, CONFIG_MAPS, PROTOBUF, groups).await;
    target.assert_intact().await;
}

#[tokio::test]
async fn duplicate_keys_cause_a_warning_or_a_refusal() {
    let target = Target::start().await;
    let body =
        br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{"a":"1","a":"2"}}"#;
    let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let reply = target.refuses("duplicates, strictly", Method::POST, &strict, JSON, body.to_vec()).await;
    assert!(reply.text().contains("duplicate field"), "{}", reply.text());
    let reply = target.try_send("duplicates", Method::POST, CONFIG_MAPS, JSON, body.to_vec()).await;
    assert_eq!(reply.status, 201);
    assert!(reply.headers.contains_key("warning"), "{:?}", reply.headers);
    let name = r#""name":"twice","#.repeat(50_000);
    let body = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{{name}"name":"many"}}}}"#);
    let reply = target.try_send("many duplicates", Method::POST, CONFIG_MAPS, JSON, body.into()).await;
    assert_eq!(reply.status, 201);
    target.assert_intact().await;
}

#[tokio::test]
async fn other_content_types_are_refused() {
    let target = Target::start().await;
    for ty in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "nonsense/"]
    {
        let reply = target.refuses(ty, Method::POST, CONFIG_MAPS, ty, around("{}")).await;
        assert_eq!(reply.status, 415, "{ty}: {}", reply.text());
    }
    let path = format!("{CONFIG_MAPS}/bystander");
    for ty in ["application/json", "application/yaml", "text/plain", "application/unknown-patch+json"] {
        let reply = target.refuses(ty, Method::PATCH, &path, ty, b"{}".to_vec()).await;
        assert_eq!(reply.status, 415, "{ty}: {}", reply.text());
    }
    target.assert_intact().await;
}
