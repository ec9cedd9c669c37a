//! What references consist of, and which packages are made for dependencies.

use super::Case;
use super::constraints::{digest, mutate};
use serde_json::{Value, json};
use transom_packages::Reference;
use transom_testkit::rng::Rng;

const HOSTS: [&str; 12] = [
    "xpkg.example.org",
    "r.io",
    "localhost",
    "localhost:5000",
    "registry:5000",
    "127.0.0.1:5000",
    "docker.io",
    "index.docker.io",
    "Reg.Example.org",
    "-r.io",
    "registry",
    "r.io:65536",
];
const PARTS: [&str; 12] =
    ["acme", "a", "provider-aws", "provider.aws", "a_b", "a__b", "a___b", "a--b", "A", "x-", "library", "ab"];
const TAGS: [&str; 10] =
    ["v1.0.0", "v1", "latest", "main", "V_1.x", "-v1", ".v1", "v1.0.0-rc.1", "v1.0.0+x", ""];

pub(crate) fn case(rng: &mut Rng) -> Case {
    let mut source = source(rng);
    let is_dependency = rng.permille(300);
    if !is_dependency || rng.permille(50) {
        source.push_str(&version(rng));
    }
    if rng.permille(50) {
        mutate(rng, &mut source);
    }
    let answer = if is_dependency { dependency(&source) } else { reference(&source) };
    let question = json!({"text": source, "dependency": is_dependency});
    (question, vec![answer.map_or_else(|| "invalid".to_owned(), |answer| answer.to_string())])
}

fn source(rng: &mut Rng) -> String {
    // The last four are hosts to one side at most.
    let known = if rng.permille(150) { HOSTS.len() } else { HOSTS.len() - 4 };
    let host = HOSTS[rng.index(known)];
    let mut text = if rng.permille(40) { String::new() } else { format!("{host}/") };
    let parts: Vec<&str> = (0..=rng.index(3)).map(|_| *rng.pick(&PARTS)).collect();
    text.push_str(&parts.join("/"));
    text
}

fn version(rng: &mut Rng) -> String {
    match rng.below(10) {
        0 => format!("@{}", digest(rng)),
        1 => format!(":{}@{}", rng.pick(&TAGS), digest(rng)),
        2 if rng.permille(300) => String::new(),
        _ => format!(":{}", rng.pick(&TAGS)),
    }
}

fn reference(text: &str) -> Option<Value> {
    let reference = Reference::parse(text).ok()?;
    Some(json!({"source": reference.source(), "version": reference.identifier()}))
}

fn dependency(text: &str) -> Option<Value> {
    let source = Reference::parse_source(text).ok()?;
    let package = source.at_version("v1.0.0").ok()?;
    Some(json!({"name": source.package_name(), "package": package.to_string()}))
}
