//! What the probes say of the store.

use crate::client::{Client, config_map};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use transom_store::Store;
use transom_store::testing::{Faults, HostileDisk};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn on_a_bad_disk() -> (tempfile::TempDir, HostileDisk, Store, Client) {
    let (dir, disk) = (tempfile::tempdir().unwrap(), HostileDisk::default());
    let options =
        transom_store::Options { disk: Arc::new(disk.clone()), ..transom_store::Options::default() };
    let store = Store::open(dir.path(), options).unwrap();
    let client = Client::over(&store).await;
    (dir, disk, store, client)
}

#[tokio::test]
async fn a_server_that_cannot_write_is_alive_and_not_ready_until_it_can() {
    let (_dir, disk, store, client) = on_a_bad_disk().await;
    for round in 0..2 {
        assert_eq!(client.get("/readyz").await.expect(200).text(), "ok");
        disk.set(Faults { space: Some(0), ..Faults::default() });
        client.post(CONFIG_MAPS, &config_map(&format!("c{round}"))).await.expect(500);
        let ready = client.get("/readyz?verbose").await.expect(500).text();
        let said = ready.lines().find(|line| line.contains("store")).unwrap();
        assert!(said.starts_with("[-]store failed: writes are refused: "), "{ready}");
        assert!(said.contains("no space left on device"), "{ready}");
        assert!(client.get("/readyz/store").await.expect(500).text().contains("no space left"));
        for path in ["/livez", "/healthz", "/livez/store", "/readyz?exclude=store"] {
            client.get(path).await.expect(200);
        }
        client.get(&format!("{CONFIG_MAPS}/kube-root-ca.crt")).await.expect(404);
        disk.set(Faults::default());
        let mut refusing = store.refusing();
        let recovered = refusing.wait_for(Option::is_none);
        tokio::time::timeout(Duration::from_secs(60), recovered).await.unwrap().unwrap();
        let ready = client.get("/readyz?verbose").await.expect(200).text();
        assert!(ready.lines().any(|line| line == "[+]store ok"), "{ready}");
        client.post(CONFIG_MAPS, &config_map(&format!("c{round}"))).await.expect(201);
    }
}

#[tokio::test]
async fn a_server_whose_store_failed_for_good_is_not_alive() {
    let (_dir, disk, _store, client) = on_a_bad_disk().await;
    client.get("/livez/store").await.expect(200);
    disk.set(Faults { sync: Some(ErrorKind::Other), ..Faults::default() });
    client.post(CONFIG_MAPS, &config_map("lost")).await.expect(500);
    // The disk recovers, the store does not: what it holds is not known.
    disk.set(Faults::default());
    for path in ["/livez", "/healthz", "/readyz", "/livez?verbose"] {
        let said = client.get(path).await.expect(500).text();
        assert!(said.contains("[-]store failed: writing to disk failed"), "{path}: {said}");
    }
    client.get("/livez/store").await.expect(500);
    client.get("/livez/ping").await.expect(200);
}
