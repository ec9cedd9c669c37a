//! Generates the requests that the built-in functions are compared with: for each function from the fields of its input, most of
//! them sensible and some hostile. The same seed makes the same requests.

mod auto_ready;
mod cidr;
mod corpus;
mod dummy;
mod filtering;
mod go_templating;
mod hostile;
mod mutate;
mod patch_and_transform;
mod selecting;
mod tagging;
mod template;
mod transforming;
mod world;

use super::dice::Dice;
use serde_json::Value;
use transom_function::RunFunctionRequest;

/// Makes one question, in JSON.
type Generator = fn(&mut Dice) -> Value;

/// The questions for a function.
#[derive(Clone, Copy)]
pub(crate) struct Questions {
    kind: Kind,
    seed: u64,
    pub count: u64,
}

#[derive(Clone, Copy)]
enum Kind {
    Generated(Generator),
    /// As they are in published Compositions.
    Published,
}

impl Questions {
    /// So many generated questions of a seed.
    pub(crate) fn generated(function: &str, seed: u64, count: u64) -> Option<Self> {
        Some(Self { kind: Kind::Generated(generator(function)?), seed, count })
    }

    /// All questions that published Compositions ask a function; none where they are not at hand.
    pub(crate) fn published(function: &str) -> Option<Self> {
        let known = function == "function-go-templating";
        known.then(|| Self { kind: Kind::Published, seed: 0, count: corpus::REQUESTS.len() as u64 })
    }

    /// A question, always the same. Every seventh generated one has something wrong with its input.
    pub(crate) fn get(self, index: u64) -> RunFunctionRequest {
        let mut question = match self.kind {
            Kind::Published => usize::try_from(index)
                .ok()
                .and_then(|index| corpus::REQUESTS.get(index))
                .cloned()
                .unwrap_or_default(),
            Kind::Generated(generator) => {
                let mut dice = Dice::new(self.seed, index);
                let mut question = generator(&mut dice);
                if index % 7 == 6
                    && let Some(input) = question.get_mut("input")
                {
                    hostile::damage(&mut dice, input);
                }
                question
            }
        };
        question["meta"] = serde_json::json!({"tag": format!("{}-{index}", self.seed)});
        serde_json::from_value(question).unwrap_or_default()
    }
}

fn generator(function: &str) -> Option<Generator> {
    Some(match function {
        "function-auto-ready" => auto_ready::question,
        "function-cel-filter" => filtering::cel_filter,
        "function-cidr" => cidr::question,
        "function-dummy" => dummy::question,
        "function-environment-configs" => selecting::environment_configs,
        "function-extra-resources" => selecting::extra_resources,
        "function-go-templating" => go_templating::question,
        "function-patch-and-transform" => patch_and_transform::question,
        "function-sequencer" => filtering::sequencer,
        "function-status-transformer" => transforming::question,
        "function-tag-manager" => tagging::question,
        _ => return None,
    })
}
