//! Calling functions: in this process, over the network, and those that do not behave.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use transom_compose::{FunctionRunner, RunError, StepRef};
use transom_function::testing::{RequestBuilder, serve, serve_v1beta1, serve_with};
use transom_function::{
    Error, Function, RunFunctionRequest, RunFunctionResponse, ServeOptions, Server, async_trait,
};
use transom_runner::{Endpoint, Instance, Options, Reason, Remote, Router, Tls};

/// Does what its input says.
pub(crate) struct Actor;

#[expect(clippy::panic, reason = "the runner must survive a function that panics")]
#[async_trait]
impl Function for Actor {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        match request.input.as_ref().and_then(|input| input.fields()["do"].as_str()) {
            Some("panic") => panic!("as told"),
            Some("hang") => std::future::pending().await,
            Some("swell") => {
                let mut response = request.start_response();
                response.set_context("big", "x".repeat(1 << 20));
                Ok(response)
            }
            _ => Ok(request.start_response()),
        }
    }
}

pub(crate) fn request(action: &str) -> RunFunctionRequest {
    RequestBuilder::new(json!({"kind": "XR"}))
        .input(json!({ "do": action }))
        .desired("a", json!({"spec": {"count": 3}}))
        .build()
}

pub(crate) fn step(function: &str) -> StepRef<'_> {
    StepRef { name: "step", ..StepRef::calling(function) }
}

pub(crate) fn options() -> Options {
    Options {
        // More than any call takes that ends at all, on a busy machine.
        deadline: Some(Duration::from_secs(60)),
        wait_for_start: Duration::from_millis(100),
        max_message_size: 1 << 19,
    }
}

fn insecure() -> ServeOptions {
    ServeOptions { insecure: true, ..ServeOptions::default() }
}

/// Functions with one that is called at an address.
fn at(address: SocketAddr, options: Options) -> Router {
    let functions = Router::new(options);
    functions.call_at("f", Endpoint::plaintext(address.to_string())).expect("an address");
    functions
}

#[tokio::test]
async fn functions_run_in_this_process_and_elsewhere() {
    let address = serve(Actor).await;
    let functions = at(address, options());
    let hasty = at(address, Options { deadline: Some(Duration::from_millis(500)), ..options() });
    hasty.run_in_process("local", Arc::new(Actor));
    functions.run_in_process("local", Arc::new(Actor));
    for name in ["f", "local"] {
        let response = functions.run(step(name), request("echo")).await.unwrap().response;
        assert_eq!(response.desired, request("echo").desired);
        let error = functions.run(step(name), request("panic")).await.unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("the function panicked: as told"), "{error}");
        let error = hasty.run(step(name), request("hang")).await.unwrap_err();
        assert!(matches!(error, RunError::Deadline { .. }), "{error}");
        assert!(functions.run(step(name), request("echo")).await.is_ok(), "one bad call ends one call only");
    }
}

#[tokio::test]
async fn a_misspelt_function_is_recognised_and_one_that_is_built_in_is_offered() {
    let package = |name: &str| (name.to_owned(), format!("example.org/{name}"));
    let functions = Router::new(options()).offering(["function-auto-ready", "function-cidr"].map(package));
    functions.run_in_process("function-mine", Arc::new(Actor));
    let apply = |name: &str| {
        format!(
            "{name} is built in: apply a Function of that name (apiVersion pkg.crossplane.io/v1) with spec.package example.org/{name}"
        )
    };
    for (called, remedy) in [
        ("function-mien", r#"; did you mean "function-mine"?"#.to_owned()),
        ("function-cidr", format!("; {}", apply("function-cidr"))),
        (
            "function-auto-redy",
            format!(r#"; did you mean "function-auto-ready"? {}"#, apply("function-auto-ready")),
        ),
        ("something-else", String::new()),
    ] {
        let error = functions.run(step(called), request("echo")).await.unwrap_err().to_string();
        let words = format!("there is no function {called:?}: no such Function is installed{remedy}");
        assert_eq!(error, words);
    }
}

#[tokio::test]
async fn unknown_functions_are_named() {
    let functions = Router::new(options());
    let error = functions.run(step("nobody"), request("echo")).await.unwrap_err();
    assert_eq!(error.to_string(), r#"there is no function "nobody": no such Function is installed"#);
    functions.run_in_process("nobody", Arc::new(Actor));
    assert!(functions.run(step("nobody"), request("echo")).await.is_ok());
    functions.remove("nobody");
    assert!(functions.run(step("nobody"), request("echo")).await.is_err());
}

#[tokio::test]
async fn answers_that_are_too_large_are_refused() {
    let address = serve(Actor).await;
    let error = at(address, options()).run(step("f"), request("swell")).await.unwrap_err().to_string();
    assert!(error.contains(r#"function "f""#) && error.contains("too large"), "{error}");
    let generous = Options { max_message_size: 4 << 20, ..options() };
    assert!(at(address, generous).run(step("f"), request("swell")).await.is_ok());
}

#[tokio::test]
async fn a_function_may_start_late_but_not_never() {
    let reserved = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = reserved.local_addr().unwrap();
    drop(reserved);
    // The deadline is so far away that a call that ended has ended before it.
    let hasty = Options { deadline: Some(Duration::from_secs(3600)), ..options() };
    let error = at(address, hasty).run(step("f"), request("echo")).await.unwrap_err().to_string();
    assert!(error.contains("Unavailable") && error.contains(&address.to_string()), "{error}");
    let once = |text: &str| error.matches(text).count() == 1;
    assert!(once("tcp connect error") && once("Connection refused"), "no cause is printed twice: {error}");
    assert!(!error.contains("transport error"), "{error}");
    let patient = Options { wait_for_start: Duration::from_secs(60), ..options() };
    let functions = at(address, patient);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let options = ServeOptions { address: address.to_string(), ..insecure() };
        let server = Server::bind(&options).await.expect("binds");
        server.run(Actor, std::future::pending()).await
    });
    let answer = functions.run(step("f"), request("echo")).await;
    assert!(answer.is_ok(), "{answer:?}");
}

#[tokio::test]
async fn v1beta1_is_called_where_v1_is_not_served() {
    let response =
        at(serve_v1beta1().await, options()).run(step("f"), request("echo")).await.unwrap().response;
    assert_eq!(response.desired, request("echo").desired);
}

#[tokio::test]
async fn garbage_is_an_error() {
    for garbage in
        [&b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"[..], b"\0\0\0\xff\xff\xff\xff\xff", b""]
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(garbage).await;
                let _ = stream.read(&mut [0; 64]).await;
            }
        });
        let error = at(address, options()).run(step("f"), request("echo")).await.unwrap_err().to_string();
        assert!(error.contains(r#"function "f""#), "{error}");
    }
}

/// Writes what a function's certificate directory holds, and returns what its caller needs.
fn certificates(dir: &Path) -> Tls {
    let mut params = CertificateParams::new(Vec::new()).expect("certificates are made and written");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca =
        CertifiedIssuer::self_signed(params, KeyPair::generate().expect("certificates are made and written"))
            .expect("certificates are made and written");
    let issue = |name: &str| {
        let key = KeyPair::generate().expect("certificates are made and written");
        let params =
            CertificateParams::new(vec![name.to_owned()]).expect("certificates are made and written");
        let certificate = params.signed_by(&key, &ca).expect("certificates are made and written");
        (certificate.pem(), key.serialize_pem())
    };
    let (certificate, key) = issue("localhost");
    std::fs::write(dir.join("tls.crt"), certificate).expect("certificates are made and written");
    std::fs::write(dir.join("tls.key"), key).expect("certificates are made and written");
    std::fs::write(dir.join("ca.crt"), ca.pem()).expect("certificates are made and written");
    let (certificate, key) = issue("client");
    Tls { ca: ca.pem().into_bytes(), certificate: certificate.into_bytes(), key: key.into_bytes() }
}

#[tokio::test]
async fn certificates_are_shown_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let tls = certificates(dir.path());
    let options_with = ServeOptions { tls_certs_dir: Some(dir.path().to_owned()), ..ServeOptions::default() };
    let served = serve_with(Actor, options_with).await;
    let address = served.address;
    let target = format!("dns:///localhost:{}", address.port());
    let functions = Router::new(options());
    functions.call_at("f", Endpoint::mutual_tls(&target, tls)).unwrap();
    assert!(functions.run(step("f"), request("echo")).await.is_ok());
    let strangers = tempfile::tempdir().unwrap();
    functions.call_at("f", Endpoint::mutual_tls(&target, certificates(strangers.path()))).unwrap();
    assert!(functions.run(step("f"), request("echo")).await.is_err());
    functions.call_at("f", Endpoint::plaintext(&target)).unwrap();
    assert!(functions.run(step("f"), request("echo")).await.is_err());
}

#[tokio::test]
async fn functions_that_become_reachable_or_unreachable_are_reported_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let wait_for_start = Duration::from_millis(20);
    let functions = Router::new(Options { wait_for_start, ..Options::default() });
    let reported = Arc::new(std::sync::Mutex::new(Vec::new()));
    let reports = reported.clone();
    functions.on_change(Arc::new(move |id: &transom_runner::RevisionId| {
        reports.lock().unwrap().push(id.function.clone());
    }));
    functions.call_at("remote", Endpoint::plaintext(address.to_string())).unwrap();
    functions.run_in_process("local", Arc::new(Actor));
    for _ in 0..2 {
        functions.run(step("remote"), request("")).await.unwrap_err();
        functions.run(step("local"), request("")).await.unwrap();
    }
    assert_eq!(*reported.lock().unwrap(), ["remote"], "the second failure changes nothing");
    let (_, remote) = functions.active("remote").unwrap();
    let problem = remote.probe().await.unwrap_err();
    assert_eq!(problem.reason, Reason::Unreachable);
    assert!(
        problem.message.contains(&address.to_string()) && problem.message.contains("refused"),
        "{problem}"
    );
    let (_, local) = functions.active("local").unwrap();
    assert_eq!(local.probe().await, Ok(()));
    assert!(functions.active("none").is_none());
    let options = ServeOptions { address: address.to_string(), ..insecure() };
    let _served = serve_with(Actor, options).await;
    assert_eq!(remote.probe().await, Ok(()));
    functions.run(step("remote"), request("")).await.unwrap();
    assert_eq!(reported.lock().unwrap().len(), 1, "the probe found it out already");
}

#[tokio::test]
async fn a_function_that_reports_not_serving_is_not_ready() {
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_service_status("", tonic_health::ServingStatus::NotServing).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    tokio::spawn(tonic::transport::Server::builder().add_service(health).serve_with_incoming(incoming));
    let remote = Remote::new(Endpoint::plaintext(address.to_string()), &options()).unwrap();
    let problem = remote.probe().await.unwrap_err();
    assert_eq!(problem.reason, Reason::NotServing);
    assert!(problem.message.contains("its health is NOT_SERVING"), "{}", problem.message);
    reporter.set_service_status("", tonic_health::ServingStatus::Serving).await;
    assert_eq!(remote.probe().await, Ok(()));
    // One that does not offer the protocol is ready when it can be reached.
    let without = Remote::new(Endpoint::plaintext(serve_v1beta1().await.to_string()), &options()).unwrap();
    assert_eq!(without.probe().await, Ok(()));
}
