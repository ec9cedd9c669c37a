//! What a plane prints: objects with `--log-format json`, else sentences that nothing buries.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};
use transom_testkit::process::{Client, Home, Plane, Refused, WAIT_LIMIT, transom};

const DEFINITIONS: &str = "/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions";
const COMPOSITIONS: &str = "/apis/apiextensions.crossplane.io/v1/compositions";
const FUNCTIONS: &str = "/apis/pkg.crossplane.io/v1/functions";
const THINGS: &str = "/apis/example.org/v1/namespaces/default/things";

/// Posts an object as soon as its kind is served.
async fn apply(client: &Client, path: &str, object: &Value) {
    let started = Instant::now();
    loop {
        let reply = client.post(path, object).await.expect("it answers");
        if reply.status == 201 {
            return;
        }
        assert!(started.elapsed() < WAIT_LIMIT, "{path}: {}", reply.text());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A plane on which one composite resource becomes ready and another cannot be composed, until it is stopped. Gives
/// what it logged.
async fn life(args: &[&str]) -> String {
    let home = Home::new();
    let mut plane = Plane::start_with(&home, &[&["--with-controllers"], args].concat());
    let client = plane.client().await;
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    let definition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "things"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "Thing"},
            "pipeline": [{"step": "ready", "functionRef": {"name": "function-auto-ready"}}],
        },
    });
    let function = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": "function-auto-ready"},
        "spec": {"package": "example.org/function-auto-ready:v1"},
    });
    let thing = |name: &str, composition: &str| {
        json!({
            "apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": name},
            "spec": {"crossplane": {"compositionRef": {"name": composition}}},
        })
    };
    for (path, object) in [
        (FUNCTIONS, function),
        (DEFINITIONS, definition),
        (COMPOSITIONS, composition),
        (THINGS, thing("good", "things")),
        (THINGS, thing("bad", "missing")),
    ] {
        apply(&client, path, &object).await;
    }
    let started = Instant::now();
    let ready = |log: &str| log.contains("good is ready.") || log.contains(r#""message":"ready""#);
    while !(ready(&home.log()) && home.log().contains("does not work")) {
        assert!(started.elapsed() < WAIT_LIMIT, "{}", home.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    plane.signal(Signal::TERM);
    assert!(plane.ended_within(WAIT_LIMIT).await.is_some_and(|status| status.success()), "{}", home.log());
    home.log()
}

fn objects(log: &str) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| unreachable!("{e}: {line}"));
    log.lines().map(read).inspect(|value: &Value| assert!(value.is_object(), "{value}")).collect()
}

fn find<'a>(lines: &'a [Value], message: &str, name: &str) -> &'a Value {
    let found = |line: &&Value| {
        let fields = &line["fields"];
        fields["message"] == message && (name.is_empty() || fields["name"] == name)
    };
    let line = lines.iter().find(found);
    &line.unwrap_or_else(|| unreachable!("no {message:?} of {name:?} in {lines:#?}"))["fields"]
}

#[tokio::test]
async fn every_line_of_a_json_log_is_an_object() {
    let lines = objects(&life(&["--log-format", "json", "-v"]).await);
    assert!(find(&lines, "serving", "")["address"].as_str().is_some_and(|a| a.starts_with("127.0.0.1:")));
    let good = find(&lines, "ready", "good");
    assert_eq!((&good["kind"], &good["namespace"]), (&json!("Thing"), &json!("default")));
    assert!(find(&lines, "does not work", "bad")["problem"].as_str().is_some_and(|p| p.contains("missing")));
    assert!(find(&lines, "reconciled", "")["took_ms"].is_f64());
    find(&lines, "stopped", "");
    let optional = |line: &&Value| line.to_string().contains("Some(");
    assert_eq!(lines.iter().find(optional), None);
}

#[test]
fn a_failed_start_is_an_object_too() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let args = ["--log-format", "json", "--listen", &address];
    let Err(Refused { status, stderr }) = Plane::try_start(&Home::new(), &args) else {
        unreachable!("the port is taken");
    };
    assert_eq!(status.code(), Some(1), "{stderr}");
    let lines = objects(&stderr);
    let message = lines.last().unwrap()["fields"]["message"].as_str().unwrap();
    assert!(message.starts_with("cannot listen on") && message.contains("--listen"), "{stderr}");
}

#[test]
fn a_served_function_logs_its_address_as_one() {
    let mut command =
        transom(&["function", "serve", "function-auto-ready", "--insecure", "--address", "127.0.0.1:0"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let lines = objects(&line);
    let address = find(&lines, "serving", "")["address"].as_str().unwrap();
    assert!(address.parse::<std::net::SocketAddr>().is_ok(), "{line}");
}

#[tokio::test]
async fn at_the_default_level_people_read_sentences_and_no_line_for_each_reconcile() {
    let log = life(&[]).await;
    assert!(log.lines().any(|line| line == "Thing default/good is ready."), "{log}");
    assert!(log.lines().any(|line| line.starts_with("Thing default/bad does not work: ")), "{log}");
    assert!(!log.contains("reconciled") && !log.contains('\u{1b}'), "{log}");
    assert_eq!(log.lines().last(), Some("Stopped; everything acknowledged is on disk."), "{log}");
}
