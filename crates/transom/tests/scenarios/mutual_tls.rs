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
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    let files =
        [("tls.crt", certificate.pem()), ("tls.key", key.serialize_pem()), ("ca.crt", authority.pem())];
    for (file, text) in files {
        std::fs::write(dir.path().join(file), text).expect("it can be written");
    }
    dir
}

/// Serves a function that says that it was called; its port.
async fn serve(certificates: &Path) -> u16 {
    let options = ServeOptions {
        tls_certs_dir: Some(certificates.to_owned()),
        address: "127.0.0.1:0".to_owned(),
        ..ServeOptions::default()
    };
    let server = Server::bind(&options).await.expect("a port");
    let port = server.local_addr().expect("an address").port();
    let function = Scripted(|mut request: RunFunctionRequest| {
        let mut response = request.start_response();
        response.composite().set("status.coolerField", "called")?;
        Ok(response)
    });
    tokio::spawn(server.run(function, std::future::pending()));
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
