//! The JSONPath dialect of Kubernetes: `{range .items[*]}{.metadata.name}{"\n"}{end}`.
//!
//! A template is text with actions in braces; each action yields a list of values. Printer columns, scale paths and
//! selectable fields use the inside of one action (`.spec.replicas`). Templates come from users, so nesting and the
//! work of one evaluation are limited.

mod eval;
mod parse;

use crate::field::{self, go_number};
use crate::json;
use serde_json::Value;

/// A step of an action. Literals are values already, so that results can borrow them.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// The content of `{…}`.
    List(Vec<Node>),
    /// Text, a number or a bool.
    Literal(Value),
    Field(String),
    Slice(Slice),
    Filter {
        left: Vec<Node>,
        operator: String,
        right: Vec<Node>,
    },
    Wildcard,
    Recursive,
    Union(Vec<Vec<Node>>),
    /// `range` or `end`; anything else fails when it is evaluated.
    Identifier(String),
}

/// `[start:end:step]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// There was no colon: the end is one after the start, and wraps around with it.
    single: bool,
    step: Option<i64>,
}

/// Why a template cannot be read, or not be evaluated on a value; worded as upstream words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonPathError(String);

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    nodes: Vec<Node>,
    allow_missing_keys: bool,
}

impl Template {
    /// Reads a template; the error is worded as upstream's.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        let nodes = parse::parse(text).map_err(JsonPathError)?;
        Ok(Self { nodes, allow_missing_keys: false })
    }

    /// Parses a bare path such as `.spec.replicas`, for which missing fields yield nothing.
    pub fn parse_path(path: &str) -> Result<Self, JsonPathError> {
        Ok(Self::parse(&format!("{{{path}}}"))?.allow_missing_keys(true))
    }

    /// Whether a field that no value has yields nothing rather than an error.
    #[must_use]
    pub fn allow_missing_keys(mut self, allow: bool) -> Self {
        self.allow_missing_keys = allow;
        self
    }

    /// The results of each action (and of each text between) in turn.
    pub fn find<'a>(&'a self, data: &'a Value) -> Result<Vec<Vec<&'a Value>>, JsonPathError> {
        eval::find(&self.nodes, self.allow_missing_keys, data).map_err(JsonPathError)
    }

    /// The first result, which is what a printer column or a selectable field shows.
    pub fn first<'a>(&'a self, data: &'a Value) -> Option<&'a Value> {
        self.find(data).ok()?.first()?.first().copied()
    }

    /// The results as `kubectl -o jsonpath` prints them.
    pub fn print(&self, data: &Value) -> Result<String, JsonPathError> {
        Ok(self.find(data)?.iter().map(|results| print_results(results)).collect())
    }
}

/// Values with spaces between: scalars as they are, the rest as JSON.
pub fn print_results(results: &[&Value]) -> String {
    results.iter().map(|v| print_value(v)).collect::<Vec<_>>().join(" ")
}

fn print_value(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Number(n) => go_number(n),
        other => json::encode_escaped(other),
    }
}

/// The check for paths in CRDs (printer columns, scale): they start with a dot.
pub fn validate_simple_path(path: &str, at: &field::Path) -> Vec<field::Error> {
    match path.chars().next() {
        None => vec![field::Error::invalid(at, path, "must not be empty")],
        Some('.') => Vec::new(),
        Some(_) => vec![field::Error::invalid(at, path, "must be a simple json path starting with .")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn print(template: &str, data: &Value) -> Result<String, JsonPathError> {
        Template::parse(template)?.print(data)
    }

    #[test]
    fn paths_filters_and_ranges() {
        let data = json!({"items": [
            {"name": "a", "n": 1, "f": 1.5, "ok": false, "tags": ["x", "y"], "labels": {"k8s.io/app": "web"}},
            {"name": "b", "n": 2, "f": 2.0, "tags": [], "nil": null, "ok": true},
        ], "kind": "List"});
        for (template, want) in [
            ("{.items[*].name}", "a b"),
            ("{.items[-1].name}", "b"),
            ("{.items[0:1].n}-{.kind}", "1-List"),
            ("{$.items[?(@.n>1)].name}", "b"),
            ("{.items[?(@.name=='a')].tags}", r#"["x","y"]"#),
            ("{.items[?(@.name!=\"a\")].f}", "2"),
            ("{.items[?(@.ok==true)].n}", "2"),
            ("{.items[?(@.f<=1.5)].n}", "1"),
            ("{.items[0].labels.k8s\\.io/app}", "web"),
            ("{.items[0]['name','n']}", "a 1"),
            ("{.items[0]['labels']['k8s\\.io/app']}", "web"),
            ("{..name}", "a b"),
            ("{.items[?(@.labels)].name}", "a"),
            ("{range .items[*]}{.name}{\"\\t\"}{range .tags[*]}{@},{end}{\"\\n\"}{end}!", "a\tx,y,\nb\t\n!"),
            ("{.items[1].nil}", "null"),
            ("{'it\\'s'}{\"\\u00e9\"}{5}{-1.5}{true}", "it'sé5-1.5true"),
            ("plain", "plain"),
        ] {
            assert_eq!(print(template, &data).as_deref(), Ok(want), "{template}");
        }
    }

    #[test]
    fn errors_read_as_upstream() {
        let data = json!({"a": {"b": 1}, "l": [1, "x"]});
        for (template, want) in [
            ("{", "unclosed action"),
            ("{.a", "unclosed action"),
            ("{*}", "unrecognized character in action: U+002A '*'"),
            ("{[1}", "unterminated array"),
            ("{[a]}", "invalid array index a"),
            ("{[-]}", "array index - is not a number"),
            ("{[?(.a}", "unterminated filter"),
            ("{[?(.a)}", "unclosed array expect ]"),
            ("{\"x}", "unterminated quoted string"),
            ("{'\\q'}", "unquote string '\\q' error invalid syntax"),
            ("{+1.2.3}", "cannot parse number +1.2.3"),
            ("{.....}", "invalid multiple recursive descent"),
            ("{.nope}", "nope is not found"),
            ("{hello}", "unrecognized identifier hello"),
            ("{end}", "not in range, nothing to end"),
            ("{.a[0]}", "map[string]interface {} is not array or slice"),
            ("{.a[?(@.b==1)]}", "map[b:1] is not array or slice and cannot be filtered"),
            ("{.l[5]}", "array index out of bounds: index 5, length 2"),
            ("{.l[1:0]}", "starting index 1 is greater than ending index 0"),
            ("{.l[0:1:0]}", "step must be > 0"),
            ("{.l[?(@==1)]}", "incompatible types for comparison"),
            ("{.l[?(@<>1)]}", "unrecognized filter operator <>"),
        ] {
            assert_eq!(print(template, &data).unwrap_err().to_string(), want, "{template}");
        }
    }

    #[test]
    fn bare_paths() {
        let data = json!({"spec": {"replicas": 3}});
        assert_eq!(Template::parse_path(".spec.replicas").unwrap().first(&data), Some(&json!(3)));
        assert_eq!(Template::parse_path(".spec.nope.deeper").unwrap().first(&data), None);
        let at = field::Path::new("p");
        assert!(validate_simple_path(".spec", &at).is_empty());
        assert_eq!(validate_simple_path("", &at)[0].detail, "must not be empty");
        assert_eq!(validate_simple_path("spec", &at)[0].detail, "must be a simple json path starting with .");
    }

    #[test]
    fn hostile_templates_are_bounded() {
        let data = json!({"a": vec![json!({"a": [1, 2, 3]}); 50]});
        let deep_filter = format!("{{{}@{}}}", "[?(".repeat(1000), ")]".repeat(1000));
        assert!(Template::parse(&deep_filter).is_err());
        assert!(print(&"{range .a[*]}".repeat(1000), &json!({"a": [{"a": [1]}]})).is_err());
        assert!(
            print("{..[*]..[*]..[*]..[*]..[*]..}", &json!([[[[[[[[1, 2], 3], 4], 5], 6], 7], 8], 9])).is_ok()
        );
        let _ = print("{..*..*..*..*..*}", &data);
    }

    proptest::proptest! {
        #[test]
        fn no_template_panics(text in r#"[{}\[\]?()@$.,:*'"\\a-c0-9<>=! é-]{0,40}"#) {
            let data = json!({"a": [{"b": "c"}, [1, 2.5, null]], "b": {"a": true}});
            if let Ok(template) = Template::parse(&text) {
                let _ = template.print(&data);
                let _ = template.allow_missing_keys(true).print(&data);
            }
        }
    }
}
