//! `transom-bench` starts planes of this binary, measures all its figures, and finds no writes where there must be none.

use clap::Parser;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::SystemTime;
use transom_bench::{Bench, Figure};

fn measure(arguments: &[&str]) -> Vec<Figure> {
    let transom = ["transom-bench", "--transom", env!("CARGO_BIN_EXE_transom")];
    let bench = Bench::parse_from(transom.iter().chain(arguments));
    bench.run().unwrap()
}

const SMALL: [&str; 9] = ["plane", "--scale", "0.02", "--pause", "0", "--quiet", "1", "--idle", "1"];

fn value(figures: &[Figure], name: &str) -> f64 {
    let figure = figures.iter().find(|figure| figure.name == name);
    figure.unwrap_or_else(|| panic!("there is no {name:?} in {figures:?}")).value
}

/// What is measured of every plane.
fn assert_measured(figures: &[Figure]) {
    for name in [
        "start to first ready composite resource",
        "memory, one definition",
        "create to ready, one at a time, median",
        "write requests for each, without events",
        "events for each",
        "edit to four parts changed, median",
        "drift to reverted, median",
        "part deleted to re-created, longest",
        "burst, ready in a second",
        "memory, 1,400 composite resources",
    ] {
        assert!(value(figures, name) > 0.0, "{name}: {figures:?}");
    }
    assert!(value(figures, "idle, write requests in a minute").abs() < f64::EPSILON, "{figures:?}");
}

#[test]
fn a_small_plane_is_measured() {
    let figures = measure(&[&SMALL[..], &["--large", "40"]].concat());
    assert_measured(&figures);
    for name in ["cost of a reconcile among many", "restart to everything reconciled"] {
        assert!(value(&figures, name) > 0.0, "{name}: {figures:?}");
    }
    assert!(value(&figures, "restart, writes").abs() < f64::EPSILON, "{figures:?}");
}

#[test]
fn a_plane_that_runs_is_measured() {
    let home = tempfile::tempdir().unwrap();
    let mut plane = Command::new(env!("CARGO_BIN_EXE_transom"))
        .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(home.path().join("data"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(plane.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let kubeconfig = line.trim().strip_prefix("export KUBECONFIG=").unwrap();
    let pid = plane.id().to_string();
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64().to_string();
    let given = ["--kubeconfig", kubeconfig, "--pid", &pid, "--started", &now];
    let figures = measure(&[&SMALL[..], &given].concat());
    plane.kill().unwrap();
    plane.wait().unwrap();
    assert_measured(&figures);
    assert!(!figures.iter().any(|figure| figure.name.starts_with("restart")), "{figures:?}");
}

#[test]
fn large_compositions_are_measured() {
    let figures = measure(&["large", "--composites", "2", "--resources", "30"]);
    assert_eq!(figures.len(), 13, "{figures:#?}");
    for figure in figures {
        assert!(figure.value > 0.0, "{figure:?}");
    }
}
