//! What is wrong with the input of a step, for the person who wrote it.
//!
//! A built-in answers as the function that it replaces, letter by letter, and so refuses an input with the message of
//! Go's decoder. A control plane and `render` have the input reviewed instead: every mistake, where it is, and the name
//! that was probably meant.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use transom_function::{
    Error, Function, RunFunctionRequest, RunFunctionResponse, Severity, Struct, async_trait,
};
use transom_object::field;
use transom_object::quote::quote;
use transom_object::suggest;

use crate::strict::{self, Problem};

/// How many mistakes a message names: conditions and events are read by people.
const MAX_REPORTED_MISTAKES: usize = 5;

/// The condition by which `function-status-transformer` refuses its input instead of a fatal result.
pub(crate) const INPUT_FAILURE: &str = "InputFailure";

/// A function that ships with the binary.
pub(crate) trait Builtin: Function {
    /// The answer of the function that it replaces. The input stays in the request.
    fn answer(&self, request: &mut RunFunctionRequest) -> RunFunctionResponse;

    /// The kind that its input should be of. No function looks at it.
    fn input_kind(&self) -> &'static str;

    /// What is wrong with an input, its kind aside.
    fn review(&self, input: &Map<String, Value>) -> Review;
}

/// Makes a built-in a function, which answers as the original.
macro_rules! function {
    ($name:ty) => {
        #[transom_function::async_trait]
        impl transom_function::Function for $name {
            async fn run(
                &self,
                mut request: transom_function::RunFunctionRequest,
            ) -> Result<transom_function::RunFunctionResponse, transom_function::Error> {
                Ok($crate::review::Builtin::answer(self, &mut request))
            }
        }
    };
}
pub(crate) use function;

/// One thing that is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where in the input, as a JSON pointer.
    pub pointer: String,
    /// What is wrong.
    pub what: String,
    /// How to correct it, where that is known.
    pub remedy: Option<String>,
}

impl Mistake {
    /// Where in the input, as a path such as `resources[0].name`.
    pub fn field(&self) -> String {
        let tokens = self.pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~"));
        let path = tokens.fold(field::Path::root(), |path, token| match token.parse::<usize>() {
            Ok(index) => path.index(index),
            Err(_) if token.contains(['.', '/']) => path.key(&token),
            Err(_) => path.child(&token),
        });
        path.as_str().to_owned()
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field(), self.what)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

impl From<&strict::Error> for Mistake {
    fn from(error: &strict::Error) -> Self {
        let pointer = error.pointer.clone();
        let name = pointer.rsplit('/').next().unwrap_or_default();
        let (what, remedy) = match &error.problem {
            Problem::Unknown { name, known } => {
                let remedy = suggest::did_you_mean(name, known.iter().copied())
                    .unwrap_or_else(|| format!("the fields here are {}", known.join(", ")));
                (format!("unknown field {}", shortened(name)), Some(remedy))
            }
            Problem::Unsupported { found, known } => {
                let meant = suggest::did_you_mean(found, known.iter().copied());
                let all = format!("supported are {}", known.join(", "));
                let remedy = meant.map_or(all.clone(), |meant| format!("{meant} {all}"));
                (format!("unsupported value {}", shortened(found)), Some(remedy))
            }
            Problem::Mismatch { found, wanted } => {
                let (found, wanted) = (article(found), in_json(wanted));
                match name.parse::<usize>() {
                    Ok(index) => (format!("item {index} is {found}, but must be {wanted}"), None),
                    Err(_) => (format!("{} is {found}, but must be {wanted}", quote(name)), None),
                }
            }
            Problem::Other(words) => (words.clone(), None),
        };
        Self { pointer, what, remedy }
    }
}

/// A name in quotes; of a long one the beginning, as it ends up in conditions and events.
fn shortened(name: &str) -> String {
    const MAX_NAME_CHARS: usize = 100;
    match name.char_indices().nth(MAX_NAME_CHARS) {
        Some((end, _)) => quote(&format!("{}…", &name[..end])),
        None => quote(name),
    }
}

fn article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'o']) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// What a type of Go is in JSON.
fn in_json(go: &str) -> &'static str {
    match go {
        "string" => "a string",
        "bool" => "true or false",
        "slice" => "a list",
        "struct" | "map" => "an object",
        "float64" => "a number",
        _ => "an integer",
    }
}

/// What is wrong with an input.
#[derive(Clone, Debug, Default)]
pub struct Review {
    /// Whether the function refuses the input. What it does not refuse it ignores, which is rarely what was meant.
    pub refused: bool,
    /// The mistakes, in the order of the input.
    pub mistakes: Vec<Mistake>,
}

/// What a function makes of a name that means nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsupported {
    Refused,
    Ignored,
}

impl Review {
    pub(crate) fn of(errors: &[strict::Error], unsupported: Unsupported) -> Self {
        let refuses = |error: &strict::Error| match error.problem {
            Problem::Unsupported { .. } => unsupported == Unsupported::Refused,
            _ => true,
        };
        Self { refused: errors.iter().any(refuses), mistakes: errors.iter().map(Mistake::from).collect() }
    }

    /// The words in which an input is refused; none when it is not.
    pub fn refusal(&self) -> Option<String> {
        let shown: Vec<String> =
            self.mistakes.iter().take(MAX_REPORTED_MISTAKES).map(ToString::to_string).collect();
        let words = match shown.as_slice() {
            _ if !self.refused => return None,
            [] => return None,
            [one] => one.clone(),
            several => {
                let more = match self.mistakes.len() - several.len() {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                format!("[{}{more}]", several.join(", "))
            }
        };
        Some(format!("invalid input: {words}"))
    }
}

/// Reviews an input that is decoded into a type, by its fields alone.
pub(crate) fn by_fields<T: serde::de::DeserializeOwned>(
    input: &Map<String, Value>,
    unsupported: Unsupported,
) -> Review {
    Review::of(&strict::review::<T>(input).1, unsupported)
}

/// What is wrong with the kind of an input.
pub(crate) fn review_kind(builtin: &dyn Builtin, input: &Map<String, Value>) -> Option<Mistake> {
    let wanted = builtin.input_kind();
    let found = input.get("kind").and_then(Value::as_str).filter(|found| *found != wanted)?;
    Some(Mistake {
        pointer: "/kind".to_owned(),
        what: format!("the function expects an input of kind {}, not {}", quote(wanted), quote(found)),
        remedy: Some("the function ignores this".to_owned()),
    })
}

/// A built-in that refuses its input with the mistakes that a review finds.
pub(crate) struct Explained(Arc<dyn Builtin>);

impl Explained {
    /// Wraps a built-in function.
    pub(crate) fn new(builtin: Arc<dyn Builtin>) -> Self {
        Self(builtin)
    }
}

#[async_trait]
impl Function for Explained {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let mut response = self.0.answer(&mut request);
        let fatal = |result: &transom_function::proto::v1::Result| result.severity() == Severity::Fatal;
        let failed = response.results.iter().any(fatal)
            || response.conditions.iter().any(|condition| condition.reason == INPUT_FAILURE);
        let input = request.input.as_ref().map(Struct::fields);
        if let Some(refusal) = input.filter(|_| failed).and_then(|input| self.0.review(input).refusal()) {
            for result in response.results.iter_mut().filter(|result| fatal(result)) {
                result.message.clone_from(&refusal);
            }
            for condition in response.conditions.iter_mut().filter(|c| c.reason == INPUT_FAILURE) {
                condition.message = Some(refusal.clone());
            }
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests;
