//! The migration of stored objects is killed at every durable write of it, and the next process finishes it.

use super::{BUCKETS, NEW, both, bucket, only_new};
use crate::scenarios::user::*;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;
use transom_object::meta;
use transom_testkit::process::{Client, Home, Plane, WAIT_LIMIT, up};

const OBJECTS: usize = 5;
const DEFINITION: &str =
    "/apis/apiextensions.crossplane.io/v2/compositeresourcedefinitions/buckets.example.org";
/// Runs at the same time; some of them are always waiting.
const LANES: usize = 4;

/// A plane whose objects are stored in the old version, which was stopped.
async fn stored_in_the_old_version() -> User {
    let mut user = User::without_functions(&[], &[]).await;
    user.apply(&both("v1alpha1").to_string()).await;
    user.until_converted("v1").await;
    user.until_true(XRD, BUCKETS, "Established").await;
    for i in 0..OBJECTS {
        let spec = json!({"sizeGi": i + 1, "region": "r", "fast": true});
        user.apply(&bucket("v1alpha1", &format!("b{i}"), &spec)).await;
    }
    user.until_idle().await;
    user.plane.kill();
    user
}

/// A process that dies at its n-th durable write, while the definition asks for the new version. Whether it did die.
async fn dies_at(home: &Home, n: usize) -> bool {
    let mut command = up(home, &["--with-controllers"]);
    command.env("TRANSOM_DIE_AT", format!("durable:{n}"));
    let launched = tokio::task::block_in_place(|| Plane::launch(home, &mut command));
    let must_be_killed = |status: ExitStatus| {
        assert_eq!(status.signal(), Some(9), "durable:{n}: it ended otherwise: {}", home.log());
    };
    let mut plane = match launched {
        Ok(plane) => plane,
        Err(refused) => {
            must_be_killed(refused.status);
            return true;
        }
    };
    let wanted = both("v1").to_string();
    let limit = tokio::time::Instant::now() + WAIT_LIMIT;
    while tokio::time::Instant::now() < limit {
        if let Some(status) = plane.ended_within(Duration::from_millis(5)).await {
            must_be_killed(status);
            return true;
        }
        if is_migrated(&plane, &wanted).await == Some(true) {
            plane.kill();
            return false;
        }
    }
    panic!("durable:{n}: it neither died nor finished");
}

/// Asks for the new version, and whether everything is stored in it; none if the plane is gone.
async fn is_migrated(plane: &Plane, wanted: &str) -> Option<bool> {
    let client = Client::connect(&plane.access).await.ok()?;
    let path = format!("{DEFINITION}?fieldManager=test&force=true");
    let reply = client.patch(&path, "application/apply-patch+yaml", wanted.to_owned()).await.ok()?;
    Some(reply.ok() && has_migrated(&reply.json()))
}

fn has_migrated(xrd: &Value) -> bool {
    status_of(xrd, "StorageMigrated") == "True" && xrd["status"]["storedVersions"] == json!(["v1"])
}

/// One kill, and what the next process makes of it. Whether there was a kill.
async fn killed_once(prepared: &Path, n: usize) -> bool {
    let home = Home::new();
    copy(prepared, &home.data());
    let died = dies_at(&home, n).await;
    let plane = tokio::task::block_in_place(|| Plane::start_with(&home, &["--with-controllers"]));
    let cluster = connect(&home).await;
    let user = User { home, plane, cluster };
    user.apply(&both("v1").to_string()).await;
    user.until_migrated().await;
    // Without the old version nothing converts any more: what is stored in it could not be read.
    user.apply(&only_new().to_string()).await;
    user.until(CRD, BUCKETS, |crd| crd["spec"]["versions"].as_array().unwrap().len() == 1).await;
    let mut sizes: Vec<(String, Value)> =
        user.list(NEW).await.iter().map(|b| (meta::name(b).to_owned(), b["spec"]["size"].clone())).collect();
    sizes.sort_by(|a, b| a.0.cmp(&b.0));
    let expected: Vec<(String, Value)> =
        (0..OBJECTS).map(|i| (format!("b{i}"), json!(format!("{}Gi", i + 1)))).collect();
    assert_eq!(sizes, expected, "durable:{n}");
    died
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_is_killed_at_any_write_is_finished() {
    let prepared = stored_in_the_old_version().await;
    let data = prepared.home.data();
    let mut kills = 0;
    for first in (1..).step_by(LANES) {
        let runs = (first..first + LANES).map(|n| killed_once(&data, n));
        let died = futures_util::future::join_all(runs).await;
        kills += died.iter().filter(|died| **died).count();
        if died.contains(&false) {
            break;
        }
    }
    // At least the definition, each object, and the progress of the migration.
    assert!(kills > OBJECTS + 2, "only {kills} kills");
}
