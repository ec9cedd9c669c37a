//! Stopping: by SIGTERM, by Ctrl-C, by a second Ctrl-C.

use super::{CONFIG_MAPS, config_map};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transom_testkit::process::{Home, Plane, WAIT_LIMIT, wait_until};

/// In the log when requests were still open after the time that they have to finish.
const CUT_OFF: &str = "are cut off";

#[tokio::test]
async fn a_signal_stops_cleanly_whatever_is_watched() {
    for signal in [Signal::TERM, Signal::INT] {
        let home = Home::new();
        let mut plane = Plane::start(&home);
        let client = plane.client().await;
        let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=1")).await.unwrap();
        assert_eq!(client.post(CONFIG_MAPS, &config_map("kept")).await.unwrap().status, 201);
        plane.signal(signal);
        let status = plane.ended_within(WAIT_LIMIT).await.expect("it ends");
        assert_eq!(status.code(), Some(0), "{signal:?}: {}", home.log());
        assert!(!home.log().contains(CUT_OFF), "watches do not hold it up: {}", home.log());
        while watch.next().await.is_some() {}

        let again = Plane::start(&home);
        let kept = again.client().await.get(&format!("{CONFIG_MAPS}/kept")).await.unwrap();
        assert_eq!(kept.status, 200, "{signal:?}");
        home.assert_no_panic();
    }
}

/// A request without its body, which the server has begun to handle: it answers that it expects the body.
async fn unfinished_request(plane: &Plane) -> impl Sized + use<> {
    let mut stream = plane.access.dial("http/1.1").await.unwrap();
    let head = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut answer = [0; 21];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100 Continue");
    stream
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let home = Home::new();
    let mut plane = Plane::start_with(&home, &["-v"]);
    let _open = unfinished_request(&plane).await;
    plane.signal(Signal::INT);
    wait_until("the first signal is handled", async || home.log().contains("stopping")).await;
    plane.signal(Signal::INT);
    let status = plane.ended_within(WAIT_LIMIT).await.expect("it ends at once");
    assert_eq!(status.code(), Some(130), "it was waiting for the open request");
    drop(Plane::start(&home));
}

#[tokio::test]
async fn a_request_that_never_ends_holds_it_up_only_so_long() {
    let home = Home::new();
    let mut plane = Plane::start(&home);
    let _open = unfinished_request(&plane).await;
    plane.signal(Signal::TERM);
    let status = plane.ended_within(WAIT_LIMIT).await.expect("the drain has an end");
    assert_eq!(status.code(), Some(0));
    assert!(home.log().contains(CUT_OFF), "{}", home.log());
}
