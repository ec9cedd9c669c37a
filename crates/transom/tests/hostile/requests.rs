//! Paths, queries, methods and headers that no well-meaning client sends.

use super::{CONFIG_MAPS, Target, config_map, shorten};
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Says exactly these bytes and returns the status of the answer with its text; 0 when the server just hangs up.
async fn raw(target: &Target, bytes: &[u8]) -> (u16, String) {
    let mut stream = target.plane.access.dial("http/1.1").await.expect("it accepts connections");
    // The server may refuse before everything is said.
    let _ = stream.write_all(bytes).await;
    let _ = stream.flush().await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(super::REQUEST_LIMIT, stream.read_to_end(&mut answer))
        .await
        .expect("it answers");
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    (status, text)
}

async fn raw_get(target: &Target, path: &str) -> (u16, String) {
    raw(target, format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes()).await
}

#[tokio::test]
async fn no_spelling_of_a_path_reaches_another_object() {
    let target = Target::start().await;
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "gold"}, "stringData": {"a": "b"}});
    let reply = target.client.post("/api/v1/namespaces/default/secrets", &secret).await.unwrap();
    assert_eq!(reply.status, 201, "{}", reply.text());
    let long = format!("/api/v1/namespaces/{}", "a".repeat(40_000));
    for path in [
        "/api/v1/namespaces/default/configmaps/../secrets/gold",
        "/api/v1/namespaces/default/configmaps/%2e%2e/secrets/gold",
        "/api/v1/namespaces/default/configmaps/%2E%2e%2Fsecrets%2Fgold",
        "/api/v1/namespaces/default%2fsecrets/gold",
        "/api/v1/namespaces/default/secrets%2fgold",
        "/api/v1/namespaces/kube-system/../default/secrets/gold",
        "/api/v1/namespaces/./default/secrets/./gold",
        "/api/v1/namespaces/%2e/default/secrets/gold",
        "/version/../api/v1/namespaces/default/secrets/gold",
        "/healthz/%2e%2e/api/v1/namespaces/default/secrets/gold",
        "/api/v1/namespaces/default/secrets/gold%00",
        "/api/v1/namespaces/default/secrets/gold%0a",
        "/api/v1/namespaces/default/secrets/%67%6F%6C%64%20",
        "/api/v1/namespaces/default/secrets/gold/../gold",
        "/api/v1/namespaces/default/secrets/gold/status/more",
        "/api/v1/namespaces/default/secrets/%ff%fe",
        "/api/v1/namespaces/default/secrets/%zz",
        "/API/v1/namespaces/default/secrets/gold",
        "/api/V1/namespaces/default/secrets/gold",
        "/apis//v1/namespaces/default/secrets/gold",
        "/api/v1/namespaces/default/secrets/gold;x=y",
        "/api/v1/namespaces/default/secrets/GOLD",
        "/api/v1/namespaces/default/secrets/..",
        "/api/v1/namespaces/default/secrets/g%6fld%2f..%2fgold",
        &long,
    ] {
        let (status, text) = raw_get(&target, path).await;
        assert!((400..500).contains(&status), "{path}: {}", shorten(&text));
        assert!(!text.contains("Yg=="), "{path} reached the secret");
    }
    // Empty segments are nothing; an encoded letter is that letter.
    for path in ["//api//v1/namespaces//default/secrets/gold/", "/api/v1/namespaces/default/secrets/g%6Fld"] {
        let (status, text) = raw_get(&target, path).await;
        assert!(status == 200 || status == 404, "{path}: {}", shorten(&text));
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn floods_of_headers_are_refused() {
    let target = Target::start().await;
    let many: String = (0..5_000).map(|i| format!("x-{i}: y\r\n")).collect();
    let heads = [
        ("many headers", format!("GET /version HTTP/1.1\r\nhost: x\r\n{many}\r\n")),
        ("a long header", format!("GET /version HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(1 << 20))),
        ("a long target", format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "y".repeat(1 << 20))),
        ("a long method", format!("{} / HTTP/1.1\r\nhost: x\r\n\r\n", "Y".repeat(1 << 20))),
        ("two lengths", "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello".into()),
        (
            "a length that is none",
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\nhello".into(),
        ),
        (
            "a chunk without end",
            "POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n".into(),
        ),
        ("a bare line feed", "GET /version\n\n".into()),
        ("another version", "GET /version HTTP/9.9\r\nhost: x\r\n\r\n".into()),
        ("a header without a name", "GET /version HTTP/1.1\r\n: x\r\n\r\n".into()),
    ];
    for (what, head) in heads {
        let (status, text) = raw(&target, head.as_bytes()).await;
        assert!(status == 0 || (400..500).contains(&status), "{what}: {}", shorten(&text));
    }
    let mut request = target.client.request(Method::GET, "/version");
    for i in 0..1_000 {
        request = request.header(format!("x-{i}"), "y".repeat(100));
    }
    if let Ok(reply) = target.client.send(request, "").await {
        assert!((400..500).contains(&reply.status), "{}", reply.text());
    }
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,".repeat(1_000);
    let request = target.plane.client().await;
    let reply = request.send(request.request(Method::GET, CONFIG_MAPS).header("accept", accept), "").await;
    assert!(reply.is_ok_and(|r| r.status < 500));
    target.assert_intact().await;
}

#[tokio::test]
async fn other_methods_are_not_allowed() {
    let target = Target::start().await;
    for method in ["TRACE", "OPTIONS", "PROPFIND", "FOO", "get", "PRI"] {
        for path in [CONFIG_MAPS, "/api/v1/namespaces/default/configmaps/bystander"] {
            let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
            let (status, text) = raw(&target, head.as_bytes()).await;
            assert!((400..500).contains(&status), "{method} {path}: {}", shorten(&text));
        }
    }
    let (status, text) =
        raw(&target, b"CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!((400..500).contains(&status), "{}", shorten(&text));
    for (method, path) in [
        (Method::POST, "/api/v1/namespaces/default/configmaps/bystander"),
        (Method::PUT, CONFIG_MAPS),
        (Method::PATCH, CONFIG_MAPS),
        (Method::DELETE, "/version"),
        (Method::POST, "/apis"),
        (Method::PUT, "/api/v1/namespaces/default/configmaps/bystander/status"),
        (Method::GET, "/api/v1/namespaces/default/serviceaccounts/x/token"),
    ] {
        let what = format!("{method} {path}");
        let request = target.client.request(method, path).header("content-type", "application/json");
        let reply = target.client.send(request, "{}").await.unwrap();
        assert!((400..500).contains(&reply.status), "{what}: {}", reply.text());
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn wrong_query_values_are_refused() {
    let target = Target::start().await;
    for query in [
        "limit=many",
        "limit=99999999999999999999",
        "resourceVersion=new",
        "resourceVersion=-1",
        "resourceVersion=99999999999999999999999",
        "resourceVersion=1&resourceVersionMatch=Nearly",
        "resourceVersionMatch=Exact",
        "sendInitialEvents=true",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
        "timeoutSeconds=soon",
        "timeout=soon",
        "timeout=-5s",
        "labelSelector=((((",
        "labelSelector=a%20in%20(",
        "labelSelector=a=b=c",
        "labelSelector=!",
        "labelSelector=,,,=",
        "fieldSelector=spec.nothing=1",
        "fieldSelector=metadata.name",
        "fieldSelector=%5C",
        "continue=garbage",
        "continue=%00%ff",
        "continue=e30",
        // Climbs out of the collection: `{"v":"meta.k8s.io/v1","rv":-1,"start":"\\u0000/////../"}`.
        "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiXHUwMDAwLy8vLy8uLi8ifQ",
        "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTk5LCJzdGFydCI6MX0",
    ] {
        let reply = target.client.get(&format!("{CONFIG_MAPS}?{query}")).await.unwrap();
        assert!((400..500).contains(&reply.status), "{query}: {} {}", reply.status, shorten(&reply.text()));
        reply.assert_status(reply.status, query);
    }
    let long = "m".repeat(200);
    for query in
        ["dryRun=Maybe", "fieldValidation=Loose", &format!("fieldManager={long}"), "fieldManager=%00"]
    {
        let reply =
            target.client.post(&format!("{CONFIG_MAPS}?{query}"), &config_map("never")).await.unwrap();
        assert!((400..500).contains(&reply.status), "{query}: {}", reply.text());
    }
    for query in ["propagationPolicy=Nearly", "gracePeriodSeconds=soon", "dryRun=Maybe"] {
        let reply = target.client.delete(&format!("{CONFIG_MAPS}/bystander?{query}")).await.unwrap();
        assert!((400..500).contains(&reply.status), "{query}: {}", reply.text());
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn large_but_lawful_query_values_are_served() {
    let target = Target::start().await;
    let far = i64::MAX;
    for query in [
        format!("limit={far}"),
        "limit=-5".to_owned(),
        format!("timeoutSeconds={far}"),
        format!("labelSelector={}", vec!["a!=b"; 8_000].join(",")),
        format!("labelSelector=a%20notin%20({})", vec!["v"; 15_000].join(",")),
        format!("labelSelector=!{}", "x".repeat(60)),
        "%zz=%zz&=&&&=&a".to_owned(),
    ] {
        let started = Instant::now();
        let client = target.plane.client().await;
        let reply = client.get(&format!("{CONFIG_MAPS}?{query}")).await.unwrap();
        assert_eq!(reply.status, 200, "{}: {}", shorten(&query), shorten(&reply.text()));
        assert!(started.elapsed() < super::REQUEST_LIMIT, "{} took {:?}", shorten(&query), started.elapsed());
    }
    for query in [
        format!("timeoutSeconds={far}"),
        "timeoutSeconds=-1".to_owned(),
        "timeoutSeconds=0".to_owned(),
        "timeoutSeconds=1&allowWatchBookmarks=1".to_owned(),
    ] {
        let mut lines = target.client.watch(&format!("{CONFIG_MAPS}?watch=1&{query}")).await.unwrap();
        assert_eq!(lines.next().await.unwrap()["type"], "ADDED", "{query}");
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn generated_names_are_distinct_and_valid() {
    let target = Target::start().await;
    let mut names = BTreeSet::new();
    for i in 0..200 {
        let prefix = if i % 2 == 0 { "g-".to_owned() } else { "l".repeat(200) };
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": prefix}});
        let reply = target.client.post(CONFIG_MAPS, &object).await.unwrap();
        assert_eq!(reply.status, 201, "{}", reply.text());
        let name = reply.json()["metadata"]["name"].as_str().unwrap().to_owned();
        assert!(name.len() <= 63, "{name}");
        assert!(names.insert(name), "a name was given out twice");
    }
    for prefix in [
        json!("UPPER-"),
        json!("l".repeat(300)),
        json!("../"),
        json!("a b"),
        json!("\u{0}"),
        json!({}),
        Value::from(7),
    ] {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": prefix}});
        let reply = target.client.post(CONFIG_MAPS, &object).await.unwrap();
        assert!((400..500).contains(&reply.status), "{prefix}: {}", reply.text());
    }
    target.assert_intact().await;
}

/// The frames of one HTTP/2 request for `/version?` with a query of `len` bytes, in frames of the usual size.
fn http2_request(len: usize) -> Vec<u8> {
    const FRAME: usize = 16_384;
    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let len = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
        [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }
    /// A string of HPACK that is not compressed.
    fn text(text: &[u8]) -> Vec<u8> {
        let mut encoded = Vec::new();
        match text.len().checked_sub(127) {
            None => encoded.push(u8::try_from(text.len()).expect("less than 127")),
            Some(mut rest) => {
                encoded.push(127);
                while rest >= 128 {
                    encoded.push(u8::try_from(rest % 128).expect("less than 128") | 0x80);
                    rest /= 128;
                }
                encoded.push(u8::try_from(rest).expect("less than 128"));
            }
        }
        encoded.extend_from_slice(text);
        encoded
    }
    let path = [b"/version?".to_vec(), vec![b'q'; len]].concat();
    // GET, https, a literal :authority and a literal :path.
    let block = [vec![0x82, 0x87, 0x01], text(b"x"), vec![0x04], text(&path)].concat();
    let mut chunks: Vec<&[u8]> = block.chunks(FRAME).collect();
    let last = chunks.pop().expect("a block");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    let kind = |index: usize| if index == 0 { 1 } else { 9 };
    for (index, chunk) in chunks.iter().enumerate() {
        bytes.extend(frame(kind(index), u8::from(index == 0), 1, chunk));
    }
    let end = if chunks.is_empty() { 5 } else { 4 };
    bytes.extend(frame(kind(chunks.len()), end, 1, last));
    bytes
}

/// What answers a request on stream 1: the first bytes of its head, or `None` when the connection ends without.
async fn http2_answer(target: &Target, request: &[u8]) -> Option<Vec<u8>> {
    let mut stream = target.plane.access.dial("h2").await.expect("it accepts connections");
    let _ = stream.write_all(request).await;
    let _ = stream.flush().await;
    loop {
        let mut head = [0; 9];
        let read = tokio::time::timeout(super::REQUEST_LIMIT, stream.read_exact(&mut head))
            .await
            .expect("it answers");
        read.ok()?;
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(len).expect("a short frame")];
        stream.read_exact(&mut payload).await.ok()?;
        match (head[3], head[8]) {
            (1, 1) => return Some(payload),
            (3, 1) | (7, _) => return None,
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_url_that_is_too_long_is_refused_over_http2_as_over_http1() {
    let target = Target::start().await;
    // Static table: 0x88 is `:status: 200`; 431 is a literal, compressed.
    assert_eq!(http2_answer(&target, &http2_request(60_000)).await.map(|head| head[0]), Some(0x88));
    for len in [65_600, 70_000, 100_000] {
        let head = http2_answer(&target, &http2_request(len)).await;
        let head = head.unwrap_or_else(|| panic!("no answer to a URL of {len} bytes"));
        assert!(head.windows(3).any(|bytes| bytes == [0x69, 0x90, 0xff]), "{len}: {head:x?}");
        let (status, text) = raw_get(&target, &format!("/version?{}", "q".repeat(len))).await;
        assert!(matches!(status, 414 | 431), "{len}: {}", shorten(&text));
    }
    // Far more is not worth reading.
    assert_eq!(http2_answer(&target, &http2_request(1 << 20)).await, None);
    target.assert_intact().await;
}
