//! A real server on the loopback: both versions, the fallback between them, limits, mutual TLS, health, stopping.

use prost::Message;
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
    Error, Function, RunFunctionRequest, RunFunctionResponse, ServeOptions, Server, Struct, async_trait,
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
            Some(text) => {
                // A number: how many bytes the response is to have.
                let bytes = text.parse::<usize>();
                let mut response = request.start_response();
                if let Ok(bytes) = bytes {
                    pad(&mut response, bytes, |response| &mut response.context);
                }
                Ok(response)
            }
            None => Ok(request.start_response()),
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

/// Makes a message exactly as long as it is to be, by its context.
fn pad<M: Message>(message: &mut M, bytes: usize, context: impl Fn(&mut M) -> &mut Option<Struct>) {
    let mut filler = bytes;
    while message.encoded_len() != bytes {
        let text = "x".repeat(filler);
        context(message).get_or_insert_default().fields_mut().insert("filler".to_owned(), text.into());
        filler = filler + bytes - message.encoded_len();
    }
}

/// What every function and every control plane must at least accept, in bytes.
const LARGE: usize = 64 << 20;

#[tokio::test]
async fn messages_of_64_mebibytes_are_accepted_and_larger_ones_refused() {
    let running = start(insecure()).await;
    let client = FunctionClient::new(channel(running.address).await);
    let mut exact = request("echo");
    pad(&mut exact, LARGE, |request| &mut request.context);
    assert_eq!(exact.encoded_len(), LARGE);
    // The tag and the TTL that the response has and the request has not are shorter than the input that it has not.
    assert_eq!(client.run(&exact).await.unwrap().context, exact.context, "a request, and nearly a response");
    let answered = client.run(&request(&LARGE.to_string())).await.unwrap();
    assert_eq!(answered.encoded_len(), LARGE, "a response");
    let limits = |status: &tonic::Status| {
        let message = status.message();
        message.contains(&(LARGE + 1).to_string()) && message.contains(&format!("limit is: {LARGE}"))
    };
    let mut longer = request("echo");
    pad(&mut longer, LARGE + 1, |request| &mut request.context);
    let status = client.run(&longer).await.unwrap_err();
    assert!(status.code() == Code::OutOfRange && limits(&status), "{status}");
    let status = client.run(&request(&(LARGE + 1).to_string())).await.unwrap_err();
    assert!(status.code() == Code::OutOfRange && limits(&status), "{status}");
    assert!(client.run(&request("echo")).await.is_ok(), "the connection still works");
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
async fn certificates_that_were_replaced_are_used_without_a_restart() {
    let (dir, first, second) = (tempfile::tempdir().unwrap(), Authority::new(), Authority::new());
    write_certificates(dir.path(), &first);
    let options = ServeOptions { tls_certs_dir: Some(dir.path().to_owned()), ..ServeOptions::default() };
    let running = start(options).await;
    let call = async |authority: &Authority| {
        let (certificate, key) = authority.issue("caller.test");
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(authority.issuer.pem()))
            .identity(Identity::from_pem(certificate, key))
            .domain_name("function.test");
        call_over_tls(running.address, tls).await
    };
    call(&first).await.unwrap();
    // In the middle of a replacement: the key is not yet that of the certificate, and then there is none.
    let (certificate, key) = second.issue("function.test");
    std::fs::write(dir.path().join("tls.crt"), certificate).unwrap();
    call(&first).await.unwrap();
    std::fs::remove_file(dir.path().join("tls.key")).unwrap();
    call(&first).await.unwrap();
    std::fs::write(dir.path().join("tls.key"), key).unwrap();
    assert!(call(&first).await.is_err(), "the certificate is that of the second authority");
    assert!(call(&second).await.is_err(), "whose clients are not known yet");
    std::fs::write(dir.path().join("ca.crt"), second.issuer.pem()).unwrap();
    call(&second).await.unwrap();
    assert!(call(&first).await.is_err());
}

#[tokio::test]
async fn clients_that_say_nothing_keep_no_other_waiting() {
    let (dir, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    write_certificates(dir.path(), &authority);
    let options = ServeOptions { tls_certs_dir: Some(dir.path().to_owned()), ..ServeOptions::default() };
    let running = start(options).await;
    let mut silent = Vec::new();
    for _ in 0..32 {
        silent.push(tokio::net::TcpStream::connect(running.address).await.unwrap());
    }
    let (certificate, key) = authority.issue("caller.test");
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(authority.issuer.pem()))
        .identity(Identity::from_pem(certificate, key))
        .domain_name("function.test");
    call_over_tls(running.address, tls).await.unwrap();
}

#[tokio::test]
async fn a_server_says_what_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let mixed = tempfile::tempdir().unwrap();
    write_certificates(mixed.path(), &Authority::new());
    std::fs::write(mixed.path().join("tls.key"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let mixed = ServeOptions { tls_certs_dir: Some(mixed.path().to_owned()), ..ServeOptions::default() };
    let without = ServeOptions::default();
    let empty = ServeOptions { tls_certs_dir: Some(dir.path().to_owned()), ..ServeOptions::default() };
    let network = ServeOptions { network: "carrier-pigeon".to_owned(), ..insecure() };
    let address = ServeOptions { address: ":http".to_owned(), ..insecure() };
    for (options, expected) in [
        (without, "no TLS certificates"),
        (empty, "tls.crt: No such file"),
        (mixed, "cannot be used: "),
        (network, "unknown network \"carrier-pigeon\""),
        (address, "cannot listen on :http: invalid digit"),
    ] {
        let error = chain(&Server::bind(&options).await.err().unwrap());
        assert!(error.contains(expected), "{error}");
    }
}
