//! `transom-bench` starts planes of this binary, measures all its figures, and finds no writes where there must be none.

use clap::Parser;
use transom_bench::{Bench, Figure};

fn measure(arguments: &[&str]) -> Vec<Figure> {
    let transom = ["transom-bench", "--transom", env!("CARGO_BIN_EXE_transom")];
    let bench = Bench::parse_from(transom.iter().chain(arguments));
    bench.run().unwrap()
}

#[test]
fn a_small_plane_is_measured() {
    let figures = measure(&["plane", "--scale", "0.02", "--idle", "1", "--large", "40"]);
    let value = |name: &str| {
        let figure = figures.iter().find(|figure| figure.name == name);
        figure.unwrap_or_else(|| panic!("there is no {name:?} in {figures:?}")).value
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
        assert!(value(name) > 0.0, "{name}: {figures:?}");
    }
    assert!(value("idle, writes in a minute").abs() < f64::EPSILON, "{figures:?}");
    assert!(value("restart, writes").abs() < f64::EPSILON, "{figures:?}");
}

#[test]
fn large_compositions_are_measured() {
    let figures = measure(&["large", "--composites", "2", "--resources", "30"]);
    assert_eq!(figures.len(), 10, "{figures:#?}");
    for figure in figures {
        assert!(figure.value > 0.0, "{figure:?}");
    }
}
