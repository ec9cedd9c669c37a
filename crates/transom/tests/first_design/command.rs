//! What `transom convert` prints for what it is given.

use super::{blocks, convert};
use serde_json::{Value, json};
use std::process::Output;
use transom_object::{meta, yaml};
use transom_testkit::process::transom;

fn documents(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", stderr(output));
    let text = std::str::from_utf8(&output.stdout).expect("text");
    yaml::read_documents(text).expect("YAML").into_iter().map(|document| document.value).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn named<'a>(documents: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = documents.iter().find(|object| meta::kind(object) == kind && meta::name(object) == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// What a failing run says. It prints no object.
fn refused(text: &str) -> String {
    let output = convert(text, &[]);
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(1), ""));
    stderr(&output)
}

fn changed(old: &str, new: &str) -> String {
    let text = blocks::proposal();
    assert!(text.contains(old), "{old}");
    text.replacen(old, new, 1)
}

#[test]
fn every_block_of_the_design_is_converted() {
    let output = convert(&blocks::all(), &[]);
    let printed = documents(&output);
    let order: Vec<String> =
        printed.iter().map(|object| format!("{}/{}", meta::kind(object), meta::name(object))).collect();
    assert_eq!(
        order,
        [
            "CompositeResourceDefinition/wordpresses.apps.example.org",
            "CompositeResourceDefinition/mysqlinstances.database.example.org",
            "Composition/private-mysql-server",
            "Composition/mysqlinstances.database.example.org",
            "Composition/wordpresses.apps.example.org",
            "Wordpress/example-wordpress-app",
            "MySQLInstance/example-resource-claim",
            "CloudSQLInstanceClass/example-resource-class",
            "MySQLInstance/sql",
            "Wordpress/coolblog",
            "MySQLInstanceRequirement/sql",
        ]
    );
    let said = stderr(&output);
    for words in [
        "warning: ApplicationDefinition/wordpresses.apps.example.org: spec.crdSpecTemplate.validation.openAPIV3Schema.\
         properties.storageSize.type: \"int\" is read as \"integer\"",
        "properties.storageGB.type: \"int\" is read as \"integer\"",
        "warning: Wordpress/coolblog: apiVersion: no definition has this version of the kind: read as \
         \"apps.example.org/v1alpha1\"",
        "Wordpress/coolblog: spec.application.composedRefs: left out: the control plane writes it",
        "MySQLInstance/sql: spec.infrastructure.composedRefs: left out",
        "MySQLInstance/sql: spec.infrastructure.reclaimPolicy: left out: a composite resource is deleted with its claim",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(said.matches("warning: ").count(), 6, "{said}");
    assert!(said.contains("  --> stdin:"), "{said}");
}

#[test]
fn definitions_say_what_those_of_the_design_said() {
    let printed = documents(&convert(&blocks::proposal(), &[]));
    let of = |name| &named(&printed, "CompositeResourceDefinition", name)["spec"];
    let infrastructure = of("mysqlinstances.database.example.org");
    assert_eq!(infrastructure["scope"], "LegacyCluster");
    assert_eq!(infrastructure["claimNames"]["kind"], "MySQLInstanceRequirement");
    assert_eq!(infrastructure["connectionSecretKeys"], json!(["username", "password", "endpoint"]));
    assert_eq!(infrastructure["defaultCompositionRef"], json!({"name": "cheap-rds"}));
    assert_eq!(
        infrastructure["enforcedCompositionRef"],
        json!({"name": "mysqlinstances.database.example.org"})
    );
    let application = of("wordpresses.apps.example.org");
    assert_eq!(application["scope"], "Namespaced");
    let account = json!({"namespace": "crossplane-system", "name": "wordpresses.apps.example.org"});
    assert_eq!(application["serviceAccountRef"], account);
    let spec = &application["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["properties"]["storageSize"], json!({"type": "integer"}));
    let claim = &named(&printed, "MySQLInstanceRequirement", "sql")["spec"];
    assert_eq!(claim["resourceRef"]["name"], "default-sql-dd02m");
    assert_eq!(claim["compositionRef"], json!({"name": "private-mysql-server"}));
    let blog = &named(&printed, "Wordpress", "coolblog")["spec"];
    assert_eq!(blog["crossplane"]["compositionRef"], json!({"name": "wordpress-kubernetes-mysql"}));
}

/// What is converted composes as the design describes it.
#[test]
fn a_converted_composition_is_rendered() {
    let printed = documents(&convert(&blocks::proposal(), &[]));
    let folder = tempfile::tempdir().expect("a folder");
    let parts = [
        ("xr.yaml", named(&printed, "MySQLInstance", "sql")),
        ("composition.yaml", named(&printed, "Composition", "private-mysql-server")),
        ("xrd.yaml", named(&printed, "CompositeResourceDefinition", "mysqlinstances.database.example.org")),
    ];
    for (file, object) in parts {
        std::fs::write(folder.path().join(file), yaml::write(object)).expect("a file");
    }
    let mut command = transom(&["render", "xr.yaml", "composition.yaml", "--xrd", "xrd.yaml"]);
    let output = command.current_dir(folder.path()).output().expect("transom runs");
    let rendered = documents(&output);
    let of = |kind: &str| rendered.iter().find(|object| meta::kind(object) == kind).expect("it is composed");
    assert_eq!(of("ResourceGroup")["spec"]["forProvider"]["location"], "West US");
    let server = &of("MySQLServer")["spec"]["forProvider"];
    assert_eq!((&server["storageMB"], &server["version"]), (&json!(10240), &json!("5.7")));
    assert_eq!(server["resourceGroupNameSelector"], json!({"matchControllerRef": true}));
    let rule = &of("MySQLServerVirtualNetworkRule")["spec"];
    assert_eq!(rule["serverNameSelector"], json!({"matchControllerRef": true}));
}

#[test]
fn mistakes_are_pointed_at() {
    let missing = refused(&changed("    - {name: endpoint, fromConnectionSecretKey: endpoint}\n", ""));
    for words in [
        "error: Composition/private-mysql-server: spec.to: connection detail \"endpoint\" of InfrastructureDefinition \
         \"mysqlinstances.database.example.org\" is given by none of the resources: exactly one must\n",
        " --> stdin:7:3\n",
        "7 |   to:\n",
    ] {
        assert!(missing.contains(words), "{words}: {missing}");
    }
    let twice = refused(&changed("name: endpoint, ", "name: password, "));
    assert!(twice.contains("connection detail \"password\" is given twice"), "{twice}");
    assert!(twice.contains("{name: password, fromConnectionSecretKey: endpoint}\n"), "{twice}");
    let cluster_scoped = refused(&changed(
        "- base: {apiVersion: v1, kind: ConfigMap}",
        "- base: {apiVersion: v1, kind: Node}",
    ));
    assert!(
        cluster_scoped.contains("Node of v1 is cluster-scoped: applications are composed of"),
        "{cluster_scoped}"
    );
    let unread = refused("a: b\n  c: d\n");
    assert!(unread.contains("this is not YAML") && unread.contains("--> stdin:2:4"), "{unread}");
    assert!(refused("# nothing\n").contains("there is nothing to convert"));
}

/// What today's API server would refuse is refused here, too, at the field where it was written.
#[test]
fn what_cannot_be_applied_is_not_printed() {
    let transform =
        refused(&changed("{type: math, math: {multiply: 1024}}", "{type: maths, math: {multiply: 1024}}"));
    let place = "error: Composition/private-mysql-server: spec.to[1].patches[2].transforms[0].type: ";
    assert!(transform.contains(place) && transform.contains("maths"), "{transform}");
    assert!(transform.contains("transforms: [{type: maths"), "{transform}");
    let schema = refused(&changed("engineVersion: {type: string}", "engineVersion: {type: text}"));
    let place =
        "error: InfrastructureDefinition/mysqlinstances.database.example.org: as it is written today: ";
    assert!(schema.contains(place) && schema.contains("engineVersion"), "{schema}");
    let plural = refused(&blocks::proposal().replace("mysqlinstances", "MySQLinstances"));
    assert!(
        plural.contains("as it is written today: ") && plural.contains("Plural name must be lowercase"),
        "{plural}"
    );
}

#[test]
fn files_and_folders_are_read_and_json_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = blocks::proposal();
    for (index, part) in text.split("---").enumerate() {
        std::fs::write(folder.path().join(format!("{index}.yaml")), part).expect("a file");
    }
    let run = |arguments: &[&str]| {
        let mut command = transom(&["convert"]);
        command.args(arguments).current_dir(folder.path()).output().expect("transom runs")
    };
    let whole = documents(&convert(&text, &[]));
    assert_eq!(documents(&run(&["."])), whole);
    let output = run(&["-o", "json", "."]);
    let stream = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    assert_eq!(stream.map(|object| object.expect("JSON")).collect::<Vec<_>>(), whole);
    // What was converted has no field of the design left.
    let printed = String::from_utf8(convert(&text, &[]).stdout).expect("text");
    let again = convert(&printed, &[]);
    assert_eq!((documents(&again), stderr(&again).as_str()), (whole, ""));
    assert_eq!(run(&[]).status.code(), Some(80), "without a file");
    let missing = run(&["missing.yaml"]);
    assert!(missing.status.code() == Some(1) && stderr(&missing).contains("missing.yaml"), "{missing:?}");
}
