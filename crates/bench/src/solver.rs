//! `transom-bench solver`: how long dependency resolution takes for a Lock with many packages, in this process.
//!
//! A step is what the controller of the Lock does between two requests: it finds everything that is missing or not
//! accepted, and chooses a version for each from the tags of its repository.

use super::Figure;
use crate::failure::Failure;
use clap::Args;
use std::time::Instant;
use transom_packages::PackageKind;
use transom_packages::lock::graph::{Graph, Mirrors};
use transom_packages::lock::resolve::resolve_revision;
use transom_packages::lock::{LockDependency, LockPackage};
use transom_packages::solver::{InstalledPackage, Mode, choose, next_step};

/// Tags of each repository.
const TAGS: usize = 100;

/// Measure how long it takes to resolve the dependencies of many packages
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom-bench solver
  transom-bench solver --packages 10000 --rounds 3")]
pub(super) struct Options {
    /// Packages in the Lock
    #[arg(long, default_value_t = 1_000, value_name = "NUMBER")]
    packages: usize,

    /// How often each figure is measured; the median is printed
    #[arg(long, default_value_t = 11, value_name = "NUMBER")]
    rounds: usize,
}

pub(super) fn run(options: &Options) -> Result<Vec<Figure>, Failure> {
    let tags: Vec<String> = (0..TAGS).map(|i| format!("v1.{}.{}", i / 10, i % 10)).collect();
    let mut figures = Vec::new();
    for (shape, each) in [("a chain", 1), ("10 dependencies each", 10)] {
        let world = World::new(options.packages, each);
        for (mode, what) in [(Mode::Default, "step, half missing"), (Mode::Upgrade, "step, half outdated")] {
            let step = median(options.rounds, || world.step(mode, &tags))?;
            figures.push(Figure::new(format!("solver, {shape}: {what}"), step, "ms"));
        }
        let all = median(options.rounds, || world.resolve())?;
        figures.push(Figure::new(format!("solver, {shape}: one revision resolved"), all, "ms"));
    }
    Ok(figures)
}

/// The median of several measurements, in milliseconds.
fn median(rounds: usize, measured: impl Fn() -> Result<(), Failure>) -> Result<f64, Failure> {
    let mut times = Vec::new();
    for _ in 0..rounds.max(1) {
        let began = Instant::now();
        measured()?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Packages that depend on the next ones, of which every other is in the Lock, and in another one in an old version.
struct World {
    with_half: Vec<LockPackage>,
    outdated: Vec<LockPackage>,
    objects: Vec<InstalledPackage>,
}

impl World {
    fn new(packages: usize, each: usize) -> Self {
        let outdated: Vec<LockPackage> = (0..packages).map(|i| entry(i, each, packages)).collect();
        let with_half = outdated.iter().step_by(2).cloned().collect();
        let objects = outdated.iter().enumerate().map(|(i, package)| object(i, package)).collect();
        Self { with_half, outdated, objects }
    }

    fn step(&self, mode: Mode, tags: &[String]) -> Result<(), Failure> {
        let (lock, objects): (_, &[InstalledPackage]) = match mode {
            Mode::Default => (&self.with_half, &[]),
            Mode::Upgrade | Mode::Downgrade => (&self.outdated, &self.objects),
        };
        for need in next_step(lock, objects, mode, &Mirrors::new()) {
            choose(&need, tags, mode).map_err(|error| Failure::new(error.to_string()))?;
        }
        Ok(())
    }

    fn resolve(&self) -> Result<(), Failure> {
        let none = Mirrors::new();
        let graph = Graph::new(&self.outdated, &none);
        let resolved = self.outdated.first().and_then(|first| resolve_revision(&graph, &first.name));
        resolved.map(|_| ()).ok_or_else(|| Failure::new("there are no packages"))
    }
}

fn source(number: usize) -> String {
    format!("registry.example.org/acme/package-{number}")
}

fn entry(number: usize, each: usize, packages: usize) -> LockPackage {
    let dependencies = (number + 1..=number + each).filter(|&on| on < packages).map(|on| LockDependency {
        package: source(on),
        package_type: Some(PackageKind::Configuration),
        // Every other dependency is not accepted in the version that is installed.
        constraints: if on % 2 == 0 { ">=v1.5.0, <v2.0.0".to_owned() } else { ">=v1.0.0".to_owned() },
        ..LockDependency::default()
    });
    LockPackage {
        name: format!("package-{number}-1"),
        source: source(number),
        version: "v1.0.0".to_owned(),
        dependencies: dependencies.collect(),
        ..LockPackage::default()
    }
}

fn object(number: usize, package: &LockPackage) -> InstalledPackage {
    InstalledPackage {
        api_version: PackageKind::Configuration.api_version().to_owned(),
        kind: PackageKind::Configuration.kind().to_owned(),
        name: format!("package-{number}"),
        package: format!("{}:{}", package.source, package.version),
        resolved: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_figures_are_measured() {
        let figures = run(&Options { packages: 40, rounds: 1 }).unwrap_or_default();
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names.len(), 6, "{names:?}");
        assert!(figures.iter().all(|figure| figure.value > 0.0), "{figures:?}");
    }

    #[test]
    fn half_is_missing_or_outdated() {
        let world = World::new(40, 3);
        let needs = |lock: &[LockPackage], objects: &[InstalledPackage], mode| {
            next_step(lock, objects, mode, &Mirrors::new()).len()
        };
        assert_eq!(needs(&world.with_half, &[], Mode::Default), 20);
        assert_eq!(needs(&world.outdated, &world.objects, Mode::Upgrade), 19);
    }
}
