//! `transom db backup` of a plane that runs, and a plane from the backup.

use super::{CONFIG_MAPS, config_map};
use std::process::Output;
use transom_testkit::process::{Client, Home, Plane, transom};

const GUIDE: &str = include_str!("../../../../docs/backup.md");

fn db(args: &[&str]) -> Output {
    transom(&["db"]).args(args).output().expect("the binary runs")
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn a_running_plane_is_backed_up_and_restored_with_its_credentials() {
    let home = Home::new();
    let plane = Plane::start(&home);
    let client = plane.client().await;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("before")).await.unwrap().status, 201, "before");
    let (data, backup, copy) = (home.data(), home.root().join("backup"), home.root().join("copy"));
    let [data, backup, copy] = [&data, &backup, &copy].map(|path| path.to_str().unwrap());
    let made = db(&["backup", backup, "--data-dir", data]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(client.post(CONFIG_MAPS, &config_map("after")).await.unwrap().status, 201, "after");
    assert!(
        refused(&db(&["backup", backup, "--data-dir", data])).contains("cannot create"),
        "it exists already"
    );
    assert!(refused(&db(&["restore", backup, "--data-dir", data])).contains("has a store already"));

    let restored = db(&["restore", backup, "--data-dir", copy]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    let other = Plane::start_with(&home, &["--data-dir", copy]);
    // The admin's certificate of the original is one of the same authority.
    let mut access = plane.access.clone();
    access.address = other.access.address;
    let old = Client::connect(&access).await.unwrap();
    assert_eq!(old.get(&format!("{CONFIG_MAPS}/before")).await.unwrap().status, 200, "before");
    old.get(&format!("{CONFIG_MAPS}/after")).await.unwrap().assert_status(404, "after");
    assert_eq!(old.post(CONFIG_MAPS, &config_map("more")).await.unwrap().status, 201, "more");
    home.assert_no_panic();
}

/// The commands of docs/backup.md, in a folder that has a plane in `./plane`.
#[tokio::test]
async fn the_guide_makes_a_plane_from_a_backup() {
    let home = Home::new();
    let folder = |name: &str| home.root().join(name).to_str().unwrap().to_owned();
    let plane = Plane::start_with(&home, &["--data-dir", &folder("plane")]);
    let client = plane.client().await;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("kept")).await.unwrap().status, 201, "kept");
    let commands: Vec<Vec<&str>> = GUIDE
        .lines()
        .filter_map(|line| line.strip_prefix("transom db "))
        .map(|line| line.split('#').next().unwrap_or_default().split_whitespace().collect())
        .collect();
    assert_eq!(commands.iter().map(|c| c[0]).collect::<Vec<_>>(), ["backup", "restore"]);
    for command in &commands {
        let output =
            transom(&["db"]).args(command).current_dir(home.root()).output().expect("the binary runs");
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let restored = Plane::start_with(&home, &["--data-dir", &folder("plane2")]);
    assert_eq!(
        restored.client().await.get(&format!("{CONFIG_MAPS}/kept")).await.unwrap().status,
        200,
        "kept"
    );
    home.assert_no_panic();
}

#[tokio::test]
async fn a_backup_that_was_changed_is_not_restored() {
    let home = Home::new();
    let plane = Plane::start(&home);
    let (data, backup, copy) = (home.data(), home.root().join("backup"), home.root().join("copy"));
    let (data, target) = (data.to_str().unwrap(), copy.to_str().unwrap());
    assert!(db(&["backup", backup.to_str().unwrap(), "--data-dir", data]).status.success());
    drop(plane);
    let key = backup.join("pki/tokens.key");
    let mut bytes = std::fs::read(&key).unwrap();
    bytes[0] ^= 1;
    std::fs::write(&key, bytes).unwrap();
    let why = refused(&db(&["restore", backup.to_str().unwrap(), "--data-dir", target]));
    assert!(why.contains("pki/tokens.key is not what was backed up"), "{why}");
    std::fs::remove_file(&key).unwrap();
    let why = refused(&db(&["restore", backup.to_str().unwrap(), "--data-dir", target]));
    assert!(why.contains("pki/tokens.key is missing"), "{why}");
    assert!(!copy.exists(), "nothing was restored");
    assert!(
        refused(&db(&["backup", target, "--data-dir", home.root().to_str().unwrap()]))
            .contains("cannot back up")
    );
}
