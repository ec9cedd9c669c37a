//! Functions that run from their packages, in namespaces without an OCI runtime: that needs nothing but Linux. `conformance/runtimes` does the
//! same with OCI runtimes, genuine functions, a real registry, and a hostile function.

mod engines;
mod killed;
mod limits;
mod page;
mod planned;
mod printed;
mod terminal;
mod upgraded;

use super::packages::{FUNCTION, Registry, revision_of};
use super::user::*;
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use transom_oci::testing::images::{image, package_layer, tar_of_mode};
use transom_packages::Digest;
use transom_testkit::process::{WAIT_LIMIT, transom};

pub(super) const CHROOT: [&str; 2] = ["--container-runtime", "chroot"];
const PACKAGED: &str = "function-packaged";
pub(super) const MESSAGE: &str = "runs in a container on this machine";

/// A layer with programs, each at its own path or the one that is given, and the libraries that they are linked with.
fn programs(paths: &[(&str, &str)]) -> Vec<u8> {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let read = |path: &str| std::fs::read(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    for (path, inside) in paths {
        files.insert((*inside).to_owned(), read(path));
        let linked = Command::new("ldd").arg(path).output().expect("ldd runs");
        let linked = String::from_utf8_lossy(&linked.stdout).into_owned();
        for library in linked.split_whitespace().filter(|word| word.starts_with('/')) {
            files.entry(library.to_owned()).or_insert_with(|| read(library));
        }
    }
    let entries: Vec<(&str, u8, &[u8])> =
        files.iter().map(|(path, bytes)| (path.trim_start_matches('/'), b'0', bytes.as_slice())).collect();
    tar_of_mode(0o755, &entries)
}

/// The built-in functions as a program of an image.
fn server() -> &'static Vec<u8> {
    static LAYER: OnceLock<Vec<u8>> = OnceLock::new();
    LAYER.get_or_init(|| programs(&[(env!("CARGO_BIN_EXE_transom"), "/usr/bin/transom")]))
}

pub(super) fn shell() -> Vec<u8> {
    programs(&[("/bin/sh", "/bin/sh"), ("/bin/sleep", "/bin/sleep")])
}

impl Registry {
    /// Pushes the package of a Function with a program.
    fn push_function(&self, at: &str, layer: &[u8], program: &[&str], variable: &str) -> Digest {
        let name = at.rsplit_once(':').and_then(|(path, _)| path.rsplit('/').next()).expect("a name");
        let package =
            format!("apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata: {{name: {name}}}\n");
        self.push_program(at, &package, layer, program, variable)
    }

    /// Pushes a package with a program.
    pub(super) fn push_program(
        &self,
        at: &str,
        package: &str,
        layer: &[u8],
        program: &[&str],
        variable: &str,
    ) -> Digest {
        let (repository, tag) = at.rsplit_once(':').expect("a tag");
        let config = json!({"config": {"Entrypoint": program, "Env": [variable]}}).to_string();
        self.0.push(repository, tag, &image(&config, &[package_layer(package), layer.to_vec()], true))
    }

    /// Pushes a Function whose image runs a script.
    fn push_script(&self, name: &str, script: &str) -> Digest {
        self.push_function(&format!("acme/{name}:v1"), &shell(), &["/bin/sh", "-c", script, name], "A=b")
    }
}

fn install_function(name: &str, package: &str) -> String {
    format!(
        "apiVersion: pkg.crossplane.io/v1\nkind: Function\nmetadata: {{name: {name}}}\nspec: {{package: '{package}'}}\n"
    )
}

/// The processes below a process, by id, with their command lines.
pub(super) fn below(root: u32) -> BTreeMap<u32, String> {
    let mut parents = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name in brackets may have spaces.
        let after = stat.rsplit_once(") ").map(|(_, after)| after).unwrap_or_default();
        if let Some(parent) = after.split(' ').nth(1).and_then(|parent| parent.parse::<u32>().ok()) {
            parents.insert(id, parent);
        }
    }
    let is_below = |id: &u32| {
        std::iter::successors(Some(*id), |id| parents.get(id).copied()).skip(1).any(|id| id == root)
    };
    let line = |id: &u32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    };
    parents.keys().filter(|id| is_below(id)).map(|id| (*id, line(id))).collect()
}

/// Waits until a condition is true.
pub(super) async fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < WAIT_LIMIT, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The names in a directory of the plane's containers.
pub(super) fn names(user: &User, folder: &str) -> BTreeSet<String> {
    let folder = user.home.data().join("containers").join(folder);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn logs(user: &User, name: &str) -> String {
    logs_of(user, "function", name)
}

pub(super) fn logs_of(user: &User, kind: &str, name: &str) -> String {
    let data = user.home.data();
    let output = transom(&[kind, "logs", name, "--data-dir", data.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn message_of_runtime(revision: &Value) -> String {
    message_of(revision, "RuntimeHealthy").to_owned()
}

/// A user with a Function that runs from its package, and with two versions of it in a registry.
async fn with_packaged(registry: &Registry) -> (User, [Digest; 2]) {
    let program = ["/usr/bin/transom", "function", "serve", "function-dummy"];
    let push = |version: &str| {
        registry.push_function(
            &format!("acme/{PACKAGED}:{version}"),
            server(),
            &program,
            &format!("VERSION={version}"),
        )
    };
    let digests = [push("v1"), push("v2")];
    let user = User::of_packages(&CHROOT).await;
    user.apply(&install_function(PACKAGED, &registry.at(&format!("acme/{PACKAGED}:v1")))).await;
    user.until_true(FUNCTION, PACKAGED, "Healthy").await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("things", "Thing", &json!({}), &[(PACKAGED, one_map("Thing", "packaged").1)]))
        .await;
    user.apply(&object("Thing", "one", "coolField: a")).await;
    user.until_ready(THING, "one").await;
    (user, digests)
}

/// The composite resources, without what remains of a condition that was reported meanwhile: that a function, which was being
/// started, took long to respond.
async fn lasting(user: &User) -> Vec<Value> {
    let mut things = user.list(THING).await;
    for thing in &mut things {
        for field in ["resourceVersion", "managedFields"] {
            thing["metadata"][field].take();
        }
        for condition in thing["status"]["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastTransitionTime"].take();
        }
    }
    things
}

async fn until_things_are(user: &User, wanted: &[Value], at: &str) {
    let what = format!("{at}: composite resources are as they were");
    transom_testkit::process::wait_until(&what, async || lasting(user).await == wanted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_runs_from_its_package_and_leaves_nothing_when_the_plane_is_killed() {
    let registry = Registry::start().await;
    let (mut user, [first, _]) = with_packaged(&registry).await;
    let name = revision_of(PACKAGED, &first);
    let revision = user.until_true(FUNCTION_REVISION, &name, "RuntimeHealthy").await;
    assert_eq!(revision["status"]["endpoint"], format!("container:{name}"));
    assert_eq!(message_of_runtime(&revision), MESSAGE);
    // The same container serves the next reconcile.
    user.apply(&object("Thing", "two", "coolField: b")).await;
    user.until_ready(THING, "two").await;
    user.until_idle().await;
    let containers = below(user.plane.pid());
    assert_eq!(containers.len(), 3, "{containers:?}");
    let pulls = |requests: Vec<String>| requests.iter().filter(|r| r.contains("/blobs/")).count();
    assert!(pulls(registry.take_requests()) > 0);
    let things = lasting(&user).await;
    user.restart(&CHROOT).await;
    until("nothing of the killed plane runs", || {
        containers.keys().all(|id| !Path::new(&format!("/proc/{id}")).exists())
    })
    .await;
    user.until_true(FUNCTION_REVISION, &name, "RuntimeHealthy").await;
    until("the container runs again", || below(user.plane.pid()).len() == 3).await;
    assert_eq!(names(&user, "run").len(), 1, "that of this process");
    user.until_idle().await;
    until_things_are(&user, &things, "after the restart").await;
    assert_eq!(pulls(registry.take_requests()), 0, "the image is here");
    user.apply(&object("Thing", "three", "coolField: c")).await;
    user.until_ready(THING, "three").await;
    // A plane that is asked to end leaves nothing, either.
    let containers = below(user.plane.pid());
    user.plane.signal(rustix::process::Signal::TERM);
    assert!(user.plane.ended_within(WAIT_LIMIT).await.is_some_and(|status| status.success()));
    assert!(containers.keys().all(|id| !Path::new(&format!("/proc/{id}")).exists()), "{containers:?}");
    assert_eq!(names(&user, "run"), BTreeSet::new());
}

/// A program that ends is reported, started again, and called again.
#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_ends_is_started_again() {
    let registry = Registry::start().await;
    let (user, [first, _]) = with_packaged(&registry).await;
    let revision = revision_of(PACKAGED, &first);
    let program = |user: &User| {
        let serves = |(_, line): &(u32, String)| line.contains("function serve function-dummy");
        below(user.plane.pid()).into_iter().find(serves).map(|(id, _)| id)
    };
    let before = program(&user).expect("it runs");
    // Until the Function says so as well, which takes a moment in which the program may already run again.
    transom_testkit::process::wait_until("the Function is unhealthy", async || {
        if let Some(id) = program(&user).and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            // It may have ended since.
            let _ = rustix::process::kill_process(id, Signal::KILL);
        }
        let function = user.get(FUNCTION, PACKAGED).await.expect("it is there");
        status_of(&function, "Healthy") == "False"
            && message_of(&function, "Healthy").contains("was killed (signal 9)")
    })
    .await;
    user.until_true(FUNCTION_REVISION, &revision, "RuntimeHealthy").await;
    user.until_true(FUNCTION, PACKAGED, "Healthy").await;
    assert_ne!(program(&user).expect("it runs again"), before);
    user.apply(&object("Thing", "two", "coolField: b")).await;
    user.until_ready(THING, "two").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_takes_over_when_it_runs() {
    let registry = Registry::start().await;
    let (user, [first, second]) = with_packaged(&registry).await;
    let before = below(user.plane.pid());
    let v2 = registry.at(&format!("acme/{PACKAGED}:v2"));
    user.patch(FUNCTION, PACKAGED, json!({"spec": {"package": v2}})).await;
    user.until_true(FUNCTION_REVISION, &revision_of(PACKAGED, &second), "RuntimeHealthy").await;
    user.until_true(FUNCTION, PACKAGED, "Healthy").await;
    user.apply(&object("Thing", "two", "coolField: b")).await;
    user.until_ready(THING, "two").await;
    until("the container of the first version ends", || {
        before.keys().all(|id| !Path::new(&format!("/proc/{id}")).exists())
    })
    .await;
    assert_eq!(below(user.plane.pid()).len(), 3);
    assert_eq!(names(&user, "images").len(), 2);
    let old = user.get(FUNCTION_REVISION, &revision_of(PACKAGED, &first)).await.expect("it is kept");
    assert_eq!(status_of(&old, "RuntimeHealthy"), "Unknown");
    user.delete(FUNCTION, PACKAGED, None).await;
    until("the container ends with its Function", || below(user.plane.pid()).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_does_not_work_says_why() {
    let registry = Registry::start().await;
    let crash = registry.push_script("function-crash", "echo out of order >&2; exit 3");
    let silent = registry.push_script("function-silent", "sleep 1000");
    let stubborn =
        registry.push_script("function-stubborn", "trap '' TERM; echo begun; while :; do sleep 1; done");
    let lost = registry.push_function("acme/function-lost:v1", &shell(), &["/nowhere"], "A=b");
    let empty = registry.push_function("acme/function-empty:v1", &shell(), &[], "A=b");
    let user = User::of_packages(&CHROOT).await;
    for (name, digest, words) in [
        ("function-crash", crash, "ended with exit code 3; it printed last: out of order"),
        ("function-silent", silent, "does not accept connections on port 9443"),
        ("function-stubborn", stubborn, "does not accept connections on port 9443"),
        ("function-lost", lost, "cannot run \"/nowhere\", which the image names as its program"),
        ("function-empty", empty, "has no program to run"),
    ] {
        user.apply(&install_function(name, &registry.at(&format!("acme/{name}:v1")))).await;
        let said = |revision: &Value| message_of_runtime(revision).contains(words);
        let revision = user.until(FUNCTION_REVISION, &revision_of(name, &digest), said).await;
        assert_eq!(status_of(&revision, "RuntimeHealthy"), "False", "{name}");
        user.until(FUNCTION, name, |function| message_of(function, "Healthy").contains(words)).await;
    }
    until("it is started again", || logs(&user, "function-crash").matches("out of order").count() > 1).await;
    let is_stubborn =
        |user: &User| below(user.plane.pid()).values().any(|line| line.contains("function-stubborn"));
    assert!(is_stubborn(&user), "{:?}", below(user.plane.pid()));
    user.delete(FUNCTION, "function-stubborn", None).await;
    until("who ignores SIGTERM is killed", || !is_stubborn(&user)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_must_not_be_pulled_runs_once_it_may_be() {
    let registry = Registry::start().await;
    let digest = registry.push_script("function-kept", "while :; do sleep 1000; done");
    // The package is read and kept, and nothing of its image is unpacked.
    let mut user = User::of_packages(&["--container-runtime", "none"]).await;
    user.apply(&install_function("function-kept", &registry.at("acme/function-kept:v1"))).await;
    let name = revision_of("function-kept", &digest);
    user.until_true(FUNCTION_REVISION, &name, "RevisionHealthy").await;
    let policy = |policy: &str| json!({"spec": {"packagePullPolicy": policy}});
    user.patch(FUNCTION, "function-kept", policy("Never")).await;
    user.until(FUNCTION_REVISION, &name, |r| r["spec"]["packagePullPolicy"] == "Never").await;
    registry.take_requests();
    user.restart(&CHROOT).await;
    let words = "not unpacked on this machine, and spec.packagePullPolicy is Never; set it to IfNotPresent";
    user.until(FUNCTION_REVISION, &name, |r| message_of_runtime(r).contains(words)).await;
    user.until(FUNCTION, "function-kept", |f| message_of(f, "Healthy").contains(words)).await;
    assert_eq!(registry.take_requests(), [""; 0]);
    user.patch(FUNCTION, "function-kept", policy("IfNotPresent")).await;
    let started = "does not accept connections on port 9443";
    user.until(FUNCTION_REVISION, &name, |r| message_of_runtime(r).contains(started)).await;
    assert!(registry.take_requests().iter().any(|request| request.contains("/blobs/")));
    // What is unpacked may be run.
    user.patch(FUNCTION, "function-kept", policy("Never")).await;
    user.restart(&CHROOT).await;
    user.until(FUNCTION_REVISION, &name, |r| message_of_runtime(r).contains(started)).await;
    assert_eq!(registry.take_requests(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_runtime_the_reason_and_the_remedy_are_named() {
    let registry = Registry::start().await;
    let digest = registry.push_script("function-crash", "exit 0");
    let user = User::of_packages(&["--container-runtime", "none"]).await;
    user.apply(&install_function("function-crash", &registry.at("acme/function-crash:v1"))).await;
    let words = "because --container-runtime is none; choose another one";
    let revision = revision_of("function-crash", &digest);
    user.until(FUNCTION_REVISION, &revision, |revision| message_of_runtime(revision).contains(words)).await;
    let output =
        transom(&["function", "logs", "function-crash", "--data-dir", user.home.data().to_str().unwrap()]);
    let output = { output }.output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("there is no log of Function \"function-crash\"")
    );
}

/// `transom render` runs the package, too, and leaves nothing running.
#[tokio::test(flavor = "multi_thread")]
async fn render_runs_a_function_from_its_package() {
    let registry = Registry::start().await;
    let program = ["/usr/bin/transom", "function", "serve", "function-dummy"];
    registry.push_function(&format!("acme/{PACKAGED}:v1"), server(), &program, "A=b");
    registry.push_script("function-crash", "echo out of order; exit 3");
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("xr.yaml", &object("Thing", "one", "coolField: a"));
    write(
        "composition.yaml",
        &composition("things", "Thing", &json!({}), &[(PACKAGED, one_map("Thing", "packaged").1)]),
    );
    let render = |package: &str| {
        write("functions.yaml", &install_function(PACKAGED, &registry.at(package)));
        let mut command = transom(&[
            "render",
            "xr.yaml",
            "composition.yaml",
            "functions.yaml",
            "--container-runtime",
            "chroot",
        ]);
        command.args(["--cache-dir", "cache"]).current_dir(dir.path());
        command
    };
    for _ in 0..2 {
        let mut command = render(&format!("acme/{PACKAGED}:v1"));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{stderr}");
        assert!(stdout.contains("says: packaged"), "{stdout}");
        let left = std::fs::read_dir(dir.path().join("cache/containers/run")).unwrap().count();
        assert_eq!(left, 0, "nothing is left but the image");
    }
    let mut command = render("acme/function-crash:v1");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("exit code 3"), "{stderr}");
    assert!(stderr.contains("out of order"), "{stderr}");
}
