//! `function-sequencer`: creates composed resources one after the other, and has them deleted in reverse.
//!
//! A rule is a sequence of patterns of names. What matches a later pattern and does not exist yet is withheld until
//! everything that matches an earlier one is ready. Resources that exist are never withheld. For deletion, usages
//! ([`usage`]) are composed that keep what came earlier while something that came later exists.

mod usage;

use regex::bytes::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use transom_function::{Ready, Resource, RunFunctionRequest, RunFunctionResponse, State};
use transom_go::regexp::{self, Limits};
use transom_object::quote::quote;

use crate::expression::{self, Problem, Typing};
use crate::review::{self, Builtin, Review, Unsupported};
use crate::{desired, input, ttl};

/// The function.
pub(crate) struct Sequencer;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Input {
    #[serde(rename = "cacheTTL")]
    cache_ttl: String,
    enable_deletion_sequencing: bool,
    replay_deletion: bool,
    usage_version: String,
    reset_composite_readiness: bool,
    rules: Vec<Rule>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Rule {
    condition: String,
    create_only: bool,
    delete_only: bool,
    sequence: Vec<String>,
}

impl Builtin for Sequencer {
    fn answer(&self, request: &mut RunFunctionRequest) -> RunFunctionResponse {
        input::answer(request, sequence)
    }

    fn input_kind(&self) -> &'static str {
        "Input"
    }

    fn review(&self, input: &Map<String, Value>) -> Review {
        review::by_fields::<Input>(input, Unsupported::Ignored)
    }
}

review::function!(Sequencer);

fn sequence(request: &RunFunctionRequest, response: &mut RunFunctionResponse) -> Result<(), String> {
    let input: Input = input::read(request, "v1beta1.Input")?;
    ttl::set(response, &input.cache_ttl).map_err(|error| format!("cannot set cacheTTL: {error}"))?;
    let nothing = State::default();
    let observed = &request.observed.as_ref().unwrap_or(&nothing).resources;
    let desired = response.desired.iter().flat_map(|desired| &desired.resources);
    let wanted = desired.map(|(name, resource)| (name.clone(), resource.ready() == Ready::True)).collect();
    let mut sequencing = Sequencing { input: &input, observed, wanted, usages: BTreeMap::new() };
    for rule in &input.rules {
        sequencing.follow(rule, request, response)?;
    }
    // Only now: until all rules are followed, conditions see what earlier steps want.
    let Sequencing { wanted, usages, .. } = sequencing;
    let state = desired::write_back(response);
    state.resources.retain(|name, _| wanted.contains_key(name));
    state.resources.extend(usages);
    Ok(())
}

struct Sequencing<'a> {
    input: &'a Input,
    observed: &'a BTreeMap<String, Resource>,
    /// What is still wanted, and whether it is ready.
    wanted: BTreeMap<String, bool>,
    usages: BTreeMap<String, Resource>,
}

impl Sequencing<'_> {
    fn follow(
        &mut self,
        rule: &Rule,
        request: &RunFunctionRequest,
        response: &mut RunFunctionResponse,
    ) -> Result<(), String> {
        let shown = format!("[{}]", rule.sequence.join(" "));
        if rule.delete_only && rule.create_only {
            return Err(format!(
                "rule for sequence {shown} cannot have both deleteOnly and createOnly set to true"
            ));
        }
        let applies = rule.condition.is_empty() || {
            let condition = quote(&rule.condition);
            let holds = is_met(&rule.condition, request, response)
                .map_err(|e| format!("cannot evaluate condition {condition} for sequence {shown}: {e}"))?;
            if !holds {
                response
                    .normal(format!("Skipping sequence {shown}: condition {condition} evaluated to false"));
            }
            holds
        };
        // The order of deletion does not depend on the condition.
        if self.input.enable_deletion_sequencing && !rule.create_only {
            self.protect(&rule.sequence)
                .map_err(|error| format!("cannot generate usages for sequence: {error}"))?;
        }
        if applies && !rule.delete_only { self.withhold(&rule.sequence, response) } else { Ok(()) }
    }

    /// Withholds what may not be created yet.
    fn withhold(&mut self, sequence: &[String], response: &mut RunFunctionResponse) -> Result<(), String> {
        for (i, current) in sequence.iter().enumerate() {
            if i == 0 || self.observed.contains_key(current) {
                continue;
            }
            for before in &sequence[..i] {
                let (matching, matching_current) = (compile(before)?, compile(current)?);
                let ready = self.wanted.iter().filter(|(name, _)| matching.is_match(name.as_bytes()));
                let (count, ready) = ready.fold((0, 0), |(count, ready), (_, is_ready)| {
                    (count + 1, ready + usize::from(*is_ready))
                });
                if count > 0 && count == ready {
                    continue;
                }
                let reason = match count {
                    0 => "does not exist yet".to_owned(),
                    count => format!("is not fully ready ({ready} of {count})"),
                };
                let (current, before) = (quote(current), quote(before));
                response.normal(format!(
                    "Delaying creation of resource(s) matching {current} because {before} {reason}"
                ));
                let kept = self.wanted.len();
                let observed = self.observed;
                self.wanted.retain(|name, _| {
                    observed.contains_key(name) || !matching_current.is_match(name.as_bytes())
                });
                if self.wanted.len() < kept && self.input.reset_composite_readiness {
                    response.composite().set_ready(Ready::False);
                }
                break;
            }
        }
        Ok(())
    }

    /// Composes the usages by which each existing resource of a sequence keeps those before it.
    fn protect(&mut self, sequence: &[String]) -> Result<(), String> {
        let version = usage::Version::of(&self.input.usage_version);
        for pair in sequence.windows(2) {
            let [of, by] = pair else { continue };
            let (by, of) = (compile(by)?, compile(of)?);
            let users = self.observed.iter().filter(|(name, _)| by.is_match(name.as_bytes()));
            for (user, by) in users.filter(|(_, resource)| !version.is_usage(resource)) {
                for used in self.wanted.keys().filter(|name| of.is_match(name.as_bytes())) {
                    if let Some(of) = self.observed.get(used) {
                        let usage = version.compose(of, by, self.input.replay_deletion);
                        self.usages.insert(format!("{user}-{used}-usage"), usage);
                    }
                }
            }
        }
        Ok(())
    }
}

fn is_met(
    condition: &str,
    request: &RunFunctionRequest,
    response: &RunFunctionResponse,
) -> Result<bool, String> {
    let (desired, context) = (response.desired.as_ref(), response.context.as_ref());
    let holds = expression::holds(condition, Typing::Dynamic, request.observed.as_ref(), desired, context);
    holds.map_err(|problem| match problem {
        Problem::Syntax(issues) => format!("cannot parse CEL condition: {issues}"),
        Problem::Meaning(issues) => format!("cannot type-check CEL condition: {issues}"),
        Problem::Type(name) => format!("CEL condition must return bool, got {name}"),
        Problem::Evaluation(error) => format!("cannot evaluate CEL condition: {error}"),
        Problem::NotBool => "CEL condition result is not bool".to_owned(),
    })
}

/// A pattern of names. A pattern with an anchor is used as it is, a pattern without gets both.
fn compile(pattern: &str) -> Result<Regex, String> {
    let anchored = if pattern.starts_with('^') || pattern.ends_with('$') {
        regexp::compile_bytes(pattern, Limits::default())
    } else {
        regexp::compile_bytes(&format!("^{pattern}$"), Limits::default())
    };
    anchored.map_err(|error| format!("cannot compile regex {pattern}: {error}"))
}

#[cfg(test)]
mod tests;
