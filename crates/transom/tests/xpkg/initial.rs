//! `transom up` with packages: what it installs at its start, and folders and files in place of registries.

use super::bundle::push;
use super::{Folder, meta};
use serde_json::{Value, json};
use transom_oci::testing::Server;
use transom_testkit::process::{Client, Home, Plane, Refused, up, wait_until};

pub(super) const CONFIGURATIONS: &str = "/apis/pkg.crossplane.io/v1/configurations";
const FUNCTIONS: &str = "/apis/pkg.crossplane.io/v1/functions";

/// A plane that could reach no registry but those on this machine.
pub(super) fn start(home: &Home, arguments: &[&str]) -> Plane {
    let mut command = up(home, &[&["--with-controllers"], arguments].concat());
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        command.env(proxy, "http://127.0.0.1:1");
    }
    Plane::launch(home, command.env("NO_PROXY", "127.0.0.1")).expect("the plane starts")
}

pub(super) async fn package(client: &Client, path: &str, name: &str) -> Option<Value> {
    let reply = client.get(&format!("{path}/{name}")).await.expect("an answer");
    reply.ok().then(|| reply.json())
}

pub(super) async fn until_healthy(client: &Client, name: &str) -> Value {
    let is_healthy = |object: &Value| {
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array).cloned();
        conditions.unwrap_or_default().iter().any(|c| c["type"] == "Healthy" && c["status"] == "True")
    };
    wait_until(&format!("{name} is healthy"), async || {
        package(client, CONFIGURATIONS, name).await.is_some_and(|object| is_healthy(&object))
    })
    .await;
    package(client, CONFIGURATIONS, name).await.expect("it is there")
}

/// A bundle of a Configuration with a dependency; the registry that they came from is gone.
async fn bundle(folder: &Folder) -> String {
    let server = Server::start().await;
    let host = server.host.clone();
    push(
        folder,
        &host,
        &[
            ("team/platform", "v1.0.0", &[("team/base", ">=v1.0.0")]),
            ("team/base", "v1.1.0", &[]),
            ("team/base", "v1.0.0", &[]),
        ],
    );
    folder.ok(&["bundle", &format!("{host}/team/platform:v1.0.0"), "-o", "all.tar"]);
    host
}

/// Everything that installing has written, with the versions of the objects.
async fn stored(client: &Client) -> Vec<Value> {
    let mut all = Vec::new();
    for path in ["v1/configurations", "v1/configurationrevisions", "v1beta1/locks", "v1/functions"] {
        let list = client.get(&format!("/apis/pkg.crossplane.io/{path}")).await.expect("an answer").json();
        all.extend(list["items"].as_array().expect("a list").iter().cloned());
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_is_installed_once_and_without_a_network() {
    let (folder, home) = (Folder::new(), Home::new());
    let host = bundle(&folder).await;
    let file = folder.path("all.tar").display().to_string();
    let plane = start(&home, &["--packages", &file]);
    let client = plane.client().await;
    let platform = until_healthy(&client, "team-platform").await;
    assert_eq!(
        platform["spec"],
        json!({
            "package": format!("{host}/team/platform:v1.0.0"), "ignoreCrossplaneConstraints": false,
            "packagePullPolicy": "IfNotPresent", "revisionActivationPolicy": "Automatic", "revisionHistoryLimit": 1,
            "skipDependencyResolution": false,
        })
    );
    let base = until_healthy(&client, "team-base").await;
    assert_eq!(base["spec"]["package"], format!("{host}/team/base:v1.1.0"), "the resolver installs it");
    plane.until_idle().await;
    let before = stored(&client).await;
    drop(plane);
    // The same start again changes nothing.
    let plane = start(&home, &["--packages", &file]);
    plane.until_idle().await;
    let client = plane.client().await;
    assert_eq!(stored(&client).await, before, "nothing was written");
    // What is deleted is installed again at the next start; nothing is ever deleted.
    client.delete(&format!("{CONFIGURATIONS}/team-platform")).await.unwrap();
    drop(plane);
    let plane = start(&home, &["--packages", &file]);
    until_healthy(&plane.client().await, "team-platform").await;
    drop(plane);
    let plane = start(&home, &["--package-source", &file]);
    assert!(package(&plane.client().await, CONFIGURATIONS, "team-platform").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_packages_is_installed() {
    let (folder, home) = (Folder::new(), Home::new());
    let base = "xpkg.example.org/acme/base";
    folder.build("platform-v1.0.0", &[("crossplane.yaml", &meta("platform", &[(base, "<v2.0.0")]))]);
    folder.build("base-v1.1.0", &[("crossplane.yaml", &meta("base", &[]))]);
    folder.build("base-v1.0.0", &[("crossplane.yaml", &meta("base", &[]))]);
    folder.build("unversioned", &[("crossplane.yaml", &meta("unversioned", &[]))]);
    let plane = start(&home, &["--packages", &folder.path("").display().to_string()]);
    let client = plane.client().await;
    let platform = until_healthy(&client, "platform").await;
    assert_eq!(platform["spec"]["package"], "packages.local/platform:v1.0.0");
    let base = until_healthy(&client, "acme-base").await;
    assert_eq!(base["spec"]["package"], "xpkg.example.org/acme/base:v1.1.0");
    let unversioned = until_healthy(&client, "unversioned").await;
    let package = unversioned["spec"]["package"].as_str().unwrap();
    assert!(package.starts_with("packages.local/unversioned@sha256:"), "{package}");
    let all = client.get(CONFIGURATIONS).await.unwrap().json();
    assert_eq!(all["items"].as_array().map(Vec::len), Some(3), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_are_installed_by_name_and_changed_to_other_versions() {
    let (folder, home) = (Folder::new(), Home::new());
    let server = Server::start().await;
    let host = server.host.clone();
    push(&folder, &host, &[("team/base", "v1.0.0", &[]), ("team/base", "v1.1.0", &[])]);
    let ready = "xpkg.crossplane.io/crossplane-contrib/function-auto-ready";
    let (function, base) = (format!("{ready}:v0.4.0"), format!("{host}/team/base:v1.0.0"));
    // A built-in function is known to be one; the other package is looked at.
    let plane = start(&home, &["--package", &function, "--package", &base]);
    let client = plane.client().await;
    let installed = package(&client, FUNCTIONS, "crossplane-contrib-function-auto-ready").await;
    assert_eq!(installed.expect("it is there when the plane serves")["spec"]["package"], function);
    until_healthy(&client, "team-base").await;
    drop(plane);
    // Another version, from a registry that is gone: its kind is already known.
    drop(server);
    let base = format!("{host}/team/base:v1.1.0");
    let function = format!("{ready}:v0.5.0");
    let plane = start(&home, &["--package", &base, "--function", &function]);
    let client = plane.client().await;
    let changed = package(&client, CONFIGURATIONS, "team-base").await.unwrap();
    assert_eq!(changed["spec"]["package"], base);
    let changed = package(&client, FUNCTIONS, "crossplane-contrib-function-auto-ready").await.unwrap();
    assert_eq!(changed["spec"]["package"], function);
    drop(plane);
    // A package whose kind cannot be found out is reported, and the plane serves.
    let plane = start(&home, &["--package", &format!("{host}/team/other:v1.0.0")]);
    wait_until("the problem is reported", async || home.log().contains("team/other:v1.0.0 does not work"))
        .await;
    assert!(home.log().contains("--provider, --configuration or --function"), "{}", home.log());
    drop(plane);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_stands_in_for_the_registry_that_an_image_config_names() {
    let (folder, home) = (Folder::new(), Home::new());
    let host = bundle(&folder).await;
    let mount = format!("mirror.example.org={}", folder.path("all.tar").display());
    let plane = start(&home, &["--package-source", &mount]);
    let client = plane.client().await;
    let prefix = |prefix: &str| json!({"type": "Prefix", "prefix": prefix});
    let config = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig", "metadata": {"name": "mirror"},
        "spec": {
            "matchImages": [prefix("xpkg.example.org/"), prefix(&format!("{host}/"))],
            "rewriteImage": {"prefix": "mirror.example.org/"},
        },
    });
    assert!(client.post("/apis/pkg.crossplane.io/v1beta1/imageconfigs", &config).await.unwrap().ok());
    let object = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration", "metadata": {"name": "platform"},
        "spec": {"package": "xpkg.example.org/team/platform:v1.0.0"},
    });
    assert!(client.post(CONFIGURATIONS, &object).await.unwrap().ok());
    let platform = until_healthy(&client, "platform").await;
    assert_eq!(platform["status"]["resolvedPackage"], "mirror.example.org/team/platform:v1.0.0");
    until_healthy(&client, "team-base").await;
}

#[test]
fn what_cannot_be_installed_keeps_the_plane_from_starting() {
    let home = Home::new();
    let refused = |arguments: &[&str]| {
        let started = Plane::try_start(&home, &[&["--with-controllers"], arguments].concat());
        let Err(Refused { status, stderr }) = started else { panic!("it started with {arguments:?}") };
        (status.code(), stderr)
    };
    let (code, said) = refused(&["--packages", "/nowhere"]);
    assert!(code == Some(1) && said.contains("/nowhere") && said.contains("OCI layout"), "{said}");
    let (code, said) = refused(&["--function", "a.b/c:v1", "--package", "a.b/c:v2"]);
    assert!(code == Some(1) && said.contains("as v1 and as v2"), "{said}");
    let (code, said) = refused(&["--function", "localhost:5000/c:v1"]);
    assert!(code == Some(1) && said.contains("localhost:5000/c:v1"), "{said}");
    let (code, said) = refused(&["--package", "c:v1"]);
    assert!(code == Some(80) && said.contains("host of a registry"), "{said}");
    let (code, said) = refused(&["--api-server-only", "--package", "a.b/c:v1"]);
    assert!(code == Some(80) && said.contains("--api-server-only"), "{said}");
}
