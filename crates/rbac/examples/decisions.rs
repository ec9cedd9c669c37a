//! How long a decision takes with 1,000 bindings: `cargo run --profile dist -p transom-rbac --example decisions`.
#![allow(clippy::print_stdout, reason = "a program that prints what it measures")]

use serde_json::json;
use std::time::Instant;
use transom_rbac::{Index, Request, User, bootstrap};

const ROUNDS: u32 = 200_000;

fn main() {
    let mut index = Index::default();
    for object in bootstrap::policy() {
        let text = |key: &str| object.value["metadata"][key].as_str().unwrap_or_default().to_owned();
        if object.plural.ends_with("bindings") {
            index.put_binding(&text("namespace"), &text("name"), &object.value);
        } else {
            index.put_role(&text("namespace"), &text("name"), &object.value);
        }
    }
    for i in 0..1_000 {
        let rules = json!({"rules": [{"verbs": ["get", "list"], "apiGroups": ["example.org"], "resources": [format!("things{i}")]}]});
        index.put_role("team", &format!("r{i}"), &rules);
        let subjects =
            json!([{"kind": "User", "name": format!("user{}", i % 10)}, {"kind": "Group", "name": "team"}]);
        let binding = json!({"roleRef": {"kind": "Role", "name": format!("r{i}")}, "subjects": subjects});
        index.put_binding("team", &format!("b{i}"), &binding);
    }
    let groups: Vec<String> =
        ["system:serviceaccounts", "system:authenticated", "team"].map(str::to_owned).to_vec();
    let user = User { name: "user7", groups: &groups };
    let request = |resource| Request {
        verb: "get",
        group: "example.org",
        resource,
        namespace: "team",
        ..Request::default()
    };
    for (title, request) in [("allowed", request("things997")), ("denied", request("nothing"))] {
        let began = Instant::now();
        let allowed = (0..ROUNDS).filter(|_| index.allows(&user, std::hint::black_box(&request))).count();
        let nanos = began.elapsed().as_nanos() / u128::from(ROUNDS);
        println!("{title}: {nanos} ns per decision ({allowed} of {ROUNDS} allowed)");
    }
}
