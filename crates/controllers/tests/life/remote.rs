//! Functions elsewhere that do not behave: nothing is deleted by fault, and step, function and cause are named.

use crate::life::basics::*;
use crate::life::fixture::*;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use transom_function::testing::serve;
use transom_function::{
    Error, Function, RunFunctionRequest, RunFunctionResponse, ServeOptions, Server, async_trait,
};
use transom_object::meta;
use transom_runner::{Endpoint, Options};

/// More than any answer may have, and almost as much.
const TOO_MUCH: usize = 65 << 20;
const MUCH: usize = 60 << 20;

/// Answers as it was made to.
enum Remote {
    Well,
    Hanging,
    Swollen(usize),
}

#[async_trait]
impl Function for Remote {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let mut response = request.start_response();
        response.meta.as_mut().unwrap().ttl = None;
        let mut map = config_map(&json!({"a": "b"}));
        meta::set_namespace(&mut map, "default");
        response.set_composed("config", ready(map));
        match self {
            Self::Well => {}
            Self::Hanging => std::future::pending().await,
            Self::Swollen(bytes) => response.set_context("big", "x".repeat(*bytes)),
        }
        Ok(response)
    }
}

/// Accepts connections and says this, whatever it is asked. Saying nothing, it hangs.
async fn babble(words: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.write_all(words).await;
                while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {}
            });
        }
    });
    address
}

/// A way to a server that breaks after so many bytes of its answer.
async fn broken(server: SocketAddr, after: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut inbound, _)) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(mut outbound) = TcpStream::connect(server).await else { return };
                let (mut requests, mut responses) = inbound.split();
                let (from_function, mut to_function) = outbound.split();
                let mut from_function = from_function.take(after);
                tokio::select! {
                    _ = tokio::io::copy(&mut requests, &mut to_function) => {}
                    _ = tokio::io::copy(&mut from_function, &mut responses) => {}
                }
            });
        }
    });
    address
}

/// A plane that does not wait long for functions.
async fn impatient() -> Plane {
    let mut plane = Plane::quiet().await;
    let (deadline, wait_for_start) = (Duration::from_millis(1500), Duration::from_millis(100));
    plane.functions =
        TestFunctions::new(Options { deadline: Some(deadline), wait_for_start, ..Options::default() });
    plane.start().await;
    plane
}

fn listen(plane: &Plane, address: SocketAddr) {
    let endpoint = Endpoint::plaintext(address.to_string());
    plane.functions.router.call_at("remote", endpoint).expect("an address");
}

async fn poke(plane: &Plane, words: &str) {
    plane.patch(XR, "one", json!({"metadata": {"annotations": {"try": words}}})).await;
}

#[tokio::test]
async fn functions_elsewhere_that_misbehave_delete_nothing() {
    let plane = impatient().await;
    let well = serve(Remote::Well).await;
    listen(&plane, well);
    things(&plane, &["remote"]).await;
    plane.apply(&xr("one", "small")).await;
    let composed = composed_name(&plane.until_true(XR, "one", "Ready").await);
    for (fault, address, cause) in [
        ("no handshake", babble(b"").await, "did not answer within 1.5 s"),
        ("no answer", serve(Remote::Hanging).await, "did not answer within 1.5 s"),
        ("HTTP/1", babble(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await, "cannot run function"),
        ("noise", babble(&[0xff; 64]).await, "cannot run function"),
        ("breaks at once", broken(well, 0).await, "cannot run function"),
        ("breaks half-way", broken(well, 90).await, "cannot run function"),
        ("too much", serve(Remote::Swollen(TOO_MUCH)).await, "too large"),
    ] {
        listen(&plane, address);
        poke(&plane, fault).await;
        let named = "cannot compose resources: cannot run Composition pipeline step \"remote\": ";
        let failed = plane
            .until(XR, "one", |o| {
                let words = message_of(o, "Synced");
                words.starts_with(named) && words.contains("function \"remote\"") && words.contains(cause)
            })
            .await;
        assert_eq!(status_of(&failed, "Ready"), "True", "{fault}: readiness is left as it was");
        let object = plane.get("v1/ConfigMap", &composed).await.expect("it is not deleted by fault");
        assert!(!meta::is_deleting(&object), "{fault}");
        listen(&plane, well);
        poke(&plane, &format!("well after {fault}")).await;
        plane.until_true(XR, "one", "Synced").await;
    }
}

#[tokio::test]
async fn an_answer_that_is_just_not_too_large_is_taken() {
    let plane = Plane::new().await;
    listen(&plane, serve(Remote::Swollen(MUCH)).await);
    things(&plane, &["remote"]).await;
    plane.apply(&xr("one", "small")).await;
    let ready = plane.until_true(XR, "one", "Ready").await;
    assert!(plane.get("v1/ConfigMap", &composed_name(&ready)).await.is_some());
}

#[tokio::test]
async fn a_function_that_cannot_be_reached_is_not_healthy_until_it_can_be() {
    const FUNCTION: &str = "pkg.crossplane.io/v1/Function";
    let plane = impatient().await;
    // A port without a listener.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let installed = |address: SocketAddr| {
        format!(
            "apiVersion: pkg.crossplane.io/v1\nkind: Function\nmetadata: {{name: remote, annotations: \
             {{transom.io/endpoint: '{address}'}}}}\nspec: {{package: example.org/remote:v1}}\n"
        )
    };
    plane.apply(&installed(address)).await;
    let named = |o: &Value| message_of(o, "Healthy").contains(&address.to_string());
    let ill = plane.until(FUNCTION, "remote", named).await;
    assert_eq!(
        (status_of(&ill, "Installed"), reason_of(&ill, "Healthy")),
        ("True", "UnhealthyPackageRevision")
    );
    // The server is up again, which is noticed without a change of the Function.
    let (stop, stopped) = listening(address).await;
    plane.until_true(FUNCTION, "remote", "Healthy").await;
    things(&plane, &["remote"]).await;
    plane.apply(&xr("one", "small")).await;
    plane.until_true(XR, "one", "Ready").await;
    // The server goes away, which the first failed call shows.
    drop(stop);
    stopped.await.expect("it ends");
    poke(&plane, "nobody is there").await;
    plane.until(FUNCTION, "remote", |o| status_of(o, "Healthy") == "False").await;
    let _listening = listening(address).await;
    plane.until_true(FUNCTION, "remote", "Healthy").await;
    plane.until_true(XR, "one", "Synced").await;
}

/// A function that listens there until what is returned is dropped.
async fn listening(address: SocketAddr) -> (oneshot::Sender<()>, JoinHandle<()>) {
    let options = ServeOptions { insecure: true, address: address.to_string(), ..ServeOptions::default() };
    let server = Server::bind(&options).await.expect("the port is free");
    let (stop, stopped) = oneshot::channel::<()>();
    let running = server.run(Remote::Well, async move { drop(stopped.await) });
    (stop, tokio::spawn(async move { drop(running.await) }))
}
