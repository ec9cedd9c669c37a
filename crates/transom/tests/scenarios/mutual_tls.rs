//! Functions elsewhere that show their certificates, and want to see one.

use crate::scenarios::user::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;
use transom_function::testing::Scripted;
use transom_function::{RunFunctionRequest, ServeOptions, Server};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

/// A folder with a certificate for a name, its key, and the authority that is trusted.
fn certificates(authority: &Authority, name: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    write_certificates(dir.path(), authority, name);
    dir
}

fn write_certificates(dir: &Path, authority: &Authority, name: &str) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    let files =
        [("tls.crt", certificate.pem()), ("tls.key", key.serialize_pem()), ("ca.crt", authority.pem())];
    for (file, text) in files {
        std::fs::write(dir.join(file), text).expect("it can be written");
    }
}

/// Serves a function that says that it was called; its port.
async fn serve(certificates: &Path) -> u16 {
    serve_until(certificates, 0, "called", std::future::pending()).await
}

/// Serves a function on a port, or any, that says some words, until it is to stop; its port.
async fn serve_until(
    certificates: &Path,
    port: u16,
    words: &'static str,
    stop: impl Future<Output = ()> + Send + 'static,
) -> u16 {
    let options = ServeOptions {
        tls_certs_dir: Some(certificates.to_owned()),
        address: format!("127.0.0.1:{port}"),
        ..ServeOptions::default()
    };
    let server = Server::bind(&options).await.expect("a port");
    let port = server.local_addr().expect("an address").port();
    let function = Scripted(move |mut request: RunFunctionRequest| {
        let mut response = request.start_response();
        response.composite().set("status.coolerField", words)?;
        Ok(response)
    });
    tokio::spawn(server.run(function, stop));
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_are_called_with_mutual_tls() {
    let (ours, theirs) = (authority(), authority());
    let server = certificates(&ours, "localhost");
    let port = serve(server.path()).await;
    let (known, stranger) = (certificates(&ours, "plane"), certificates(&theirs, "plane"));
    for (flags, called) in [
        (vec!["--tls-client-certs-dir", known.path().to_str().unwrap()], true),
        (vec!["--tls-client-certs-dir", stranger.path().to_str().unwrap()], false),
        (vec![], false),
    ] {
        let user = User::with(&flags).await;
        user.apply(&function("remote", &format!("transom.io/endpoint: 'localhost:{port}'"))).await;
        user.apply(&definition("Thing", "Cluster", "")).await;
        user.apply(&composition("things", "Thing", &json!({}), &[("remote", Value::Null)])).await;
        user.apply(&object("Thing", "one", "")).await;
        if called {
            let thing = user.until_ready(THING, "one").await;
            assert_eq!(thing["status"]["coolerField"], "called");
        } else {
            let words = "cannot run function \"remote\"";
            let thing = user.until(THING, "one", |o| message_of(o, "Synced").contains(words)).await;
            assert_eq!(reason_of(&thing, "Synced"), "ReconcileError");
            assert_eq!(thing["status"].get("coolerField"), None);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn v14_i5456_i7480_functions_are_called_again_after_their_authority_was_replaced() {
    let (server, client) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let replace =
        |dir: &TempDir, authority: &Authority, name| write_certificates(dir.path(), authority, name);
    let first = authority();
    replace(&server, &first, "localhost");
    replace(&client, &first, "plane");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let port = serve_until(server.path(), 0, "first", async { drop(stopped.await) }).await;
    let user = User::with(&["--tls-client-certs-dir", client.path().to_str().unwrap()]).await;
    user.apply(&function("remote", &format!("transom.io/endpoint: 'localhost:{port}'"))).await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("things", "Thing", &json!({}), &[("remote", Value::Null)])).await;
    user.apply(&object("Thing", "one", "")).await;
    user.until(THING, "one", |thing| thing["status"]["coolerField"] == "first").await;
    // The function is started again with another authority, and for a while the plane has the certificates of the old one.
    stop.send(()).expect("it is served");
    transom_testkit::process::wait_until("the function has stopped", async || {
        std::net::TcpListener::bind(("127.0.0.1", port)).is_ok()
    })
    .await;
    let second = authority();
    replace(&server, &second, "localhost");
    serve_until(server.path(), port, "second", std::future::pending()).await;
    user.patch(THING, "one", json!({"spec": {"coolField": "changed"}})).await;
    let failed = user.until(THING, "one", |thing| status_of(thing, "Synced") == "False").await;
    assert!(message_of(&failed, "Synced").contains("cannot run function \"remote\""), "{failed:#}");
    // With half of the files replaced there is nothing to call it with, and nothing breaks.
    std::fs::write(client.path().join("tls.key"), "half").expect("it can be written");
    user.patch(THING, "one", json!({"spec": {"coolField": "again"}})).await;
    replace(&client, &second, "plane");
    user.until(THING, "one", |thing| thing["status"]["coolerField"] == "second").await;
    user.until_ready(THING, "one").await;
    user.until_true(FUNCTION, "remote", "Healthy").await;
}
