//! Installing in a control plane.

use super::Folder;
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
