//! A platform at rest: a thousand composite resources that are ready cost nothing but their watches.

use crate::simulation::ledger::sort_of;
use crate::simulation::model::{Model, Wanted};
use crate::simulation::plane::Plane;
use crate::simulation::platform::{CLAIMS, Sort, Spec};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;
use transom_store::Key;
use transom_testkit::rng::Rng;

/// Composite resources, a tenth of which are claimed.
const COUNT: usize = 1000;

fn place(index: usize) -> Key {
    match index % 10 {
        0 => Key::new(CLAIMS, "one", &format!("c{index}")),
        1..4 => Key::new(Sort::Thing.resource(), "", &format!("x{index}")),
        4..7 => Key::new(Sort::App.resource(), "two", &format!("a{index}")),
        _ => Key::new(Sort::Zone.resource(), "", &format!("z{index}")),
    }
}

#[test]
fn a_thousand_that_are_ready_write_nothing_in_ten_minutes() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let plane = Plane::new(&mut Rng::new(1), 1_000_000).await;
        let mut model = Model::default();
        for index in 0..COUNT {
            let key = place(index);
            let kind = sort_of(&key.resource).map_or("Thing", Sort::kind);
            let spec = Spec {
                count: 1,
                value: index as u64,
                config: None,
                fixed: false,
                nested: false,
                secret: false,
            };
            let mut object = json!({
                "apiVersion": "sim.example.org/v1", "kind": kind,
                "metadata": {"name": &*key.object.name}, "spec": spec.fields(),
            });
            transom_object::meta::set_namespace(&mut object, &key.object.namespace);
            plane.apply(&object).await;
            model.roots.insert(key, Wanted { spec, paused: false });
        }
        let compare_with_model = || {
            let mut ledger = plane.wire.ledger();
            ledger.follow();
            assert_eq!(ledger.violation, None);
            model.compare(&ledger)
        };
        for _ in 0..100 {
            if compare_with_model().is_ok() {
                break;
            }
            sleep(Duration::from_secs(5)).await;
        }
        compare_with_model().unwrap();
        // What lost a race may still be tried again.
        sleep(Duration::from_secs(70)).await;
        let before = plane.wire.counts();
        sleep(Duration::from_secs(600)).await;
        assert_eq!(plane.wire.counts(), before, "{:#?}", plane.wire.trace());
        compare_with_model().unwrap();
    });
}
