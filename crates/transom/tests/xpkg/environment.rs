//! What commands find around them: proxies, credential helpers, a Docker daemon, the user of a kubeconfig.

use super::{Folder, META, gunzip};
use crate::scenarios::packages::registries::private_authority;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, channel};
use transom_oci::testing::{Access, Server};

/// The head of a request.
fn head(stream: &mut impl Read) -> String {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
        text.push(byte[0]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// A server that answers every request with a status, and the heads of these requests.
fn answering(status: &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (sender, heads) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let sent = sender.send(head(&mut stream));
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            if sent.is_err() {
                return;
            }
        }
    });
    (address, heads)
}

#[test]
fn registries_are_reached_through_proxies_and_without_tls_only_where_it_is_allowed() {
    let folder = Folder::new();
    let package = "registry.example.org:5000/acme/p:v1";
    let plain = ["--plain-http", "registry.example.org:5000"];
    for (arguments, variable, expected) in [
        (&[][..], "HTTPS_PROXY", "CONNECT registry.example.org:5000 HTTP/1.1"),
        (&plain, "HTTP_PROXY", "HEAD http://registry.example.org:5000/v2/acme/p/manifests/v1 HTTP/1.1"),
        (&plain, "http_proxy", "HEAD http://registry.example.org:5000/v2/acme/p/manifests/v1 HTTP/1.1"),
    ] {
        let (proxy, heads) = answering("403 Forbidden");
        let mut command = folder.command(&[&["xpkg", "inspect", package][..], arguments].concat());
        let output = command.env(variable, format!("http://{proxy}")).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        let first = heads.recv().expect("the proxy is asked");
        assert!(first.starts_with(expected), "{variable}: {first}");
    }
    // The proxy is not asked for what is excepted from it, such as a registry on this machine.
    let (proxy, heads) = answering("403 Forbidden");
    let (registry, asked) = answering("404 Not Found");
    let local = format!("{registry}/acme/p:v1");
    let mut command = folder.command(&["xpkg", "inspect", &local]);
    let command = command.env("HTTP_PROXY", format!("http://{proxy}")).env("NO_PROXY", "127.0.0.1");
    assert_eq!(command.output().expect("the binary runs").status.code(), Some(1));
    assert!(heads.try_recv().is_err() && asked.try_recv().is_ok());
    folder.error(&["inspect", package, "--plain-http", "user@host"], 80);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_come_from_a_credential_helper() {
    let server = Server::start().await;
    server.require(Access::Basic);
    let folder = Folder::new();
    folder.build("p", &[("crossplane.yaml", META)]);
    let reference = format!("{}/acme/package:v1", server.host);
    folder.write("config.json", &format!(r#"{{"credHelpers": {{"{}": "test"}}}}"#, server.host));
    let push = |folder: &Folder| {
        let mut command = folder.command(&["xpkg", "push", &reference]);
        let path = format!("{}:{}", folder.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        let output = command.env("PATH", path).output().expect("the binary runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, error) = push(&folder);
    assert!(code == Some(1) && error.contains("docker-credential-test"), "{error}");
    // It is asked for the registry on its standard input.
    let helper = format!(
        "#!/bin/sh\nread -r host\n[ \"$1 $host\" = 'get {}' ] || exit 3\n\
         echo '{{\"Username\": \"user\", \"Secret\": \"password\"}}'\n",
        server.host
    );
    folder.write("bin/docker-credential-test", &helper);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path("bin/docker-credential-test"), executable).expect("its mode is set");
    let (code, error) = push(&folder);
    assert_eq!(code, Some(0), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_authority_is_trusted_where_the_environment_names_it() {
    let (acceptor, pem) = private_authority();
    let server = Server::start_with(Some(acceptor)).await;
    let folder = Folder::new();
    folder.build("p", &[("crossplane.yaml", META)]);
    folder.write("ca.pem", &pem);
    let reference = format!("{}/acme/package:v1", server.host);
    let error = folder.error(&["push", &reference], 1);
    assert!(error.contains("is not trusted") && error.contains("SSL_CERT_FILE"), "{error}");
    let mut command = folder.command(&["xpkg", "push", &reference]);
    let pushed = command.env("SSL_CERT_FILE", folder.path("ca.pem")).output().expect("the binary runs");
    assert_eq!(pushed.status.code(), Some(0), "{}", String::from_utf8_lossy(&pushed.stderr));
    // Without any authority, if that is asked for.
    let digest = folder.ok(&["push", &reference, "--insecure-skip-tls-verify"]);
    assert_eq!(String::from_utf8_lossy(&pushed.stdout).trim_end(), digest);
}

/// A Docker daemon with one image: the file `image`.
fn daemon(folder: &Folder) -> String {
    let socket = folder.path("docker.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let image = folder.read("runtime.xpkg");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let request = head(&mut stream);
            let absent = br#"{"message": "No such image: absent:v1"}"#;
            let (status, body) =
                match request.starts_with("GET /images/get?names=acme%2Fruntime%3Av1 HTTP/1.1\r\n") {
                    true => ("200 OK", &*image),
                    false => ("404 Not Found", &absent[..]),
                };
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(body);
        }
    });
    format!("unix://{}", socket.display())
}

#[test]
fn images_are_taken_from_the_docker_daemon() {
    let folder = Folder::new();
    folder.build("runtime", &[("crossplane.yaml", META)]);
    folder.write("f/crossplane.yaml", &META.replace("Configuration", "Function"));
    let host = daemon(&folder);
    let run = |host: &str, arguments: &[&str]| {
        let mut command = folder.command(&[&["xpkg"], arguments].concat());
        let output = command.env("DOCKER_HOST", host).output().expect("the binary runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let build = |image| ["build", "-f", "f", "-o", "one.xpkg", "--embed-runtime-image", image];
    let (code, error) = run(&host, &build("acme/runtime:v1"));
    assert_eq!(code, Some(0), "{error}");
    let two = ["build", "-f", "f", "-o", "two.xpkg", "--embed-runtime-image-tarball", "runtime.xpkg"];
    folder.ok(&two);
    assert_eq!(folder.read("one.xpkg"), folder.read("two.xpkg"));
    let (code, error) = run(&host, &["extract", "--from-daemon", "acme/runtime:v1"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(gunzip(&folder.read("out.gz")).contains("name: platform"));
    for (host, arguments, words) in [
        (&*host, &build("absent:v1")[..], "absent:v1: the Docker daemon does not have it: No such image"),
        (&*host, &["extract", "--from-daemon", "absent:v1"], "does not have it"),
        (
            "unix:///nowhere/docker.sock",
            &build("a:v1"),
            "/nowhere/docker.sock: the Docker daemon cannot be reached",
        ),
        ("tcp://10.0.0.1:2375", &build("a:v1"), "DOCKER_HOST is tcp://10.0.0.1:2375"),
    ] {
        let (code, error) = run(host, arguments);
        assert!(code == Some(1) && error.contains(words) && error.contains("docker save"), "{error}");
    }
    let left = std::fs::read_dir(folder.path(".")).expect("the folder").flatten();
    let hidden: Vec<_> =
        left.map(|item| item.file_name()).filter(|n| n.to_string_lossy().starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn a_package_is_installed_on_behalf_of_another_user() {
    let folder = Folder::new();
    let (server, heads) = answering("403 Forbidden");
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{server}")}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    folder.write("kubeconfig", &kubeconfig.to_string());
    let install = ["install", "function", "registry.example.org/acme/f:v1", "--kubeconfig", "kubeconfig"];
    let who = ["--as", "alice", "--as-group", "devs", "--as-group", "ops", "--as-uid", "7"];
    folder.error(&[&install[..], &who].concat(), 1);
    let sent = heads.recv().expect("a request").to_lowercase();
    for header in ["user: alice", "group: devs", "group: ops", "uid: 7"] {
        assert!(sent.contains(&format!("impersonate-{header}\r\n")), "{header}: {sent}");
    }
    folder.error(&[&install[..], &["--as-group", "devs"]].concat(), 80);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_printed_for_programs_and_what_is_done_is_logged_on_demand() {
    use transom_oci::testing::Fault;
    let server = Server::start().await;
    let folder = Folder::new();
    folder.build("p", &[("crossplane.yaml", META)]);
    let reference = format!("{}/acme/package:v1", server.host);
    let pushed: Value = serde_json::from_str(&folder.ok(&["push", &reference, "-o", "json"])).expect("JSON");
    assert_eq!(pushed["package"], reference);
    assert_eq!(pushed["digest"], folder.ok(&["push", &reference]));
    assert!(folder.ok(&["push", &reference, "-o", "yaml"]).contains("digest: sha256:"));
    for verbose in [false, true] {
        server.fault("HEAD", Fault::Status(503, vec![]), Some(1));
        let more: &[&str] = if verbose { &["--verbose"] } else { &[] };
        let output = folder.run(&[&["inspect", &reference, "-o", "json"][..], more].concat());
        assert_eq!(output.status.code(), Some(0));
        let logged = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(logged.contains("sent again"), verbose, "{logged}");
        serde_json::from_slice::<Value>(&output.stdout).expect("stdout has nothing else");
    }
}
