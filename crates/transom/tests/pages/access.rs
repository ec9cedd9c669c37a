//! docs/access.md: people are let in, rights are taken from the controllers and given to them, and files are started with. What kubectl
//! would do is asked of the API: not every machine has it.

use super::{assert_all_are_known, block, commands, printed};
use crate::xpkg::Folder;
use serde_json::{Value, json};
use transom_testkit::process::{Client, Home, Plane, wait_until};

const PAGE: &str = "access.md";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const COLLEAGUE: &str = "kubectl create namespace team-a";
const EMPTIED: &str = "kubectl annotate clusterrole transom:composed-resources rbac.authorization.kubernetes.io/autoupdate=false --overwrite";
const DEFINITION: &str = "apiVersion: apiextensions.crossplane.io/v2";
const LENT: &str = "kubectl apply -f - <<EOF";
/// Commands that start a plane with a file, and what stands in the file.
const OPENID: [&str; 2] =
    ["transom up --authentication-config authentication.yaml", "apiVersion: apiserver.config.k8s.io/v1"];
const AUDIT: [&str; 2] =
    ["transom up --audit-policy-file policy.yaml --audit-log-path audit.log", "apiVersion: audit.k8s.io/v1"];

#[test]
fn every_block_about_access_is_run_or_there_is_a_reason() {
    let run = [COLLEAGUE, EMPTIED, DEFINITION, LENT, OPENID[0], OPENID[1], AUDIT[0], AUDIT[1]];
    let not_run = [
        (
            "service account shop/composer is not allowed to [get, create, update, patch, delete] resource secrets/v1 in namespace shop; A Role in",
            "it is a message; scenarios/accounts.rs compares it",
        ),
        (
            "openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout jane.key -subj /O=developers/CN=jane -out jane.csr",
            "it needs openssl and kubectl; startup/certificates.rs requests and uses a certificate without them",
        ),
    ];
    assert_all_are_known(PAGE, &run, &not_run);
}

/// A request of `kubectl`, as the API is asked for it.
async fn kubectl(client: &Client, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let reply = match &words[..] {
        ["kubectl", "create", "namespace", name] => {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            client.post("/api/v1/namespaces", &namespace).await
        }
        ["kubectl", "annotate", "clusterrole", name, annotation, "--overwrite"] => {
            let (key, value) = annotation.split_once('=').expect("a value");
            client
                .merge(&format!("{ROLES}/{name}"), &json!({"metadata": {"annotations": {key: value}}}))
                .await
        }
        ["kubectl", "patch", "clusterrole", name, "--type", "merge", "-p", ..] => {
            let patch = line.split('\'').nth(1).expect("a patch");
            client.merge(&format!("{ROLES}/{name}"), &serde_json::from_str(patch).expect("JSON")).await
        }
        [
            "kubectl",
            "create",
            "rolebinding",
            name,
            "-n",
            namespace,
            "--role",
            role,
            "--serviceaccount",
            account,
        ] => {
            let (of, account) = account.split_once(':').expect("a namespace");
            let binding = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
                "subjects": [{"kind": "ServiceAccount", "namespace": of, "name": account}],
            });
            client.post(&rbac(namespace, "rolebindings"), &binding).await
        }
        _ => panic!("the test does not know what to do with {line:?}"),
    };
    let reply = reply.expect("an answer");
    assert!(reply.ok(), "{line}: {}", reply.text());
}

fn rbac(namespace: &str, resource: &str) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{resource}")
}

/// A user with the kubeconfig in a file.
async fn user(plane: &Plane, folder: &Folder, file: &str) -> Client {
    let text = String::from_utf8(folder.read(file)).expect("text");
    let config = transom_object::yaml::read(&text).expect("a kubeconfig");
    let token = config["users"][0]["user"]["token"].as_str().expect("a token").to_owned();
    Client::connect(&plane.access.with_token(&token)).await.expect("a connection")
}

async fn status(user: &Client, path: &str) -> u16 {
    user.get(path).await.expect("an answer").status
}

/// Whether `kubectl auth can-i --list` shows a user a resource.
async fn can_use(user: &Client, resource: &str) -> bool {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "team-a"},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    user.post(path, &review).await.expect("an answer").text().contains(resource)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_colleague_is_let_in_and_out_again() {
    let (home, folder) = (Home::new(), Folder::new());
    let plane = Plane::start(&home);
    let (client, kubeconfig) = (plane.client().await, home.data().join("kubeconfig"));
    let (maps, others) = ("/api/v1/namespaces/team-a/configmaps", "/api/v1/namespaces/default/configmaps");
    let lines = commands(&block(PAGE, COLLEAGUE));
    let [namespace, add_jane, can_i, add_ci, list, revoke] = &lines[..] else { panic!("{lines:?}") };
    let run = |line: &str| tokio::task::block_in_place(|| printed(&folder, "", line, Some(&kubeconfig)));
    kubectl(&client, namespace).await;
    run(add_jane);
    assert_eq!(can_i, "kubectl --kubeconfig jane.kubeconfig auth can-i --list");
    let jane = user(&plane, &folder, "jane.kubeconfig").await;
    assert!(can_use(&jane, "configmaps").await);
    assert_eq!((status(&jane, maps).await, status(&jane, others).await), (200, 403));
    run(add_ci);
    let ci = user(&plane, &folder, "ci.kubeconfig").await;
    assert!(can_use(&ci, "databases").await && !can_use(&ci, "configmaps").await);
    assert_eq!(status(&ci, maps).await, 403);
    let listed = run(list);
    assert!(listed.contains("jane") && listed.contains("ci"), "{listed}");
    run(revoke);
    assert_eq!((status(&jane, maps).await, status(&ci, maps).await), (401, 403), "others are not affected");
}

/// How many rules the role of the controllers has that allows them to compose everything.
async fn rules(client: &Client) -> Option<usize> {
    let role = client.get(&format!("{ROLES}/transom:composed-resources")).await.expect("an answer");
    role.ok().then(|| role.json()["rules"].as_array().map_or(0, Vec::len))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_right_to_compose_everything_can_be_taken_away_for_good() {
    let home = Home::new();
    let mut plane = Plane::start_with(&home, &["--with-controllers"]);
    let client = plane.client().await;
    wait_until("the role is there", async || rules(&client).await > Some(0)).await;
    for line in commands(&block(PAGE, EMPTIED)) {
        kubectl(&client, &line).await;
    }
    assert_eq!(rules(&client).await, Some(0));
    plane.kill();
    // Roles are completed before a plane is ready.
    let plane = Plane::start_with(&home, &["--with-controllers"]);
    assert_eq!(rules(&plane.client().await).await, Some(0));
}

/// Whether the controllers may have things made as the account of the page.
async fn may_lend(client: &Client) -> bool {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": "system:serviceaccount:crossplane-system:crossplane",
            "resourceAttributes":
                {"verb": "use", "resource": "serviceaccounts", "namespace": "shop", "name": "composer"},
        },
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    client.post(path, &review).await.expect("an answer").json()["status"]["allowed"] == true
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_names_an_account_which_is_lent_to_the_controllers() {
    let home = Home::new();
    let plane = Plane::start_with(&home, &["--with-controllers"]);
    let client = plane.client().await;
    kubectl(&client, "kubectl create namespace shop").await;
    let mut definition = transom_object::yaml::read(&block(PAGE, DEFINITION)).expect("YAML");
    // The page shows what is about accounts only.
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    definition["spec"]["group"] = json!("example.org");
    definition["spec"]["names"] = json!({"kind": "Shop", "plural": "shops"});
    definition["spec"]["versions"] =
        json!([{"name": "v1", "served": true, "referenceable": true, "schema": schema}]);
    let path = "/apis/apiextensions.crossplane.io/v2/compositeresourcedefinitions";
    wait_until("definitions are served", async || client.get(path).await.is_ok_and(|reply| reply.ok())).await;
    let reply = client.post(path, &definition).await.expect("an answer");
    assert!(reply.ok(), "{}", reply.text());
    assert_eq!(reply.json()["spec"]["serviceAccountRef"], json!({"namespace": "shop", "name": "composer"}));

    assert!(!may_lend(&client).await);
    let text = block(PAGE, LENT);
    let (document, rest) =
        text.split_once("EOF\n").and_then(|(_, rest)| rest.split_once("EOF\n")).expect("EOF");
    let role = transom_object::yaml::read(document).expect("YAML");
    let reply = client.post(&rbac("shop", "roles"), &role).await.expect("an answer");
    assert!(reply.ok(), "{}", reply.text());
    for line in commands(rest) {
        kubectl(&client, &line).await;
    }
    assert!(may_lend(&client).await);
}

/// Starts a plane as a command of the page says, in a home with its file, which may have been changed.
fn start([command, file]: [&str; 2], home: &Home, change: impl Fn(String) -> String) -> Option<Plane> {
    let line = commands(&block(PAGE, command)).remove(0);
    let path = |name: &str| home.root().join(name).display().to_string();
    let flags: Vec<String> = line
        .split_whitespace()
        .skip(2)
        .map(|word| if word.starts_with("--") { word.to_owned() } else { path(word) })
        .collect();
    std::fs::write(&flags[1], change(block(PAGE, file))).expect("a file");
    Plane::try_start(home, &flags.iter().map(String::as_str).collect::<Vec<_>>()).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_about_openid_connect_is_accepted() {
    let home = Home::new();
    let wrong = |text: String| text.replace("userValidationRules:", "userValidatonRules:");
    assert!(start(OPENID, &home, wrong).is_none(), "what is wrong with a file is found at the start");
    let plane = start(OPENID, &home, |text| text).expect("it starts");
    let ready = plane.client().await.get("/readyz").await.expect("an answer");
    assert!(ready.ok(), "{}", ready.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_policy_records_what_the_page_says() {
    let home = Home::new();
    let plane = start(AUDIT, &home, |text| text).expect("it starts");
    let client = plane.client().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    assert!(client.post(maps, &map).await.expect("an answer").ok());
    assert!(client.get(maps).await.expect("an answer").ok());
    let log = std::fs::read_to_string(home.root().join("audit.log")).expect("the log");
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of_maps = || events.iter().filter(|event| event["objectRef"]["resource"] == "configmaps");
    let made: Vec<&Value> = of_maps().filter(|event| event["verb"] == "create").collect();
    assert_eq!(made.len(), 1, "RequestReceived is left out: {log}");
    assert_eq!((&made[0]["level"], &made[0]["requestObject"]), (&json!("Metadata"), &Value::Null));
    assert_eq!(of_maps().count(), 1, "reading is not recorded: {log}");
}
