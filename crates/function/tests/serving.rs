//! A real server on the loopback: both versions, the fallback between them, limits, mutual TLS, health, stopping.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use transom_function::client::FunctionClient;
use transom_function::error_chain::chain;
use transom_function::testing::{RequestBuilder, Served, serve_v1beta1, serve_with};
use transom_function::{
    Error, Function, RunFunctionRequest, RunFunctionResponse, ServeOptions, Server, async_trait,
};

/// Notified when the server has received a call that takes a while.
static CALLED: tokio::sync::Notify = tokio::sync::Notify::const_new();

/// Answers with what it was given, or as the input says.
struct Echo;

#[expect(clippy::panic, reason = "the server must survive a function that panics")]
#[async_trait]
impl Function for Echo {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        match request.input.as_ref().and_then(|input| input.fields()["do"].as_str()) {
            Some("fail") => Err(Error::fatal("as told")),
            Some("panic") => panic!("as told"),
            Some("sleep") => {
                CALLED.notify_one();
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
                Ok(request.start_response())
            }
            _ => Ok(request.start_response()),
        }
    }
}

async fn start(options: ServeOptions) -> Served {
    serve_with(Echo, options).await
}

fn insecure() -> ServeOptions {
    ServeOptions { insecure: true, ..ServeOptions::default() }
}

async fn channel(address: SocketAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address makes a URL");
    endpoint.connect().await.expect("the server listens")
}

fn request(action: &str) -> RunFunctionRequest {
    RequestBuilder::new(json!({"kind": "XR"}))
        .input(json!({ "do": action }))
        .desired("a", json!({"spec": {"count": 3, "ratio": 0.5, "none": null, "list": [1, "x", {}]}}))
        .build()
}

#[tokio::test]
async fn calls_are_answered() {
    let running = start(insecure()).await;
    let client = FunctionClient::new(channel(running.address).await);
    let response = client.run(&request("echo")).await.unwrap();
    assert_eq!(response.desired, request("echo").desired);
    assert_eq!(client.run(&request("fail")).await.unwrap().results[0].message, "as told");
    let status = client.run(&request("panic")).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Internal, "the function panicked: as told"));
    assert!(client.run(&request("echo")).await.is_ok(), "a panic ends one call only");
}

#[tokio::test]
async fn a_message_of_40_megabytes_goes_both_ways() {
    let running = start(insecure()).await;
    let client = FunctionClient::new(channel(running.address).await);
    let mut builder = RequestBuilder::new(json!({"kind": "XR"}));
    for number in 0..40 {
        builder =
            builder.desired(&number.to_string(), json!({"data": "x".repeat(1 << 20), "number": number}));
    }
    let request = builder.build();
    assert_eq!(client.run(&request).await.unwrap().desired, request.desired);
    let status = client.with_max_message_size(1 << 20).run(&request).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
}

#[tokio::test]
async fn larger_requests_than_allowed_are_refused() {
    let running = start(ServeOptions { max_recv_message_size: 1, ..insecure() }).await;
    let client = FunctionClient::new(channel(running.address).await);
    let big = RequestBuilder::new(json!({"data": "x".repeat(2 << 20)})).build();
    assert_eq!(client.run(&big).await.unwrap_err().code(), Code::OutOfRange);
    assert!(client.run(&request("echo")).await.is_ok());
}

#[tokio::test]
async fn v1beta1_is_called_where_v1_is_not_served() {
    let client = FunctionClient::new(channel(serve_v1beta1().await).await);
    assert_eq!(client.run(&request("echo")).await.unwrap().desired, request("echo").desired);
}

#[tokio::test]
async fn metrics_are_shown() {
    let metrics_address = Some("127.0.0.1:0".to_owned());
    let running = start(ServeOptions { metrics_address, ..insecure() }).await;
    let shown = running.metrics_address.unwrap();
    let client = FunctionClient::new(channel(running.address).await);
    client.run(&RequestBuilder::new(json!({})).build()).await.expect("the function answers");
    let get = async |path: &str| {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(shown).await.expect("metrics are served");
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = get("/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let handled = "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"RunFunction\",grpc_service=\"apiextensions.fn.proto.v1.FunctionRunnerService\",grpc_type=\"unary\"} 1\n";
    assert!(answer.contains(handled), "{answer}");
    assert!(get("/").await.starts_with("HTTP/1.1 404 "));
}

#[tokio::test]
async fn health_is_reported_for_both_versions() {
    let running = start(insecure()).await;
    let mut client = tonic_health::pb::health_client::HealthClient::new(channel(running.address).await);
    for (service, expected) in [
        ("", Ok(1)),
        ("apiextensions.fn.proto.v1.FunctionRunnerService", Ok(1)),
        ("apiextensions.fn.proto.v1beta1.FunctionRunnerService", Ok(1)),
        ("other", Err(Code::NotFound)),
    ] {
        let check = tonic_health::pb::HealthCheckRequest { service: service.to_owned() };
        let status = client.check(check).await.map(|r| r.into_inner().status).map_err(|e| e.code());
        assert_eq!(status, expected, "{service}");
    }
}

#[tokio::test]
async fn stopping_waits_for_calls_under_way() {
    let running = start(insecure()).await;
    let client = FunctionClient::new(channel(running.address).await);
    let slow = tokio::spawn(async move { client.run(&request("sleep")).await });
    CALLED.notified().await;
    let address = running.address;
    running.stop().await;
    assert!(slow.await.unwrap().is_ok());
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("a self-signed certificate") }
    }

    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([name.to_owned()]).expect("a DNS name");
        let certificate = params.signed_by(&key, &self.issuer).expect("a signed certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

fn write_certificates(dir: &Path, authority: &Authority) {
    let (certificate, key) = authority.issue("function.test");
    for (name, pem) in [("tls.crt", certificate), ("tls.key", key), ("ca.crt", authority.issuer.pem())] {
        std::fs::write(dir.join(name), pem).expect("the temporary directory can be written");
    }
}

async fn call_over_tls(address: SocketAddr, tls: ClientTlsConfig) -> Result<RunFunctionResponse, String> {
    let endpoint = Endpoint::from_shared(format!("https://{address}")).expect("an address makes a URL");
    let channel = endpoint
        .tls_config(tls)
        .expect("readable certificates")
        .connect()
        .await
        .map_err(|e| e.to_string())?;
    FunctionClient::new(channel).run(&request("echo")).await.map_err(|e| e.to_string())
}

#[tokio::test]
async fn callers_and_the_server_prove_who_they_are() {
    let (dir, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    write_certificates(dir.path(), &authority);
    let options = ServeOptions { tls_certs_dir: Some(dir.path().to_owned()), ..ServeOptions::default() };
    let running = start(options).await;
    let trusting = || {
        ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(authority.issuer.pem()))
            .domain_name("function.test")
    };
    let identity = |authority: &Authority| {
        let (certificate, key) = authority.issue("caller.test");
        Identity::from_pem(certificate, key)
    };
    call_over_tls(running.address, trusting().identity(identity(&authority))).await.unwrap();
    assert!(call_over_tls(running.address, trusting()).await.is_err(), "no certificate");
    let stranger = identity(&Authority::new());
    assert!(
        call_over_tls(running.address, trusting().identity(stranger)).await.is_err(),
        "another authority"
    );
    let elsewhere = trusting().identity(identity(&authority)).domain_name("other.test");
    assert!(call_over_tls(running.address, elsewhere).await.is_err(), "another name");
}

#[tokio::test]
async fn a_server_says_what_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let without = ServeOptions::default();
    let empty = ServeOptions { tls_certs_dir: Some(dir.path().to_owned()), ..ServeOptions::default() };
    let network = ServeOptions { network: "carrier-pigeon".to_owned(), ..insecure() };
    let address = ServeOptions { address: ":http".to_owned(), ..insecure() };
    for (options, expected) in [
        (without, "no TLS certificates"),
        (empty, "tls.crt: No such file"),
        (network, "unknown network \"carrier-pigeon\""),
        (address, "cannot listen on :http: invalid digit"),
    ] {
        let error = chain(&Server::bind(&options).await.err().unwrap());
        assert!(error.contains(expected), "{error}");
    }
}
