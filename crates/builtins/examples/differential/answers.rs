//! Genuine answers, kept as short digests: what the genuine function said to ten thousand questions fits a small file,
//! and a test can hold ours to it where the genuine function is not to be had.
//!
//! A file has a header, an empty line, and a line for each question of a seed: the digests of the answers that the
//! genuine function gives (several, where it goes through a map of Go's and varies), `failed` when the call fails, `died`
//! when the server does. `!1` at the end says that ours differs for the first of the reasons in the header.

use super::normal::normalized;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write;
use transom_function::{RunFunctionRequest, RunFunctionResponse};

pub(crate) const FAILED: &str = "failed";
pub(crate) const DIED: &str = "died";

/// What the genuine function answers to one question, and why ours differs if it does.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answers {
    pub digests: BTreeSet<String>,
    pub reason: Option<usize>,
}

/// A genuine function's answers to the questions of a seed.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Recording {
    /// The version of the genuine function.
    pub genuine: String,
    pub seed: u64,
    /// The digest of all questions: it says when they are others than those that were asked.
    pub questions: String,
    pub reasons: Vec<String>,
    pub answers: Vec<Answers>,
}

impl Recording {
    pub(crate) fn write(&self) -> String {
        let mut text =
            format!("genuine\t{}\nseed\t{}\nquestions\t{}\n", self.genuine, self.seed, self.questions);
        for reason in &self.reasons {
            _ = writeln!(text, "reason\t{reason}");
        }
        text.push('\n');
        for answers in &self.answers {
            text.push_str(&answers.digests.iter().map(String::as_str).collect::<Vec<_>>().join(" "));
            if let Some(reason) = answers.reason {
                _ = write!(text, " !{reason}");
            }
            text.push('\n');
        }
        text
    }
}

/// Of an answer, or of the call that failed.
pub(crate) fn digest(answer: Result<&RunFunctionResponse, &str>) -> String {
    match answer {
        Ok(response) => {
            let response = serde_json::to_value(response).unwrap_or_default();
            let text = normalized(&without_minus_zero(response)).to_string();
            hex(Sha256::new().chain_update(text).chain_update(b"\n"), 4)
        }
        Err(DIED) => DIED.to_owned(),
        Err(_) => FAILED.to_owned(),
    }
}

/// Of all questions, one after the other.
#[derive(Default)]
pub(crate) struct QuestionDigest(Sha256);

impl QuestionDigest {
    pub(crate) fn add(&mut self, request: &RunFunctionRequest) {
        self.0.update(serde_json::to_string(request).unwrap_or_default());
        self.0.update(b"\n");
    }

    pub(crate) fn finish(self) -> String {
        hex(self.0, 8)
    }
}

/// Nothing says minus zero and means another number than zero.
fn without_minus_zero(mut value: Value) -> Value {
    match &mut value {
        Value::Number(number) if number.as_f64() == Some(0.0) => return 0.into(),
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_minus_zero(item.take())),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| *field = without_minus_zero(field.take()));
        }
        _ => {}
    }
    value
}

fn hex(hash: Sha256, bytes: usize) -> String {
    hash.finalize().iter().take(bytes).fold(String::new(), |mut hex, byte| {
        _ = write!(hex, "{byte:02x}");
        hex
    })
}
