//! `transom controller` as a process beside an API server: what a cluster sees of it. `conformance/run controller` does more on
//! a real kube-apiserver.

use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use transom_engine::Cluster;
use transom_object::{GroupVersion, GroupVersionKind, meta};
use transom_testkit::process::{Home, Plane, transom, wait_until};

const NAMESPACE: &str = "crossplane-system";

/// An API server alone, and its user.
struct Bed {
    home: Home,
    _plane: Plane,
    cluster: Cluster,
}

impl Bed {
    async fn new() -> Self {
        let home = Home::new();
        let plane = Plane::start(&home);
        let config = Kubeconfig::read_from(home.data().join("kubeconfig")).unwrap();
        let config =
            kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
        let cluster = Cluster::new(kube::Client::try_from(config).unwrap());
        let bed = Self { home, _plane: plane, cluster };
        bed.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n")).await;
        bed
    }

    fn kubeconfig(&self) -> PathBuf {
        self.home.data().join("kubeconfig")
    }

    /// A process of controllers, which is killed when it is dropped.
    fn controller(&self, name: &str, flags: &[&str]) -> Controller {
        let mut command =
            transom(&["controller", "--listen-address", "127.0.0.1", "--health-probe-port", "0"]);
        command.args(["--metrics-port", "0", "--container-runtime", "none", "--identity", name]);
        command.args(["--leader-election-lease-duration", "3s"]).args(flags);
        command.arg("--kubeconfig").arg(self.kubeconfig());
        Controller(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn run(&self, args: &[&str]) -> Output {
        transom(args).arg("--kubeconfig").arg(self.kubeconfig()).output().unwrap()
    }

    async fn apply(&self, text: &str) {
        for document in transom_object::yaml::read_documents(text).unwrap() {
            let mut object = document.value;
            let is_cluster_scoped = ["Namespace", "ClusterRole", "ClusterRoleBinding"]
                .contains(&meta::kind(&object))
                || meta::api_version(&object).contains("crossplane.io/");
            if meta::namespace(&object).is_empty() && !is_cluster_scoped {
                meta::set_namespace(&mut object, "default");
            }
            wait_until("an object is applied", async || self.cluster.apply(&object, "test").await.is_ok())
                .await;
        }
    }

    async fn platform(&self) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/platform");
        for file in ["functions.yaml", "definitions.yaml", "compositions.yaml", "use.yaml"] {
            self.apply(&std::fs::read_to_string(folder.join(file)).unwrap()).await;
        }
    }

    async fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let gvk = GroupVersion::parse(api_version).unwrap().with_kind(kind);
        self.cluster.get(&gvk, namespace, name).await.ok().flatten()
    }

    async fn until_ready(&self, kind: &str, name: &str) {
        wait_until(&format!("{kind} {name} is ready"), async || {
            let object = self.get("platform.example.org/v1", kind, "default", name).await.unwrap_or_default();
            let conditions = object["status"]["conditions"].as_array();
            conditions.is_some_and(|list| transom_object::conditions::has_status(list, "Ready", "True"))
        })
        .await;
    }

    async fn leader(&self) -> String {
        let lease =
            self.get("coordination.k8s.io/v1", "Lease", NAMESPACE, "crossplane-leader-election-core").await;
        lease.unwrap_or_default()["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }
}

struct Controller(Child);

impl Controller {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_goes_on_when_one_is_paused_or_stopped() {
    let bed = Bed::new().await;
    let mut first = bed.controller("first", &[]);
    bed.platform().await;
    bed.until_ready("Platform", "team-a").await;
    bed.until_ready("App", "shop").await;
    assert!(bed.leader().await.starts_with("first-"));
    let _second = bed.controller("second", &[]);
    first.signal(Signal::STOP);
    wait_until("the second leads", async || bed.leader().await.starts_with("second-")).await;
    first.signal(Signal::CONT);
    bed.apply(
        "apiVersion: platform.example.org/v1\nkind: App\nmetadata: {name: more}\nspec: {image: 'more:1.0'}\n",
    )
    .await;
    bed.until_ready("App", "more").await;
    assert!(bed.leader().await.starts_with("second-"), "the first waits");
    first.signal(Signal::TERM);
    let ended = first.0.wait().unwrap();
    assert!(ended.success(), "{ended}");
    let lease = GroupVersionKind::new("coordination.k8s.io", "v1", "Lease");
    let leases = bed.cluster.list(&lease, NAMESPACE, &Default::default()).await.unwrap();
    assert!(
        !leases.iter().any(|lease| meta::name(lease).starts_with("transom-member-first-")),
        "it took its Lease away"
    );
}

fn lease(name: &str) -> String {
    format!(
        "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {{name: {name}, namespace: {NAMESPACE}}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_is_printed_checked_and_removed() {
    let bed = Bed::new().await;
    let values = bed.home.root().join("values.yaml");
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: added, namespace: crossplane-system}}";
    std::fs::write(&values, format!("extraObjects: [{map}]\n")).unwrap();
    let values = ["-f", values.to_str().unwrap(), "--set", "metrics.enabled=true"];
    let mut printed = transom(&[&["install", "--image", "example.org/transom:v1"][..], &values[..]].concat());
    let printed = printed.output().unwrap();
    assert!(printed.status.success(), "{printed:?}");
    let text = String::from_utf8(printed.stdout).unwrap();
    let fresh = String::from_utf8(bed.run(&["install", "--dry-run"]).stdout).unwrap();
    assert!(fresh.contains("create    Deployment transom"), "{fresh}");
    for document in transom_object::yaml::read_documents(&text).unwrap() {
        bed.cluster.apply(&document.value, "transom-install").await.unwrap();
    }
    let again = bed.run(&["install", "--upgrade", "--dry-run"]);
    let again = String::from_utf8(again.stdout).unwrap();
    assert!(again.lines().all(|line| line.starts_with("unchanged")), "{again}");
    bed.apply(&lease("transom-member-first-1")).await;
    bed.apply(&lease("crossplane-leader-election-core")).await;
    let removed = String::from_utf8(bed.run(&["uninstall"]).stdout).unwrap();
    assert!(removed.starts_with("removed   ConfigMap added\nremoved   Deployment transom\n"), "{removed}");
    assert!(removed.ends_with("removed   Lease transom-member-first-1\n"), "{removed}");
    assert!(bed.get("apps/v1", "Deployment", NAMESPACE, "transom").await.is_none());
    assert!(bed.get("v1", "ConfigMap", NAMESPACE, "added").await.is_none(), "what users added to the chart");
    let missing = bed.run(&["install", "--upgrade"]);
    let why = String::from_utf8(missing.stderr).unwrap();
    assert!(!missing.status.success() && why.contains("there is nothing to upgrade"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plane_moves_to_another_server_and_nothing_is_made_twice() {
    let (old, new) = (Bed::new().await, Bed::new().await);
    let _here = old.controller("old", &["--leader-election=false"]);
    old.platform().await;
    old.until_ready("Platform", "team-a").await;
    old.until_ready("App", "shop").await;
    let file = old.home.root().join("plane.yaml");
    let file = file.to_str().unwrap();
    let exported = old.run(&["export", file]);
    assert!(exported.status.success(), "{exported:?}");
    // What was checked before the controllers change would change nothing.
    drop(_here);
    let checked = old.run(&["adopt", "--check", "--container-runtime", "none"]);
    let report = String::from_utf8(checked.stdout).unwrap();
    assert_eq!(
        (checked.status.code(), report.as_str()),
        (Some(0), "Nothing would change, and everything is supported.\n")
    );
    let _there = new.controller("new", &["--leader-election=false"]);
    for expected in ["objects made, ", "0 objects made, "] {
        let imported = new.run(&["import", file]);
        let text = String::from_utf8(imported.stdout.clone()).unwrap();
        assert!(imported.status.success() && text.contains(expected), "{imported:?}");
    }
    let nops = GroupVersionKind::new("nop.crossplane.io", "v1alpha1", "NopResource");
    let uids = async || {
        let listed = new.cluster.list(&nops, "", &Default::default()).await.unwrap();
        listed.iter().map(|nop| meta::uid(nop).to_owned()).collect::<Vec<_>>()
    };
    let made = uids().await;
    assert!(!made.is_empty());
    let released = new.run(&["import", file, "--release"]);
    assert!(released.status.success(), "{released:?}");
    new.until_ready("Platform", "team-a").await;
    new.until_ready("App", "shop").await;
    assert_eq!(uids().await, made);
}

/// Versions are converted by the webhook server of the controllers, and its certificates are renewed all the time.
#[tokio::test(flavor = "multi_thread")]
async fn versions_are_converted_by_the_controllers() {
    let bed = Bed::new().await;
    let flags = ["--webhook-url", "", "--webhook-port", "0", "--webhook-certificate-lifetime", "3s"];
    let _controllers = bed.controller("first", &flags);
    let guide = include_str!("../../../docs/conversion.md");
    let both = guide.split_once("# both.yaml\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
    bed.apply(both).await;
    let old = "apiVersion: example.org/v1alpha1\nkind: Bucket\nmetadata: {name: photos}\nspec: {sizeGi: 10, region: eu}\n";
    bed.apply(old).await;
    let is_converted = async || {
        let seen = bed.get("example.org/v1", "Bucket", "default", "photos").await.unwrap_or_default();
        seen["spec"]["size"] == "10Gi" && seen["spec"]["location"]["region"] == "eu"
    };
    wait_until("the new version is served", is_converted).await;
    let bundle = async || {
        let crd =
            bed.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "buckets.example.org").await;
        crd.unwrap()["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"].clone()
    };
    let first = bundle().await;
    assert!(first.is_string(), "{first}");
    wait_until("the authority is another one", async || bundle().await != first).await;
    wait_until("the new authority is in force", is_converted).await;
}

/// What is composed under the service account `default/composer`, which may do nothing: a ConfigMap.
const COMPOSED_UNDER_AN_ACCOUNT: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: composer}
---
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata: {name: function-go-templating}
spec: {package: example.org/function-go-templating:v1}
---
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  names: {kind: Thing, plural: things}
  serviceAccountRef: {name: composer, namespace: default}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: things}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Thing}
  mode: Pipeline
  pipeline:
  - step: map
    functionRef: {name: function-go-templating}
    input:
      apiVersion: gotemplating.fn.crossplane.io/v1beta1
      kind: GoTemplate
      source: Inline
      inline:
        template: |
          apiVersion: v1
          kind: ConfigMap
          metadata: {annotations: {gotemplating.fn.crossplane.io/composition-resource-name: map}}
---
apiVersion: example.org/v1
kind: Thing
metadata: {name: one}
spec: {}
"#;

const AUTHORS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: authors}
rules:
- {apiGroups: [apiextensions.crossplane.io], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: authors}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: authors}
subjects:
- {kind: ServiceAccount, name: author, namespace: tenant}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_account_of_a_definition_is_used_and_guarded_on_a_cluster() {
    let bed = Bed::new().await;
    let _controller =
        bed.controller("one", &["--leader-election=false", "--webhook-url=", "--webhook-port", "0"]);
    wait_until("the webhook is served", async || {
        let found = bed
            .get(
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
                "",
                "transom-service-accounts",
            )
            .await;
        found.is_some()
    })
    .await;
    bed.apply(AUTHORS).await;
    let documents = transom_object::yaml::read_documents(COMPOSED_UNDER_AN_ACCOUNT).unwrap();
    let definition = documents.into_iter().map(|document| document.value);
    let definition = definition.into_iter().find(|o| meta::kind(o) == "CompositeResourceDefinition").unwrap();
    let tenant = bed.cluster.acting_as("system:serviceaccount:tenant:author");
    let mut refused = String::new();
    wait_until("the tenant is refused", async || {
        refused = tenant.create(&definition, "test").await.unwrap_err().to_string();
        refused.contains("service-accounts.transom.io")
    })
    .await;
    assert!(refused.contains("may not use service account \"default/composer\""), "{refused}");
    let mut own = definition.clone();
    own["spec"]["serviceAccountRef"] = json!({"name": "crossplane", "namespace": "crossplane-system"});
    let refused = bed.cluster.create(&own, "test").await.unwrap_err().to_string();
    assert!(refused.contains("\"crossplane-system/crossplane\" is the control plane itself"), "{refused}");
    bed.apply(COMPOSED_UNDER_AN_ACCOUNT).await;
    let message = async || {
        let thing = bed.get("example.org/v1", "Thing", "default", "one").await.unwrap_or_default();
        let conditions = thing["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let synced =
            conditions.into_iter().find(|condition| condition["type"] == "Synced").unwrap_or_default();
        synced["message"].as_str().unwrap_or_default().to_owned()
    };
    wait_until("the account is not allowed to write", async || {
        message().await.contains("service account default/composer is not allowed to [get, create,")
    })
    .await;
}
