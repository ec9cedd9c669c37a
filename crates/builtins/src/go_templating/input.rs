//! The step's input: where the template is, and how to read it.
//!
//! Nothing is defaulted: what the schema of the original documents as a default never happens at run time.

use serde::Deserialize;
use transom_function::RunFunctionRequest;

use crate::named::{OneOf, names};
use crate::strict;

names! {
    /// Where a template is.
    Sources: "Inline", "FileSystem", "Environment";
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Input {
    delims: Option<Delimiters>,
    /// Empty when there is none.
    pub source: OneOf<Sources>,
    pub inline: Option<Inline>,
    pub file_system: Option<FileSystem>,
    pub environment: Option<Environment>,
    pub options: Option<Vec<String>>,
    /// How long the answer holds, in Go's words.
    pub ttl: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delimiters {
    left: Option<String>,
    right: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Inline {
    pub template: String,
    pub templates: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FileSystem {
    pub dir_path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Environment {
    pub key: String,
}

impl Input {
    /// The input of a request; empty when the request has none.
    pub(super) fn read(request: &RunFunctionRequest) -> Result<Self, String> {
        strict::input(request, "v1beta1.GoTemplate")
            .map_err(|problem| format!("cannot get Function input from *v1.RunFunctionRequest: {problem}"))
    }

    /// The delimiters, which count only together.
    pub(super) fn delimiters(&self) -> Option<(&str, &str)> {
        let delimiters = self.delims.as_ref()?;
        Some((delimiters.left.as_deref()?, delimiters.right.as_deref()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use transom_function::testing::RequestBuilder;

    fn read(input: Value) -> Result<Input, String> {
        Input::read(&RequestBuilder::new(json!({})).input(input).build())
    }

    #[test]
    fn an_absent_input_is_empty() {
        let input = Input::read(&RequestBuilder::new(json!({})).build()).unwrap();
        assert_eq!(&*input.source, "");
        assert!(input.delimiters().is_none() && input.options.is_none() && input.ttl.is_empty());
    }

    #[test]
    fn null_is_unset() {
        let input =
            read(json!({"source": null, "inline": {"templates": ["a", null]}, "options": null})).unwrap();
        assert_eq!(input.inline.unwrap().templates, ["a", ""]);
        assert!(input.options.is_none());
    }

    #[test]
    fn unknown_fields_and_wrong_types_are_refused() {
        for input in [
            json!({"Source": "Inline"}),
            json!({"inline": {"template": "", "options": []}}),
            json!({"fileSystem": {"path": "x"}}),
            json!({"source": 1}),
            json!({"options": "missingkey=error"}),
            json!({"metadata": "x"}),
        ] {
            let problem = read(input.clone()).expect_err(&input.to_string());
            assert!(problem.starts_with("cannot get Function input from "), "{problem}");
        }
    }

    #[test]
    fn delimiters_count_together() {
        assert!(read(json!({"delims": {"left": "[["}})).unwrap().delimiters().is_none());
        let input = read(json!({"delims": {"left": "[[", "right": "]]"}})).unwrap();
        assert_eq!(input.delimiters(), Some(("[[", "]]")));
    }
}
