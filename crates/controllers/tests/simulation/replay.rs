//! A seed decides everything: in this process, and in any other. Revisions of functions are left out: the channels of tokio draw in
//! which order those that wait for the first list of a watch go on, and in lives in which controllers are often killed this makes
//! a difference. What failed may then fail in another schedule, or with another seed.

use crate::simulation::life::{Theme, live};
use crate::simulation::setting;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Command;

const NAME: &str = "simulation::replay::a_seed_replays_exactly";
const ASKED: &str = "TRANSOM_SIMULATION_HASH";

/// All requests of a short life, whose theme depends on the seed.
fn log(seed: u64) -> Vec<String> {
    let theme = if seed.is_multiple_of(2) { Theme::Packages } else { Theme::Composites };
    live(theme, seed, 40, true).unwrap_or_else(|f| panic!("{}", crate::simulation::report(&f)))
}

fn hash(log: &[String]) -> String {
    // Its keys are fixed, unlike those of a HashMap.
    let mut hasher = DefaultHasher::new();
    log.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[test]
fn a_seed_replays_exactly() {
    if let Some(seed) = setting(ASKED) {
        println!("hash={}", hash(&log(seed)));
        return;
    }
    for seed in [1, 2] {
        let here = log(seed);
        let again = log(seed);
        if let Some(at) = here.iter().zip(&again).position(|(a, b)| a != b) {
            let from = at.saturating_sub(10);
            panic!("seed {seed} differs: {:#?} instead of {:#?}", &again[from..=at], &here[from..=at]);
        }
        assert_eq!(again.len(), here.len(), "seed {seed} again");
        let other = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(ASKED, seed.to_string())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&other.stdout).into_owned();
        let there = printed.split("hash=").nth(1).and_then(|t| t.get(..16));
        let there = there.unwrap_or_else(|| panic!("{printed}"));
        assert_eq!(there, hash(&here), "seed {seed} in another process");
    }
}
