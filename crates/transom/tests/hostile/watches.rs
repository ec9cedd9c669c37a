//! Watches by the thousand, and watches that no client reads.

use super::{CONFIG_MAPS, Target, config_map};
use http::Method;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transom_testkit::process::{Client, WAIT_LIMIT};

const WATCHES: usize = 5_000;
const CONNECTIONS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_watches_cost_little() {
    let target = Target::start().await;
    let revision = target.client.get(CONFIG_MAPS).await.unwrap().revision();
    let mut watching = Vec::new();
    for _ in 0..CONNECTIONS {
        let client = target.plane.client().await;
        let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={revision}");
        let opened = (0..WATCHES / CONNECTIONS).map(|_| client.watch(&path));
        watching.extend(futures_util::future::join_all(opened).await.into_iter().map(Result::unwrap));
    }
    let grown = target.plane.resident_mib().saturating_sub(target.resident_before);
    assert!(grown < 100, "{WATCHES} idle watches cost {grown} MiB");
    for i in 0..3 {
        let reply = target.client.post(CONFIG_MAPS, &config_map(&format!("w{i}"))).await.unwrap();
        assert_eq!(reply.status, 201, "{}", reply.text());
    }
    for lines in &mut watching {
        for i in 0..3 {
            let event = tokio::time::timeout(WAIT_LIMIT, lines.next()).await.unwrap().unwrap();
            assert_eq!(event["object"]["metadata"]["name"], format!("w{i}"));
        }
    }
    target.assert_intact().await;
    // They go with their connections.
    drop(watching);
    target.assert_intact().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_watches_delay_no_other_client() {
    let target = Target::start().await;
    let revision = target.client.get(CONFIG_MAPS).await.unwrap().revision();
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={revision}");
    let mut unread = Vec::new();
    for _ in 0..40 {
        let client = target.plane.client().await;
        unread.push((client.watch(&path).await.unwrap(), client));
    }
    let mut silent = Vec::new();
    for _ in 0..10 {
        let mut stream = target.plane.access.dial("http/1.1").await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        silent.push(stream);
    }
    let mut attentive = target.plane.client().await.watch(&path).await.unwrap();
    let reader = tokio::spawn(async move {
        let mut seen = 0;
        while seen < WRITES {
            let event = attentive.next().await.expect("the watch goes on");
            assert_ne!(event["type"], "ERROR", "{event}");
            seen += 1;
        }
    });
    const WRITES: usize = 3_000;
    let started = Instant::now();
    let writers: Vec<_> = (0..8).map(|w| tokio::spawn(write(target.client.clone(), w, WRITES / 8))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    println!("{WRITES} writes in {:?}", started.elapsed());
    tokio::time::timeout(WAIT_LIMIT, reader).await.expect("the reader sees it all").unwrap();
    target.assert_intact().await;
    // A client that reads again gets everything, or the error that it is too late.
    let (mut lines, _client) = unread.remove(0);
    let mut last = revision;
    for _ in 0..WRITES {
        let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(10), lines.next()).await else {
            break;
        };
        if event["type"] == "ERROR" {
            assert_eq!(event["object"]["code"], 410, "{event}");
            break;
        }
        let next = event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
        assert!(next > last, "{next} after {last}");
        last = next;
    }
}

/// Updates one object with a few kilobytes, again and again.
async fn write(client: Client, number: usize, times: usize) {
    let name = format!("busy{number}");
    for i in 0..times {
        let data = json!({"data": {"filling": format!("{i:04}").repeat(500)}});
        let reply = if i == 0 {
            let mut object = config_map(&name);
            object["data"] = data["data"].clone();
            client.post(CONFIG_MAPS, &object).await
        } else {
            client.merge(&format!("{CONFIG_MAPS}/{name}"), &data).await
        };
        let reply = reply.expect("writers are answered");
        assert!(reply.ok(), "{}", reply.text());
    }
}

#[tokio::test]
async fn watches_opened_and_dropped_leave_nothing() {
    let target = Target::start().await;
    for round in 0..10 {
        let client = target.plane.client().await;
        for i in 0..200 {
            let request = client.request(Method::GET, &format!("{CONFIG_MAPS}?watch=1"));
            let answer = client.begin(request, "").await;
            assert!(answer.is_ok(), "watch {i} of round {round}");
        }
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn an_unread_list_is_dropped_with_its_connection() {
    let target = Target::start().await;
    write(target.client.clone(), 0, 1).await;
    let filling = "x".repeat(900_000);
    for i in 0..10 {
        let mut object = config_map(&format!("large{i}"));
        object["data"]["filling"] = filling.as_str().into();
        assert_eq!(target.client.post(CONFIG_MAPS, &object).await.unwrap().status, 201);
    }
    let mut held = Vec::new();
    for _ in 0..50 {
        let mut stream = target.plane.access.dial("http/1.1").await.unwrap();
        let head = format!("GET {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        let mut first = [0u8; 64];
        stream.read_exact(&mut first).await.unwrap();
        held.push(stream);
    }
    target.assert_intact().await;
}
