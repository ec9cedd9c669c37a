//! Who gets which credentials.

use crate::images::{CONFIG, image, package_layer};
#[cfg(unix)]
use transom_oci::credentials::{HelperOptions, MachineConfig};
#[cfg(unix)]
use transom_oci::remote::{RemoteOptions, RemoteRegistry};
#[cfg(unix)]
use transom_oci::testing::options;
use transom_oci::testing::{Access, Fault, Server, client};
use transom_packages::{Credentials, Registry, RegistryError, RegistryErrorKind};

fn contains_no_secret(error: &RegistryError) {
    for secret in ["password", "wrong", "dXNlcjp", "identity-", "token-of"] {
        assert!(!error.message.contains(secret), "{error}");
    }
}

#[tokio::test]
async fn basic_authentication() {
    let server = Server::start().await;
    server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    server.require(Access::Basic);
    let registry = client();
    let right = [server.credentials("user", "password")];
    registry.resolve(&server.reference("v1"), &right).await.unwrap();
    assert_eq!(registry.requests(), 2);
    // What was accepted is used at once the next time.
    registry.resolve(&server.reference("v1"), &right).await.unwrap();
    assert_eq!(registry.requests(), 3);

    let error = registry.resolve(&server.reference("v1"), &[]).await.unwrap_err();
    assert_eq!(error.kind, RegistryErrorKind::Unauthorized);
    assert!(error.message.ends_with("; no credentials were given"), "the remedy is the caller's: {error}");
    let wrong = [server.credentials("user", "wrong")];
    let error = registry.resolve(&server.reference("v1"), &wrong).await.unwrap_err();
    assert_eq!(error.kind, RegistryErrorKind::Unauthorized);
    assert!(error.message.ends_with("; the given credentials are not sufficient"), "{error}");
    contains_no_secret(&error);
    // Each is tried in turn.
    let both = [server.credentials("user", "wrong"), server.credentials("user", "password")];
    registry.resolve(&server.reference("v1"), &both).await.unwrap();
}

#[tokio::test]
async fn token_authentication() {
    let server = Server::start().await;
    server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    server.require(Access::Bearer { realm: format!("http://{}/token", server.host) });
    let right = [server.credentials("user", "password")];
    let registry = client();
    registry.resolve(&server.reference("v1"), &right).await.unwrap();
    registry.resolve(&server.reference("v1"), &right).await.unwrap();
    let tokens: Vec<_> = server.seen().into_iter().filter(|seen| seen.request == "GET /token").collect();
    assert_eq!(tokens.len(), 1, "a token is kept");
    // The scope is what is needed, not what the registry suggests.
    assert_eq!(tokens[0].query, "service=registry&scope=repository%3Aacme%2Fpackage%3Apull");
    // The password goes to the realm, not to the registry.
    let to_registry = server.seen().into_iter().filter(|seen| seen.request.starts_with("HEAD"));
    assert!(to_registry.filter_map(|seen| seen.authorization).all(|sent| sent.starts_with("Bearer ")));

    let error =
        registry.resolve(&server.reference("v1"), &[server.credentials("user", "wrong")]).await.unwrap_err();
    assert_eq!(error.kind, RegistryErrorKind::Unauthorized);
    contains_no_secret(&error);
}

#[tokio::test]
async fn an_identity_token_is_exchanged() {
    let server = Server::start().await;
    server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    server.require(Access::Bearer { realm: format!("http://{}/token", server.host) });
    let with =
        |token: &str| [Credentials { identity_token: Some(token.to_owned()), ..server.credentials("", "") }];
    client().resolve(&server.reference("v1"), &with("identity")).await.unwrap();
    let exchange = server.seen().into_iter().find(|seen| seen.request == "POST /token").unwrap();
    let body = String::from_utf8(exchange.body.to_vec()).unwrap();
    assert!(body.contains("grant_type=refresh_token") && body.contains("refresh_token=identity"), "{body}");
    assert_eq!(exchange.authorization, None);
    let error = client().resolve(&server.reference("v1"), &with("xx-identity-xx")).await.unwrap_err();
    contains_no_secret(&error);
}

#[tokio::test]
async fn credentials_of_other_registries_are_not_sent() {
    let server = Server::start().await;
    server.require(Access::Basic);
    let other =
        Credentials { registry: "other.example".to_owned(), ..server.credentials("user", "password") };
    let error = client().resolve(&server.reference("v1"), &[other]).await.unwrap_err();
    assert_eq!(error.kind, RegistryErrorKind::Unauthorized);
    assert!(server.seen().iter().all(|seen| seen.authorization.is_none()));
}

#[tokio::test]
async fn authorization_does_not_follow_a_redirect_to_another_host() {
    let (server, storage) = (Server::start().await, Server::start().await);
    let package = image(CONFIG, &[package_layer("moved")], true);
    let stored = server.store("v1", &package);
    storage.store("v1", &package);
    server.require(Access::Basic);
    let blob = server.state.lock().unwrap().blobs.keys().cloned().collect::<Vec<_>>();
    let layer = blob
        .iter()
        .find(|digest| {
            String::from_utf8_lossy(&package.manifest).contains(&***digest)
                && !digest.ends_with(transom_packages::Digest::of(CONFIG.as_bytes()).hex())
        })
        .unwrap();
    let to = format!("http://{}/v2/acme/package/blobs/{layer}?signature=secret", storage.host);
    server.fault("/blobs/", Fault::Redirect(to), None);
    let with = [server.credentials("user", "password")];
    assert_eq!(&client().fetch(&stored, &with).await.unwrap().content[..], b"moved");
    assert_eq!(storage.seen().len(), 1);
    assert_eq!(storage.seen()[0].authorization, None);
    assert!(server.seen().iter().any(|seen| seen.authorization.is_some()));
    // A signed address is a credential: it is not in messages.
    storage.fault("/blobs/", Fault::Status(400, vec![]), None);
    let error = client().fetch(&stored, &with).await.unwrap_err();
    assert!(error.message.contains(&storage.host) && !error.message.contains("signature"), "{error}");
    // Nor does another host get credentials by asking for them.
    storage.require(Access::Basic);
    let error = client().fetch(&stored, &with).await.unwrap_err();
    assert_eq!(error.kind, RegistryErrorKind::Unauthorized);
    assert!(storage.seen().iter().all(|seen| seen.authorization.is_none()));
}

#[tokio::test]
async fn a_redirect_within_the_registry_keeps_authorization() {
    let server = Server::start().await;
    let stored = server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    server.require(Access::Basic);
    let to = format!("/v2/acme/package/manifests/{}", stored.digest.as_ref().unwrap());
    server.fault("manifests/v1", Fault::Redirect(to), None);
    let with = [server.credentials("user", "password")];
    assert_eq!(Some(client().resolve(&server.reference("v1"), &with).await.unwrap()), stored.digest);
}

#[tokio::test]
async fn a_token_realm_elsewhere_is_refused_without_tls() {
    for realm in [
        "http://realm.invalid/token",
        "https://realm.invalid/token",
        "https://user:x@realm.invalid/",
        "nonsense",
        "ftp://x/",
    ] {
        let server = Server::start().await;
        server.store("v1", &image(CONFIG, &[package_layer("a")], true));
        server.require(Access::Bearer { realm: realm.to_owned() });
        let registry = client();
        let with = [server.credentials("user", "password")];
        let error = registry.resolve(&server.reference("v1"), &with).await.unwrap_err();
        assert_eq!((error.kind, registry.requests()), (RegistryErrorKind::Invalid, 1), "{error}");
        assert!(error.message.contains("realm"), "{error}");
        contains_no_secret(&error);
    }
}

/// A credential program that counts how often it runs, and prints what is in a file.
#[cfg(unix)]
struct Program {
    folder: tempfile::TempDir,
}

#[cfg(unix)]
impl Program {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let script = "#!/bin/sh\ncd \"$(dirname \"$0\")\" && echo run >> runs && cat answer\n";
        std::fs::write(path("script"), script).unwrap();
        // A process of its own writes the program: a file that is open for writing anywhere cannot be run.
        let copy = r#"cp "$0/script" "$0/docker-credential-test" && chmod 755 "$0/docker-credential-test""#;
        let copied = std::process::Command::new("sh").args(["-c", copy]).arg(folder.path()).status();
        assert!(copied.unwrap().success());
        std::fs::write(path("config.json"), r#"{"credsStore":"test"}"#).unwrap();
        Self { folder }
    }

    fn prints(&self, password: &str) {
        let answer = format!(r#"{{"Username":"user","Secret":"{password}"}}"#);
        std::fs::write(self.folder.path().join("answer"), answer).unwrap();
    }

    fn runs(&self) -> usize {
        let runs = std::fs::read_to_string(self.folder.path().join("runs"));
        runs.unwrap_or_default().lines().count()
    }

    fn client(&self) -> RemoteRegistry {
        let folder = Some(self.folder.path().to_owned());
        let config = MachineConfig::new(self.folder.path().join("config.json"))
            .running(HelperOptions { folder, ..HelperOptions::default() });
        RemoteRegistry::new(RemoteOptions { machine_config: Some(config), ..options() }).unwrap()
    }
}

#[cfg(unix)]
#[tokio::test]
async fn what_a_credential_program_returned_is_used_again_also_after_a_secret_that_is_refused() {
    let server = Server::start().await;
    let stored = server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    server.require(Access::Basic);
    for given in [vec![], vec![server.credentials("user", "wrong")]] {
        let program = Program::new();
        program.prints("password");
        let registry = program.client();
        registry.resolve(&server.reference("v1"), &given).await.unwrap();
        registry.resolve(&server.reference("v1"), &given).await.unwrap();
        registry.fetch(&stored, &given).await.unwrap();
        assert_eq!(program.runs(), 1, "with {} Secrets", given.len());
    }
    let program = Program::new();
    let with = [server.credentials("user", "password")];
    program.client().resolve(&server.reference("v1"), &with).await.unwrap();
    assert_eq!(program.runs(), 0, "a Secret that is accepted needs no program");
}

#[cfg(unix)]
#[tokio::test]
async fn a_credential_program_runs_again_when_what_it_returned_is_refused() {
    let server = Server::start().await;
    server.store("v1", &image(CONFIG, &[package_layer("a")], true));
    server.require(Access::Basic);
    let program = Program::new();
    program.prints("old");
    let registry = program.client();
    let error = registry.resolve(&server.reference("v1"), &[]).await.unwrap_err();
    assert_eq!((error.kind, program.runs()), (RegistryErrorKind::Unauthorized, 1));
    // What it returns now is tried at once.
    program.prints("password");
    for _ in 0..3 {
        registry.resolve(&server.reference("v1"), &[]).await.unwrap();
    }
    assert_eq!(program.runs(), 2);
}

#[cfg(unix)]
#[tokio::test]
async fn a_blob_is_uploaded_with_the_credentials_of_the_machine() {
    let server = Server::start().await;
    server.require(Access::Basic);
    let program = Program::new();
    program.prints("password");
    let wrong = [server.credentials("user", "wrong")];
    let image = crate::push::parts("pushed");
    program.client().push(&server.reference("v1"), &image, &wrong, &|_| {}).await.unwrap();
    assert_eq!(program.runs(), 1);
    let uploads = server.seen().into_iter().filter(|seen| seen.request.contains("/blobs/uploads/"));
    let sent: Vec<_> = uploads.filter(|seen| seen.request.starts_with("PUT")).collect();
    assert!(!sent.is_empty() && sent.iter().all(|seen| seen.authorization.is_some()), "{sent:?}");
}
