//! Tests of web servers as functions: in plain text, and with certificates on both sides.

use super::*;
use rcgen::{CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers one request with a status and a body, and returns what it was sent.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, head: &str, body: &str) -> String {
    let (mut received, mut chunk) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&received).ends_with("INPUT") {
        match stream.read(&mut chunk).await.unwrap() {
            0 => break,
            read => received.extend_from_slice(&chunk[..read]),
        }
    }
    let response = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(response.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    String::from_utf8(received).unwrap()
}

fn at(url: String) -> WebhookFunction {
    WebhookFunction { url, timeout: Some("5s".to_owned()), ..WebhookFunction::default() }
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[tokio::test]
async fn a_document_is_sent_and_one_comes_back() {
    for (head, body, expected) in [
        ("200 OK", "desired: {}", Ok("desired: {}")),
        ("500 Oops", "it\nbroke", Err("it responded with status 500 Internal Server Error: itbroke")),
    ] {
        let (listener, port) = listen().await;
        let serving = async { answer(listener.accept().await.unwrap().0, head, body).await };
        let function = at(format!("http://127.0.0.1:{port}/fn?a=b"));
        let none = SecretData::new();
        let (sent, got) = tokio::join!(serving, post(&function, &none, b"INPUT".to_vec()));
        assert!(sent.starts_with("POST /fn?a=b HTTP/1.1\r\n") && sent.contains("application/yaml"), "{sent}");
        let got = got.map(|body| String::from_utf8(body).unwrap());
        assert_eq!(got.as_deref().map_err(String::as_str), expected);
    }
}

#[tokio::test]
async fn a_server_that_does_not_respond_is_given_up() {
    let (listener, port) = listen().await;
    let function =
        WebhookFunction { timeout: Some("50ms".to_owned()), ..at(format!("http://127.0.0.1:{port}")) };
    let error = post(&function, &SecretData::new(), b"INPUT".to_vec()).await.unwrap_err();
    assert_eq!(error, "it did not respond within 0.05 s");
    drop(listener);
    let error = post(&function, &SecretData::new(), Vec::new()).await.unwrap_err();
    assert!(error.starts_with("cannot connect to 127.0.0.1:"), "{error}");
    let error = post(&at("ftp://h".to_owned()), &SecretData::new(), Vec::new()).await.unwrap_err();
    assert!(error.contains("is neither http:// nor https://"), "{error}");
}

/// An authority, and what makes certificates with it.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn issue(&self, usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }
}

#[tokio::test]
async fn both_sides_show_certificates() {
    let authority = Authority::new();
    let (certificate, key) = authority.issue(ExtendedKeyUsagePurpose::ServerAuth);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.0.der().clone()).unwrap();
    let verifier =
        rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.unwrap())
        .with_single_cert(
            certificates(certificate.as_bytes()).unwrap(),
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let (own_certificate, own_key) = authority.issue(ExtendedKeyUsagePurpose::ClientAuth);
    let all = SecretData::from([
        ("ca.crt".to_owned(), authority.0.pem().into_bytes()),
        ("tls.crt".to_owned(), own_certificate.into_bytes()),
        ("tls.key".to_owned(), own_key.into_bytes()),
    ]);
    let without = SecretData::from([("ca.crt".to_owned(), authority.0.pem().into_bytes())]);
    for (secret, is_accepted) in [(&all, true), (&without, false)] {
        let (listener, port) = listen().await;
        let serving = async {
            let stream = listener.accept().await.unwrap().0;
            if let Ok(stream) = acceptor.accept(stream).await {
                drop(answer(stream, "200 OK", "desired: {}").await);
            }
        };
        let function = at(format!("https://127.0.0.1:{port}/"));
        let ((), got) = tokio::join!(serving, post(&function, secret, b"INPUT".to_vec()));
        assert_eq!(got.is_ok(), is_accepted, "{got:?}");
    }
    let only_key = SecretData::from([("tls.key".to_owned(), Vec::new())]);
    let error = config_error(&only_key);
    assert!(error.contains("only one of tls.crt and tls.key"), "{error}");
}

fn config_error(secret: &SecretData) -> String {
    config(&WebhookFunction::default(), secret).unwrap_err()
}
