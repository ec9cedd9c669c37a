//! Questions for the Go libraries that Kubernetes and Crossplane are made of, with our answers: `golang AREA CASES SEED`
//! prints a line `{"question": …, "answer": …}` for each. `conformance/golang` asks Go and compares.

#![expect(clippy::print_stderr, reason = "a command-line program")]

mod bytes;
mod cel;
#[path = "../differential/dice.rs"]
mod dice;
mod fieldpath;
mod formats;
mod options;
mod patch;
mod quantity;
mod schema;
mod template;

use dice::Dice;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;

/// A question for both sides, and what we answer.
pub type Case = (Value, String);

/// Makes a case.
type Make = fn(&mut Dice) -> Case;

const AREAS: [(&str, Make); 13] = [
    ("patch", patch::case),
    ("quantity", quantity::case),
    ("bytes", bytes::case),
    ("cel", cel::case),
    ("cel-zero", cel::zero::case),
    ("cel-string", cel::strings::case),
    ("cel-optmap", cel::optmap::case),
    ("cel-ip", cel::addresses::case),
    ("schema", schema::case),
    ("formats", formats::case),
    ("fieldpath", fieldpath::case),
    ("template", template::case),
    ("options", options::case),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [area, cases, seed] = arguments.as_slice() else {
        eprintln!("usage: golang AREA CASES SEED");
        return ExitCode::FAILURE;
    };
    let found = AREAS.iter().find(|(name, _)| name == area);
    let (Some((_, case)), Ok(cases), Ok(seed)) = (found, cases.parse::<u64>(), seed.parse()) else {
        eprintln!("AREA is one of {:?}, CASES and SEED are numbers", AREAS.map(|(name, _)| name));
        return ExitCode::FAILURE;
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for index in 0..cases {
        let (mut question, answer) = case(&mut Dice::new(seed, index));
        question["area"] = json!(area);
        if writeln!(out, "{}", json!({"question": question, "answer": answer})).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
