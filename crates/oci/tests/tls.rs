//! Registries over TLS.

use crate::images::{CONFIG, image, package_layer};
use rustls::pki_types::PrivateKeyDer;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use transom_oci::remote::{Proxies, RemoteOptions, RemoteRegistry};
use transom_oci::testing::{Access, Server, client, options};
use transom_packages::{Registry, RegistryErrorKind};

/// A server's side of TLS for 127.0.0.1, and the certificate authority to trust.
fn authority() -> (TlsAcceptor, String) {
    authority_for("127.0.0.1")
}

fn authority_for(name: &str) -> (TlsAcceptor, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let authority = parameters.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::from_params(&parameters, &authority_key);
    let leaf =
        rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
    (TlsAcceptor::from(Arc::new(config)), authority.pem())
}

fn trusting(pem: &str) -> RemoteRegistry {
    let options = RemoteOptions { extra_roots_pem: vec![pem.as_bytes().to_vec()], ..options() };
    RemoteRegistry::new(options).unwrap()
}

#[tokio::test]
async fn an_extra_authority_is_trusted() {
    let (acceptor, pem) = authority();
    let server = Server::start_with(Some(acceptor)).await;
    let stored = server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    assert_eq!(Some(trusting(&pem).resolve(&server.reference("v1"), &[]).await.unwrap()), stored.digest);
    trusting(&pem).fetch(&stored, &[]).await.unwrap();

    let registry = client();
    let error = registry.resolve(&server.reference("v1"), &[]).await.unwrap_err();
    assert!(error.message.contains("is not trusted") && error.message.contains("CA bundle"), "{error}");
    assert_eq!((error.kind, registry.requests()), (RegistryErrorKind::Untrusted, 1), "not sent again");
    let (_, other) = authority();
    assert!(trusting(&other).resolve(&server.reference("v1"), &[]).await.is_err());

    let insecure = RemoteOptions { insecure_skip_tls_verify: true, ..options() };
    RemoteRegistry::new(insecure).unwrap().resolve(&server.reference("v1"), &[]).await.unwrap();
}

#[tokio::test]
async fn a_realm_on_another_host_is_used_when_named_over_tls() {
    let (acceptor, pem) = authority();
    let server = Server::start_with(Some(acceptor.clone())).await;
    let realm = Server::start_with(Some(acceptor)).await;
    server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    server.require(Access::Bearer { realm: format!("https://{}/token", realm.host) });
    let with = [server.credentials("user", "password")];
    trusting(&pem).resolve(&server.reference("v1"), &with).await.unwrap();
    assert_eq!(realm.requests(), ["GET /token"]);
    assert!(realm.seen()[0].authorization.as_deref().unwrap().starts_with("Basic "));
}

/// A proxy that connects every tunnel to one address. Returns its own address; what it was asked is sent on.
async fn proxy(to: String, asked: tokio::sync::mpsc::UnboundedSender<String>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(client.read_u8().await.unwrap());
            }
            asked.send(String::from_utf8(request).unwrap()).unwrap();
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
            let mut server = tokio::net::TcpStream::connect(&to).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
        }
    });
    address
}

#[tokio::test]
async fn a_proxy_tunnels_tls() {
    let (acceptor, pem) = authority_for("registry.invalid");
    let server = Server::start_with(Some(acceptor)).await;
    server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    server.require(Access::Basic);
    let (sender, mut asked) = tokio::sync::mpsc::unbounded_channel();
    let address = proxy(server.host.clone(), sender).await;
    let proxies = Proxies::new(None, Some(&format!("http://proxy-user:x@{address}")), None).unwrap();
    let options = RemoteOptions { extra_roots_pem: vec![pem.into_bytes()], proxies, ..options() };
    let mut reference = server.reference("v1");
    reference.registry = "registry.invalid".to_owned();
    let mut with = server.credentials("user", "password");
    with.registry.clone_from(&reference.registry);
    RemoteRegistry::new(options).unwrap().resolve(&reference, &[with]).await.unwrap();
    let request = asked.recv().await.unwrap();
    assert!(request.starts_with("CONNECT registry.invalid:443 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("Proxy-Authorization: Basic "), "{request}");
    // The proxy's password is not the registry's business.
    assert_eq!(server.seen().iter().filter_map(|seen| seen.authorization.clone()).count(), 1);
}

#[test]
fn a_bundle_without_certificates_is_refused() {
    for pem in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let options = RemoteOptions { extra_roots_pem: vec![pem.as_bytes().to_vec()], ..options() };
        let error = RemoteRegistry::new(options).err().unwrap();
        assert!(error.message.contains("certificate"), "{error}");
    }
}
