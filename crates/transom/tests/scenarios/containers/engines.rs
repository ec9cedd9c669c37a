//! OCI runtimes that do not work.

use super::*;
use std::os::unix::fs::PermissionsExt;

/// A directory with a program that is named as an OCI runtime, and fails.
fn broken_runc() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("runc");
    std::fs::write(&program, "#!/bin/sh\necho cannot mount anything here >&2\nexit 7\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

/// A plane that finds the broken OCI runtime before any other, with a function.
async fn with_broken_runc(dir: &Path, choice: &str, registry: &Registry) -> (User, String) {
    let program = ["/usr/bin/transom", "function", "serve", "function-dummy"];
    let digest = registry.push_function(&format!("acme/{PACKAGED}:v1"), server(), &program, "A=b");
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap_or_default());
    let user = User::without_functions(&["--container-runtime", choice], &[("PATH", &path)]).await;
    user.apply(&install_function(PACKAGED, &registry.at(&format!("acme/{PACKAGED}:v1")))).await;
    (user, revision_of(PACKAGED, &digest))
}

const PROBLEM: &str = "the OCI runtime ended with exit code 7; it printed last: cannot mount anything here";

/// The choice `auto` means: whatever works.
#[tokio::test(flavor = "multi_thread")]
async fn an_oci_runtime_that_was_found_and_does_not_work_is_replaced_by_namespaces_without_one() {
    let (registry, dir) = (Registry::start().await, broken_runc());
    let (user, _) = with_broken_runc(dir.path(), "auto", &registry).await;
    user.until_true(FUNCTION, PACKAGED, "Healthy").await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("things", "Thing", &json!({}), &[(PACKAGED, one_map("Thing", "packaged").1)]))
        .await;
    user.apply(&object("Thing", "one", "coolField: a")).await;
    user.until_ready(THING, "one").await;
    let log = user.home.log();
    let warned = log.lines().find(|line| line.contains("falling back to namespaces without one"));
    assert!(warned.is_some_and(|line| line.contains("WARN") && line.contains(PROBLEM)), "{log}");
}

/// One that was chosen is not replaced: isolation is not weaker than what was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn an_oci_runtime_that_was_chosen_and_does_not_work_is_named() {
    let (registry, dir) = (Registry::start().await, broken_runc());
    let (user, revision) = with_broken_runc(dir.path(), "runc", &registry).await;
    let is_named = |revision: &Value| {
        message_of_runtime(revision)
            .contains(&format!("the container cannot be started with runc: {PROBLEM}"))
    };
    let revision = user.until(FUNCTION_REVISION, &revision, is_named).await;
    assert_eq!(status_of(&revision, "RuntimeHealthy"), "False");
    assert!(!user.home.log().contains("falling back"), "{}", user.home.log());
}
