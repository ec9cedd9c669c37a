//! Questions about packages for the code of Crossplane, with our answers: `packages AREA CASES SEED` prints a line
//! `{"question": …, "answers": […]}` for each. `conformance/packages` asks Crossplane's own packages and compares.

#![expect(clippy::print_stderr, reason = "a command-line program")]

mod constraints;
mod graphs;
mod images;
mod install;
mod names;
mod references;
mod resolution;
mod solver;

use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use transom_testkit::rng::Rng;

/// A question for both sides, and what we answer; several answers where the original gives only one of them.
pub type Case = (Value, Vec<String>);

/// Makes a case.
type Make = fn(&mut Rng) -> Case;

const AREAS: [(&str, Make); 7] = [
    ("constraints", constraints::case),
    ("names", names::case),
    ("references", references::case),
    ("images", images::case),
    ("solver", solver::case),
    ("install", install::case),
    ("resolution", resolution::case),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [area, cases, seed] = arguments.as_slice() else {
        eprintln!("usage: packages AREA CASES SEED");
        return ExitCode::FAILURE;
    };
    let found = AREAS.iter().find(|(name, _)| name == area);
    let (Some((_, case)), Ok(cases), Ok(seed)) = (found, cases.parse::<u64>(), seed.parse::<u64>()) else {
        eprintln!("AREA is one of {:?}, CASES and SEED are numbers", AREAS.map(|(name, _)| name));
        return ExitCode::FAILURE;
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for index in 0..cases {
        // Neighbouring seeds and indexes must not give neighbouring cases.
        let start = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index.wrapping_mul(0xD1B5_4A32_D192_ED03);
        let (mut question, answers) = case(&mut Rng::new(start).split());
        question["area"] = json!(area);
        if writeln!(out, "{}", json!({"question": question, "answers": answers})).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
