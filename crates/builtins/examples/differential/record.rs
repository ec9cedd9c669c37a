//! Writes questions with the genuine answers, in the form of the recorded calls that the tests replay.

use super::compare::compare;
use super::generate::{self, Generator};
use super::known::Known;
use super::{Failure, Options, Side, json};
use std::path::Path;

/// Answers longer than this say nothing that shorter ones do not.
const LONGEST: usize = 7_000;

pub async fn write(
    file: &Path,
    options: &Options,
    generator: Generator,
    (theirs, ours): (&Side, &Side),
) -> Result<(), Failure> {
    let mut known = Known::read(options.known.as_deref())?;
    let mut rows = Vec::new();
    for index in 0..options.requests {
        let request = generate::question(generator, options.seed, index);
        let Ok(response) = theirs.ask(&request).await else { continue };
        // What is meant to differ is not what the tests hold us to.
        let difference = ours.ask(&request).await.map(|ours| compare(&json(&response), &json(&ours)).err());
        if difference.is_ok_and(|found| found.is_some_and(|found| known.expects(&options.function, &found))) {
            continue;
        }
        let name = format!("{}-{index}", options.seed);
        let row = serde_json::to_string(
            &serde_json::json!({"name": name, "request": request, "response": response}),
        )?;
        if row.len() <= LONGEST {
            rows.push(row);
        }
        if rows.len() as u64 == options.record {
            break;
        }
    }
    let text = format!("{{\"function\": \"{}\", \"cases\": [\n{}\n]}}\n", options.function, rows.join(",\n"));
    Ok(std::fs::write(file, text)?)
}
