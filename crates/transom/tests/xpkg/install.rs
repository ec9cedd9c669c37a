//! Installing in a control plane.

use super::Folder;
use transom_testkit::process::{Home, Plane, wait_until};

const FUNCTION: &str = "xpkg.crossplane.io/crossplane-contrib/function-auto-ready";
const FUNCTIONS: &str = "/apis/pkg.crossplane.io/v1/functions";

/// A plane that serves the kinds of packages.
async fn plane(home: &Home) -> Plane {
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
