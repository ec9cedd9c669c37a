//! The questions, made from each function's input: mostly sensible ones, some hostile.

mod auto_ready;
mod cidr;
mod dummy;
mod filtering;
mod hostile;
mod patch_and_transform;
mod selecting;
mod tagging;
mod transforming;
mod world;

use super::dice::Dice;
use serde_json::Value;
use transom_function::RunFunctionRequest;

/// Makes one question, in JSON.
pub type Generator = fn(&mut Dice) -> Value;

/// The generator for a function.
pub fn of(function: &str) -> Option<Generator> {
    Some(match function {
        "function-auto-ready" => auto_ready::question,
        "function-cel-filter" => filtering::cel_filter,
        "function-cidr" => cidr::question,
        "function-dummy" => dummy::question,
        "function-environment-configs" => selecting::environment_configs,
        "function-extra-resources" => selecting::extra_resources,
        "function-patch-and-transform" => patch_and_transform::question,
        "function-sequencer" => filtering::sequencer,
        "function-status-transformer" => transforming::question,
        "function-tag-manager" => tagging::question,
        _ => return None,
    })
}

/// A question of a seed. Every seventh has something wrong with its input.
pub fn question(generator: Generator, seed: u64, index: u64) -> RunFunctionRequest {
    let mut dice = Dice::new(seed, index);
    let mut question = generator(&mut dice);
    if index % 7 == 6
        && let Some(input) = question.get_mut("input")
    {
        hostile::damage(&mut dice, input);
    }
    question["meta"] = serde_json::json!({"tag": format!("{seed}-{index}")});
    serde_json::from_value(question).unwrap_or_default()
}
