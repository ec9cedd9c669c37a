//! Connections that say nothing, too little, too slowly, or nonsense.

use super::{CONFIG_MAPS, REQUEST_LIMIT, Target};
use http::Method;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use transom_testkit::rng::Rng;

/// The server hangs up, with or without a last word, before `limit`.
async fn is_closed(mut stream: impl AsyncRead + Unpin, limit: Duration) -> bool {
    let mut answer = Vec::new();
    tokio::time::timeout(limit, stream.read_to_end(&mut answer)).await.is_ok()
}

/// One request on a connection that is kept, and its answer.
async fn exchange(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    stream.write_all(b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("the connection is open");
    stream.flush().await.expect("the connection is open");
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") && !answer.ends_with(b"}\n") {
        let mut part = [0; 4096];
        let n = stream.read(&mut part).await.expect("the connection is open");
        assert!(n > 0, "the connection was closed after {:?}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&part[..n]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_connection_may_be_idle() {
    let target = Target::with(&["--header-timeout=1s"]).await;
    let mut kept = target.plane.access.dial("http/1.1").await.unwrap();
    exchange(&mut kept).await;
    // Real time is the subject: the server must not count it against a connection without a request. Longer than the
    // headers of a request may take.
    tokio::time::sleep(Duration::from_secs(2)).await;
    exchange(&mut kept).await;
    target.assert_intact().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_connections_are_closed_and_delay_no_other_client() {
    let target = Target::with(&["--header-timeout=3s"]).await;
    let started = Instant::now();
    // How long the test waits for the server's own timeout, which is what closes these connections.
    let limit = Duration::from_secs(120);
    let mut slow_ones = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let silent = TcpStream::connect(target.plane.access.address).await.unwrap();
        slow_ones.spawn(async move { ("no handshake", is_closed(silent, limit).await) });
    }
    for _ in 0..30 {
        let mute = target.plane.access.dial("http/1.1").await.unwrap();
        slow_ones.spawn(async move { ("no request", is_closed(mute, limit).await) });
        let mut slow = target.plane.access.dial("http/1.1").await.unwrap();
        slow_ones.spawn(async move {
            let mut head = "GET /version HTTP/1.1\r\nhost: x\r\n".to_owned();
            head.push_str(&"x-header: y\r\n".repeat(50));
            for byte in head.bytes() {
                if slow.write_all(&[byte]).await.is_err() || slow.flush().await.is_err() {
                    return ("a slow request", true);
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            ("a slow request", false)
        });
        let mut tired = target.plane.access.dial("http/1.1").await.unwrap();
        slow_ones.spawn(async move {
            exchange(&mut tired).await;
            tired.write_all(b"GET /version HTTP/1.1\r\nhos").await.expect("half a head is taken");
            tired.flush().await.expect("half a head is taken");
            ("half a second request", is_closed(tired, limit).await)
        });
        let mut half = target.plane.access.dial("h2").await.unwrap();
        slow_ones.spawn(async move {
            half.write_all(b"PRI * HT").await.expect("half a preface is taken");
            half.flush().await.expect("half a preface is taken");
            ("half a preface", is_closed(half, limit).await)
        });
    }
    target.assert_intact().await;
    assert!(started.elapsed() < REQUEST_LIMIT, "others waited for {:?}", started.elapsed());
    while let Some(outcome) = slow_ones.join_next().await {
        let (what, closed) = outcome.unwrap();
        assert!(closed, "{what} is not closed after {:?}", started.elapsed());
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn nonsense_on_a_connection_ends_that_connection_alone() {
    let target = Target::start().await;
    let mut rng = Rng::new(11);
    for i in 0..60 {
        let garbage = rng.bytes(1_000);
        let mut plain = TcpStream::connect(target.plane.access.address).await.unwrap();
        // Either end may hang up first.
        let _ = plain.write_all(&garbage).await;
        assert!(is_closed(plain, REQUEST_LIMIT).await, "garbage {i} in place of a handshake");
        for (protocol, start) in
            [("http/1.1", &b""[..]), ("h2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ("h2", b"")]
        {
            let mut stream = target.plane.access.dial(protocol).await.unwrap();
            let _ = stream.write_all(start).await;
            let _ = stream.write_all(&garbage).await;
            let _ = stream.write_all(b"\r\n\r\n").await;
            let _ = stream.flush().await;
            let _ = stream.shutdown().await;
            assert!(is_closed(stream, REQUEST_LIMIT).await, "garbage {i} over {protocol}");
        }
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn plain_http_gets_no_answer_and_no_harm() {
    let target = Target::start().await;
    let mut plain = TcpStream::connect(target.plane.access.address).await.unwrap();
    plain.write_all(b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(is_closed(plain, REQUEST_LIMIT).await);
    target.assert_intact().await;
}

#[tokio::test]
async fn requests_that_are_cancelled_at_once_do_not_pile_up() {
    let target = Target::start().await;
    for _ in 0..20 {
        let client = target.plane.client().await;
        for _ in 0..500 {
            let request = client.request(Method::GET, CONFIG_MAPS);
            // Dropping the future resets the stream, if the server has not closed the connection by then.
            let answer = client.begin(request, "");
            let _ = tokio::time::timeout(Duration::from_micros(20), answer).await;
        }
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn bodies_that_never_end_do_not_keep_others_out() {
    let target = Target::start().await;
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut stream = target.plane.access.dial("http/1.1").await.unwrap();
        let head = format!("POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 3000000\r\n\r\n{{");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        held.push(stream);
    }
    target.assert_intact().await;
    drop(held);
    target.assert_intact().await;
}
