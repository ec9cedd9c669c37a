//! Installing in a control plane.

use super::Folder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use transom_testkit::process::{Home, Plane, wait_until};

pub(super) const FUNCTION: &str = "xpkg.crossplane.io/crossplane-contrib/function-auto-ready";
const FUNCTIONS: &str = "/apis/pkg.crossplane.io/v1/functions";

/// A plane that serves the kinds of packages.
pub(super) async fn plane(home: &Home) -> Plane {
    let plane = Plane::start_with(home, &["--with-controllers"]);
    let client = plane.client().await;
    wait_until("Functions are served", async || client.get(FUNCTIONS).await.is_ok_and(|reply| reply.ok()))
        .await;
    plane
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_is_installed_and_updated() {
    let home = Home::new();
    let plane = plane(&home).await;
    let client = plane.client().await;
    let folder = Folder::new();
    let kubeconfig = home.data().join("kubeconfig").display().to_string();
    let with = ["--kubeconfig", &kubeconfig];
    let package = format!("{FUNCTION}:v0.4.0");
    let created = folder.ok(&[&["install", "function", &package, "--wait", "30s"], &with[..]].concat());
    assert_eq!(created, "function/crossplane-contrib-function-auto-ready created");
    let path = format!("{FUNCTIONS}/crossplane-contrib-function-auto-ready");
    let stored = client.get(&path).await.unwrap().json();
    assert_eq!(stored["spec"]["package"], package);
    assert_eq!(stored["spec"]["revisionActivationPolicy"], "Automatic");
    assert_ne!(stored["spec"]["revisionHistoryLimit"], 0, "old revisions are removed");
    let again = folder.error(&[&["install", "function", &package], &with[..]].concat(), 1);
    assert!(again.contains("exists already") && again.contains("xpkg update"), "{again}");
    let package = format!("{FUNCTION}:v0.5.0");
    let updated = folder.ok(&[&["update", "function", &package], &with[..]].concat());
    assert_eq!(updated, "function/crossplane-contrib-function-auto-ready updated");
    assert_eq!(client.get(&path).await.unwrap().json()["spec"]["package"], package);
    // Checked, and not made.
    let package = format!("{FUNCTION}:v0.6.0");
    let checked = folder.ok(&[&["update", "function", &package, "--dry-run"], &with[..]].concat());
    assert_eq!(checked, "function/crossplane-contrib-function-auto-ready updated (dry run)");
    let checked =
        folder
            .ok(&[&["install", "function", &package, "new", "--dry-run", "-o", "json"], &with[..]].concat());
    let checked: serde_json::Value = serde_json::from_str(&checked).unwrap();
    assert_eq!(checked["spec"]["package"], package);
    assert!(!client.get(&format!("{FUNCTIONS}/new")).await.unwrap().ok());
    assert_ne!(client.get(&path).await.unwrap().json()["spec"]["package"], package);
    let refused =
        folder.error(&[&["install", "function", "localhost:5000/x:v1", "--dry-run"], &with[..]].concat(), 1);
    assert!(refused.contains("function/x"), "{refused}");
    // Again and again.
    for done in ["configured", "unchanged"] {
        let again = folder.ok(&[&["install", "function", &package, "--server-side"], &with[..]].concat());
        assert_eq!(again, format!("function/crossplane-contrib-function-auto-ready {done}"));
    }
    let former = ["update", "function", "crossplane-contrib-function-auto-ready", "v0.7.0"];
    folder.ok(&[&former[..], &with].concat());
    assert_eq!(client.get(&path).await.unwrap().json()["spec"]["package"], format!("{FUNCTION}:v0.7.0"));
    let options = ["-m", "-r", "3", "--package-pull-secrets", "a,b", "--runtime-config", "small"];
    folder.ok(&[&["install", "function", &package, "mine"], &options[..], &with].concat());
    let spec = client.get(&format!("{FUNCTIONS}/mine")).await.unwrap().json()["spec"].clone();
    assert_eq!(spec["revisionActivationPolicy"], "Manual");
    assert_eq!(spec["revisionHistoryLimit"], 3);
    assert_eq!(spec["packagePullSecrets"][1]["name"], "b");
    assert_eq!(spec["runtimeConfigRef"]["name"], "small");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_installed_is_explained() {
    let home = Home::new();
    let plane = plane(&home).await;
    let folder = Folder::new();
    let kubeconfig = home.data().join("kubeconfig").display().to_string();
    let with = ["--kubeconfig", &kubeconfig];
    let absent = folder.error(&[&["update", "function", "a.b/c:v1"], &with[..]].concat(), 1);
    assert!(absent.contains("function/c is not installed") && absent.contains("xpkg install"), "{absent}");
    let runtime = ["install", "configuration", "a.b/c:v1", "--runtime-config", "x"];
    assert!(folder.error(&[&runtime[..], &with].concat(), 1).contains("leave out --runtime-config"));
    assert!(folder.error(&["install", "widget", "a.b/c:v1"], 80).contains("configuration"));
    let none = folder.error(&["install", "function", "a.b/c:v1", "--kubeconfig", "nowhere"], 1);
    assert!(none.contains("cannot use the kubeconfig"), "{none}");
    drop(plane);
    let gone = folder.error(&[&["update", "function", "a.b/c:v1"], &with[..]].concat(), 1);
    assert!(gone.contains("check that the server of the kubeconfig runs"), "{gone}");
}

/// A request: its first line. The body is read and not looked at.
fn request_line(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).expect("a request");
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a header");
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    reader.read_exact(&mut vec![0; length]).expect("a body");
    first
}

/// A server with one Function, which other clients change before the first writes of every command. Returns the path of a
/// kubeconfig, and the number of writes that it was sent.
fn busy_server(folder: &Folder, conflicts: u32) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = format!("http://{}", listener.local_addr().expect("an address"));
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "c", "user": {}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    folder.write("busy", &kubeconfig.to_string());
    let writes = Arc::new(AtomicU32::new(0));
    let counted = writes.clone();
    std::thread::spawn(move || {
        let kinds = json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "pkg.crossplane.io/v1",
            "resources": [{"name": "functions", "singularName": "", "namespaced": false, "kind": "Function",
                           "verbs": ["get", "patch", "update"]}],
        });
        let object = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
            "metadata": {"name": "f", "resourceVersion": "1"}, "spec": {"package": "a.b/f:v1"},
        });
        let conflict = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409, "reason": "Conflict",
            "message": "the object has been modified",
        });
        for mut stream in listener.incoming().flatten() {
            let line = request_line(&stream);
            let (status, body): (&str, &Value) = if line.starts_with("GET /apis/pkg.crossplane.io/v1 ") {
                ("200 OK", &kinds)
            } else if line.starts_with("GET ") || counted.fetch_add(1, Ordering::SeqCst) >= conflicts {
                ("200 OK", &object)
            } else {
                ("409 Conflict", &conflict)
            };
            let body = body.to_string();
            let head = format!("content-type: application/json\r\ncontent-length: {}", body.len());
            let _ = write!(stream, "HTTP/1.1 {status}\r\n{head}\r\nconnection: close\r\n\r\n{body}");
        }
    });
    (folder.path("busy").display().to_string(), writes)
}

#[test]
fn an_update_is_repeated_while_other_clients_change_the_object() {
    for more in [&[][..], &["--dry-run"]] {
        let folder = Folder::new();
        let run = |kubeconfig: &str| {
            let update = ["update", "function", "a.b/f:v2", "f", "--kubeconfig", kubeconfig];
            folder.run(&[&update[..], more].concat())
        };
        let (kubeconfig, writes) = busy_server(&folder, 2);
        let output = run(&kubeconfig);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(writes.load(Ordering::SeqCst), 3);
        // Not indefinitely.
        let (kubeconfig, writes) = busy_server(&folder, u32::MAX);
        let output = run(&kubeconfig);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains("has been modified"), "{said}");
        assert_eq!(writes.load(Ordering::SeqCst), 5);
    }
}
