//! What an install or upgrade would change.

use super::bundle::push;
use super::{COMPOSITION, Folder, definition, meta};
use serde_json::Value;
use transom_oci::testing::Server;
use transom_testkit::process::{Client, Home, Plane, wait_until};

const CONFIGURATIONS: &str = "/apis/pkg.crossplane.io/v1/configurations";

/// The plan as JSON, and the exit code.
fn plan(folder: &Folder, arguments: &[&str]) -> (Value, Option<i32>) {
    let output = folder.run(&[&["plan", "-o", "json"], arguments].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {stderr}"));
    (value, output.status.code())
}

fn rows<'a>(plan: &'a Value, list: &str, fields: &[&str]) -> Vec<Vec<&'a str>> {
    let items = plan[list].as_array().expect("a list");
    let row =
        |item: &'a Value| fields.iter().map(|field| item[*field].as_str().unwrap_or_default()).collect();
    items.iter().map(row).collect()
}

/// A package with objects.
fn push_with(folder: &Folder, reference: &str, meta: &str, objects: &[&str]) -> String {
    let mut files = vec![("crossplane.yaml".to_owned(), meta.to_owned())];
    for (i, object) in objects.iter().enumerate() {
        files.push((format!("{i}.yaml"), (*object).to_owned()));
    }
    let name = reference.rsplit('/').next().unwrap_or_default().replace([':', '.'], "-");
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    folder.build(&name, &files);
    folder.ok(&["push", reference, "-f", &format!("{name}.xpkg")])
}

async fn until_healthy(client: &Client, name: &str) {
    wait_until(&format!("{name} is healthy"), async || {
        let object = client.get(&format!("{CONFIGURATIONS}/{name}")).await.expect("an answer").json();
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array).cloned();
        conditions.unwrap_or_default().iter().any(|c| c["type"] == "Healthy" && c["status"] == "True")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_is_shown_before_it_is_made() {
    let (server, folder, home) = (Server::start().await, Folder::new(), Home::new());
    let host = server.host.clone();
    let (base, platform) = (format!("{host}/team/base"), format!("{host}/team/platform"));
    let steps = COMPOSITION
        .replace("pipeline: []", "pipeline: [{step: a, functionRef: {name: function-auto-ready}}]");
    push(&folder, &host, &[("team/base", "v1.0.0", &[]), ("team/base", "v2.0.0", &[])]);
    let first = meta("platform", &[(&base, "<v2.0.0")]);
    let digest = push_with(&folder, &format!("{platform}:v1.0.0"), &first, &[&definition(&["size"]), &steps]);
    let second = meta("platform", &[(&base, ">=v1.0.0")]);
    push_with(&folder, &format!("{platform}:v1.1.0"), &second, &[&definition(&["size", "region"])]);
    push_with(&folder, &format!("{platform}:v2.0.0"), &meta("platform", &[(&base, ">=v2.0.0")]), &[]);
    let plane = Plane::start_with(&home, &["--with-controllers"]);
    let client = plane.client().await;
    wait_until("Configurations are served", async || {
        client.get(CONFIGURATIONS).await.is_ok_and(|reply| reply.ok())
    })
    .await;
    let kubeconfig = home.data().join("kubeconfig").display().to_string();
    let with = ["--kubeconfig", kubeconfig.as_str()];
    let planned = |reference: &str| plan(&folder, &[&[reference], &with[..]].concat());

    // Nothing is installed.
    let (new, code) = planned(&format!("{platform}:v1.0.0"));
    assert_eq!(code, Some(0), "{new:#}");
    let expected = [["create", "team-platform", digest.as_str()], ["create", "team-base", ""]];
    let packages = rows(&new, "packages", &["action", "name", "digest"]);
    assert_eq!(packages[0], expected[0]);
    assert_eq!(packages[1][..2], expected[1][..2]);
    assert_eq!(new["packages"][1]["package"], format!("{base}:v1.0.0"));
    assert_eq!(new["packages"][1]["requiredBy"][0]["constraint"], "<v2.0.0");
    let objects = rows(&new, "objects", &["action", "kind", "name"]);
    let definition_row = ["create", "CompositeResourceDefinition", "apps.example.org"];
    assert_eq!(objects, [definition_row, ["create", "Composition", "apps"]]);
    assert!(client.get(CONFIGURATIONS).await.unwrap().json()["items"].as_array().unwrap().is_empty());

    // An upgrade.
    folder
        .ok(&[&["install", "configuration", &format!("{platform}:v1.0.0"), "-w", "30s"], &with[..]].concat());
    until_healthy(&client, "team-base").await;
    let (same, code) = planned(&format!("{platform}:v1.0.0"));
    assert_eq!((code, rows(&same, "packages", &["action"])), (Some(0), vec![vec!["keep"]]), "{same:#}");
    let (upgrade, code) = planned(&format!("{platform}:v1.1.0"));
    assert_eq!(code, Some(0), "{upgrade:#}");
    assert_eq!(rows(&upgrade, "packages", &["action", "name"]), [["upgrade", "team-platform"]]);
    let objects = rows(&upgrade, "objects", &["action", "name"]);
    assert_eq!(objects, [["change", "apps.example.org"], ["release", "apps"]], "{upgrade:#}");
    let field = "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.region";
    let fields = upgrade["objects"][0]["fields"].as_array().unwrap();
    assert!(fields.contains(&field.into()), "{fields:?}");
    let text = folder.ok(&[&["plan", &format!("{platform}:v1.1.0")], &with[..]].concat());
    assert!(text.contains("upgrade  configuration/team-platform") && text.contains(field), "{text}");

    // What cannot be: the installed dependency is too old and is not changed, unless that is allowed.
    let (conflict, code) = planned(&format!("{platform}:v2.0.0"));
    assert_eq!(code, Some(2), "{conflict:#}");
    let problem = conflict["conflicts"][0].as_str().unwrap();
    assert!(problem.contains("v1.0.0 is incompatible with constraint >=v2.0.0"), "{problem}");
    let allowed = [&format!("{platform}:v2.0.0"), "--enable-dependency-version-upgrades"];
    let (upgrade, code) = plan(&folder, &[&allowed[..], &with].concat());
    assert_eq!(code, Some(0), "{upgrade:#}");
    assert_eq!(
        rows(&upgrade, "packages", &["action", "package"])[1],
        ["upgrade", format!("{base}:v2.0.0").as_str()]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_needs_no_control_plane() {
    let (server, folder) = (Server::start().await, Folder::new());
    let host = server.host.clone();
    push(
        &folder,
        &host,
        &[
            ("team/platform", "v1.0.0", &[("team/base", ">=v1.0.0"), ("team/gone", "*")]),
            ("team/other", "v1.0.0", &[("team/base", "^1.0.0")]),
            ("team/base", "v1.1.0", &[]),
        ],
    );
    let (one, code) = plan(&folder, &[&format!("{host}/team/other:v1.0.0"), "--offline"]);
    assert_eq!(code, Some(0), "{one:#}");
    assert_eq!(rows(&one, "packages", &["name"]), [["team-other"], ["team-base"]]);
    // A file, with a function that is built in; and a dependency that there is not.
    let function = "xpkg.crossplane.io/crossplane-contrib/function-auto-ready";
    let depends = format!(
        "{}  - function: {function}\n    version: '>=v0.2.1'\n",
        meta("mine", &[(&format!("{host}/team/base"), "*")])
    );
    folder.build("mine-v0.1.0", &[("crossplane.yaml", &depends)]);
    let (file, code) = plan(&folder, &["mine-v0.1.0.xpkg", "--offline"]);
    assert_eq!(code, Some(0), "{file:#}");
    assert_eq!(file["packages"][0]["package"], "packages.local/mine:v0.1.0");
    let builtin = file["packages"].as_array().unwrap().iter().find(|package| package["builtIn"] == true);
    assert_eq!(builtin.expect("the function")["package"], format!("{function}:v0.2.1"));
    let (gone, code) = plan(&folder, &[&format!("{host}/team/platform:v1.0.0"), "--offline"]);
    assert_eq!(code, Some(2), "{gone:#}");
    assert!(gone["conflicts"].to_string().contains("team/gone"), "{gone:#}");
    folder.error(&["plan"], 80);
    folder.error(&["plan", "a.b/c:v1", "--offline", "--kubeconfig", "x"], 80);
}
