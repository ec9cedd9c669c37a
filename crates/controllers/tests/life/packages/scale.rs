//! Many packages, long texts, and controllers without rights.

use super::*;
use crate::life::basics::{COMPOSITION, XRD, composition, definition};
use transom_apiserver::{Attributes, Authorizer, Decision, async_trait};

/// How many Configurations are installed, unless the environment says otherwise.
const CONFIGURATIONS: usize = 200;

/// What it took to install a package: requests to the API server and to the registry.
#[derive(Debug)]
struct Cost {
    writes: usize,
    reads: usize,
    asked: usize,
}

async fn cost_of_one(plane: &Plane, name: &str) -> Cost {
    plane.until_idle().await;
    plane.take_reads();
    plane.registry.take_requests();
    let writes = plane.log().len();
    plane.apply(&install(name, &format!("r.io/acme/{name}:v1.0.0"))).await;
    plane.until(CONFIGURATION, name, is_healthy).await;
    plane.until_idle().await;
    let (reads, asked) = (plane.take_reads().len(), plane.registry.take_requests().len());
    Cost { writes: plane.log().len() - writes, reads, asked }
}

#[tokio::test]
async fn one_more_package_costs_the_same_however_many_there_are() {
    let count = std::env::var("TRANSOM_PACKAGES").ok().and_then(|count| count.parse().ok());
    let count: usize = count.unwrap_or(CONFIGURATIONS);
    let plane = Plane::new().await;
    let depends = depends_on(&[("r.io/acme/base", ">=v1.0.0")]);
    let push = |name: &str, spec: &str| {
        let package = configuration(name, spec, &[composition(name, &["sizer"])]);
        plane.registry.push(&format!("r.io/acme/{name}:v1.0.0"), &package);
    };
    push("base", "");
    push("first", &depends);
    push("last", &depends);
    plane.apply(&install("base", "r.io/acme/base:v1.0.0")).await;
    plane.until(CONFIGURATION, "base", is_healthy).await;
    let first = cost_of_one(&plane, "first").await;
    let started = std::time::Instant::now();
    for n in 0..count {
        let name = format!("c{n}");
        push(&name, &depends);
        plane.apply(&install(&name, &format!("r.io/acme/{name}:v1.0.0"))).await;
    }
    for n in 0..count {
        plane.until(CONFIGURATION, &format!("c{n}"), is_healthy).await;
    }
    let asked = plane.registry.take_requests().len();
    println!("{count} packages in {:?}, {asked} requests to the registry", started.elapsed());
    // The tag, the content for the package, and again for the revision; sometimes once more after a conflict.
    assert!(asked <= 3 * count + count / 10 + 5, "{asked}");
    let last = cost_of_one(&plane, "last").await;
    println!("{first:?}, then {last:?}");
    assert!(last.writes <= first.writes + 1, "{first:?} {last:?}");
    assert!(last.reads <= first.reads + 5, "{first:?} {last:?}");
    assert_eq!(last.asked, first.asked);
    let lock = plane.get(LOCK, "lock").await.unwrap();
    assert_eq!(lock["packages"].as_array().map(Vec::len), Some(count + 3));
}

#[tokio::test]
async fn a_source_that_failed_is_left_alone_for_a_while_when_other_packages_are_installed() {
    let plane = Plane::new().await;
    let depends = depends_on(&[("r.io/acme/late", ">=v1.0.0")]);
    let push = |name: &str, spec: &str| {
        let package = configuration(name, spec, &[composition(name, &["sizer"])]);
        plane.registry.push(&format!("r.io/acme/{name}:v1.0.0"), &package);
    };
    push("waiting", &depends);
    let started = std::time::Instant::now();
    plane.apply(&install("waiting", "r.io/acme/waiting:v1.0.0")).await;
    plane.until(LOCK, "lock", |l| status_of(l, "Resolved") == "False").await;
    for n in 0..20 {
        let name = format!("other{n}");
        push(&name, "");
        plane.apply(&install(&name, &format!("r.io/acme/{name}:v1.0.0"))).await;
        plane.until(CONFIGURATION, &name, is_healthy).await;
    }
    plane.until_idle().await;
    let asked = plane.registry.take_requests();
    let tags = asked.iter().filter(|request| *request == "tags r.io/acme/late").count();
    // After 1, 2, 4, 8 … seconds.
    let most = 3 + (started.elapsed().as_secs() / 2).min(6) as usize;
    assert!(tags <= most, "{tags} in {:?}", started.elapsed());
    // It is found soon after it was pushed.
    push("late", "");
    plane.after(std::time::Duration::from_secs(61)).await;
    plane.until(CONFIGURATION, "waiting", is_healthy).await;
    plane.until_true(LOCK, "lock", "Resolved").await;
}

#[tokio::test]
async fn long_texts_of_a_package_do_not_make_long_messages() {
    let plane = Plane::new().await;
    let long = "x".repeat(200_000);
    let unknown = format!("apiVersion: v1\nkind: {long}\n");
    plane.registry.push("r.io/acme/kind:v1.0.0", &configuration("a", "", &[unknown]));
    let version = format!("  crossplane: {{version: '{long}'}}\n");
    plane.registry.push("r.io/acme/core:v1.0.0", &configuration("b", &version, &[]));
    let named = composition("short", &["sizer"]).replace("short", &long);
    plane.registry.push("r.io/acme/name:v1.0.0", &configuration("c", "", &[named]));
    for name in ["kind", "core", "name"] {
        plane.apply(&install(name, &format!("r.io/acme/{name}:v1.0.0"))).await;
        let package = plane.until(CONFIGURATION, name, |p| message_of(p, "Healthy").contains("xxx")).await;
        let message = message_of(&package, "Healthy");
        assert!(message.len() < 9_000, "{name}: {} bytes", message.len());
        assert!(message.contains("more bytes)"), "{name}: {message}");
    }
    for event in plane.list("v1/Event").await {
        let message = event["message"].as_str().unwrap_or_default();
        assert!(message.len() < 9_000, "{} bytes", message.len());
    }
}

/// Does not let the controllers write Compositions.
struct NoCompositions;

#[async_trait]
impl Authorizer for NoCompositions {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let write = !matches!(attributes.verb, "get" | "list" | "watch");
        let controllers = attributes.user.user == "crossplane";
        Decision::of(!(controllers && write && attributes.resource == "compositions"))
    }
}

#[tokio::test]
async fn controllers_without_a_right_establish_nothing_and_name_it() {
    let mut plane = Plane::guarded(Box::new(NoCompositions)).await;
    plane.start().await;
    let package = configuration("p", "", &[definition("Cluster", false), composition("things", &["sizer"])]);
    plane.registry.push("r.io/acme/p:v1.0.0", &package);
    plane.apply(&install("p", "r.io/acme/p:v1.0.0")).await;
    let package = plane.until(CONFIGURATION, "p", |p| message_of(p, "Healthy").contains("things")).await;
    let message = message_of(&package, "Healthy");
    assert!(message.contains("cannot establish control of Composition \"things\""), "{message}");
    assert!(message.contains("compositions.apiextensions.crossplane.io"), "{message}");
    assert!(plane.get(XRD, "xthings.example.org").await.is_none(), "nothing is established");
    assert!(plane.get(COMPOSITION, "things").await.is_none());
}
