//! `transom bench` measures what it says, and what must be nothing is nothing.

use serde_json::Value;
use std::process::Command;

#[test]
fn a_small_plane_is_measured() {
    let run = Command::new(env!("CARGO_BIN_EXE_transom"))
        .args(["bench", "plane", "--scale", "0.02", "--idle", "1", "--large", "40", "--output", "json"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let figures: Value = serde_json::from_slice(&run.stdout).unwrap();
    let value = |name: &str| {
        let figure = figures.as_array().unwrap().iter().find(|f| f["name"] == name);
        figure.unwrap_or_else(|| panic!("there is no {name:?} in {figures}"))["value"].as_f64().unwrap()
    };
    for name in [
        "start to first ready composite resource",
        "create to ready, one at a time, median",
        "writes for each, events included",
        "drift to reverted, median",
        "burst of 1,000, ready in a second",
        "memory, 1,400 composite resources",
        "cost of a reconcile among many",
        "restart to everything reconciled",
    ] {
        assert!(value(name) > 0.0, "{name}: {figures}");
    }
    assert!(value("idle, writes in a minute").abs() < f64::EPSILON, "{figures}");
    assert!(value("restart, writes").abs() < f64::EPSILON, "{figures}");
}

#[test]
fn large_compositions_are_measured() {
    let run = Command::new(env!("CARGO_BIN_EXE_transom"))
        .args(["bench", "large", "--composites", "2", "--resources", "30", "--output", "json"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let figures: Value = serde_json::from_slice(&run.stdout).unwrap();
    let figures = figures.as_array().unwrap();
    assert_eq!(figures.len(), 10, "{figures:#?}");
    for figure in figures {
        assert!(figure["value"].as_f64().is_some_and(|value| value > 0.0), "{figure}");
    }
}
