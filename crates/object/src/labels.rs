//! Label selectors: the `?labelSelector=` grammar and the `LabelSelector` of API objects, over one model.
//!
//! A selector is a conjunction of requirements, each about one key. Requirements are kept sorted by key, so that
//! equal selectors print alike.

mod parse;

use crate::field::{self, Error, Path};
use crate::names;
use crate::quote::quote;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The labels of an object.
pub type Labels = BTreeMap<String, String>;

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`
    NotIn,
    /// `key=value`
    Equals,
    /// `key==value`
    DoubleEquals,
    /// `key!=value`
    NotEquals,
    /// `key>1`
    GreaterThan,
    /// `key<1`
    LessThan,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
}

impl Operator {
    /// In the order in which upstream lists them, binary ones first.
    const ALL: [Self; 9] = [
        Self::In,
        Self::NotIn,
        Self::Equals,
        Self::DoubleEquals,
        Self::NotEquals,
        Self::GreaterThan,
        Self::LessThan,
        Self::Exists,
        Self::DoesNotExist,
    ];

    /// Upstream's name of the operator, which is not always how the grammar writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::GreaterThan => "gt",
            Self::LessThan => "lt",
            Self::Exists => "exists",
            Self::DoesNotExist => "!",
        }
    }

    /// The operator of a `matchExpressions` entry.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.as_str() == name)
    }

    /// `In`, `NotIn`, `Exists`, `DoesNotExist`: the operators of a `matchExpressions` entry.
    fn from_expression(name: &str) -> Option<Self> {
        match name {
            "In" => Some(Self::In),
            "NotIn" => Some(Self::NotIn),
            "Exists" => Some(Self::Exists),
            "DoesNotExist" => Some(Self::DoesNotExist),
            _ => None,
        }
    }
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl Requirement {
    /// A requirement; the errors name what is wrong with key, operator or values.
    pub fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, Vec<Error>> {
        let path = Path::root();
        let mut errors = Vec::new();
        errors.extend(key_error(key, &path.child("key")));
        let at = path.child("values");
        let wrong = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                "for 'in', 'notin' operators, values set can't be empty"
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
                "exact-match compatibility requires one single value"
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                "values set must be empty for exists and does not exist"
            }
            Operator::GreaterThan | Operator::LessThan if values.len() != 1 => {
                "for 'Gt', 'Lt' operators, exactly one value is required"
            }
            _ => "",
        };
        if !wrong.is_empty() {
            errors.push(Error::invalid(&at, values.clone(), wrong));
        }
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (i, value) in values.iter().enumerate().filter(|(_, v)| v.parse::<i64>().is_err()) {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(Error::invalid(&at.index(i), value.as_str(), why));
            }
        }
        for (i, value) in values.iter().enumerate() {
            let messages = names::is_label_value(value);
            if !messages.is_empty() {
                errors.push(Error::invalid(&at.index(i).key(key), value.as_str(), messages.join("; ")));
            }
        }
        if errors.is_empty() { Ok(Self { key: key.to_owned(), operator, values }) } else { Err(errors) }
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label is compared.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// What it is compared with, sorted.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether labels satisfy the requirement.
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let listed = |v: &String| self.values.contains(v);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => value.is_some_and(listed),
            Operator::NotIn | Operator::NotEquals => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.compare(value).is_some_and(|(label, limit)| label > limit),
            Operator::LessThan => self.compare(value).is_some_and(|(label, limit)| label < limit),
        }
    }

    fn compare(&self, value: Option<&String>) -> Option<(i64, i64)> {
        Some((value?.parse().ok()?, self.values.first()?.parse().ok()?))
    }
}

fn key_error(key: &str, path: &Path) -> Option<Error> {
    let messages = names::is_qualified_name(key);
    (!messages.is_empty()).then(|| Error::invalid(path, key, messages.join("; ")))
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = Cow::Borrowed(&self.values);
        if !values.is_sorted() {
            values.to_mut().sort();
        }
        let (key, values) = (&self.key, values.join(","));
        match self.operator {
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// Which objects are meant, by their labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// An absent `LabelSelector`: no object at all.
    Nothing,
    /// Objects that meet every requirement; with none, every object.
    All(Vec<Requirement>),
}

/// Why a text or an object is not a label selector, worded as upstream words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

impl Default for Selector {
    fn default() -> Self {
        Self::everything()
    }
}

impl Selector {
    /// The selector without requirements.
    pub fn everything() -> Self {
        Self::All(Vec::new())
    }

    /// All of these requirements.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self::All(requirements)
    }

    /// Reads `a=b,c in (d,e),!f`; the error is worded as upstream words it.
    pub fn parse(selector: &str) -> Result<Self, SelectorError> {
        parse::parse(selector).map(Self::new).map_err(SelectorError)
    }

    /// Objects that carry all of these labels.
    pub fn from_labels(labels: &Labels) -> Result<Self, Vec<Error>> {
        let all: Result<Vec<_>, _> =
            labels.iter().map(|(k, v)| Requirement::new(k, Operator::Equals, vec![v.clone()])).collect();
        all.map(Self::new)
    }

    /// Reads a `LabelSelector` object. `null` selects nothing, `{}` everything.
    pub fn from_label_selector(selector: &Value) -> Result<Self, SelectorError> {
        if selector.is_null() {
            return Ok(Self::Nothing);
        }
        let fields = LabelSelector::decode(selector)?;
        let mut requirements = Vec::new();
        for (key, value) in fields.match_labels {
            let one = Requirement::new(key, Operator::Equals, vec![value.to_owned()]);
            requirements.push(one.map_err(|e| aggregate(&e))?);
        }
        for e in fields.match_expressions {
            let operator = Operator::from_expression(e.operator).ok_or_else(|| {
                SelectorError(format!("{} is not a valid label selector operator", quote(e.operator)))
            })?;
            let values = e.values.into_iter().map(str::to_owned).collect();
            requirements.push(Requirement::new(e.key, operator, values).map_err(|e| aggregate(&e))?);
        }
        Ok(Self::new(requirements))
    }

    /// With further requirements.
    #[must_use]
    pub fn and(self, more: impl IntoIterator<Item = Requirement>) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::All(mut requirements) => {
                requirements.extend(more);
                Self::new(requirements)
            }
        }
    }

    /// Whether labels satisfy all requirements.
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(requirements) => requirements.iter().all(|r| r.matches(labels)),
        }
    }

    /// Whether it has no requirements.
    pub fn is_everything(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        match self {
            Self::Nothing => &[],
            Self::All(requirements) => requirements,
        }
    }

    /// The value that the label must have, if the selector requires exactly one; what an index can use.
    pub fn exact(&self, key: &str) -> Option<&str> {
        let r = self.requirements().iter().find(|r| r.key == key)?;
        match (r.operator, r.values.as_slice()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [only]) => Some(only),
            _ => None,
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements().iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

/// A `LabelSelector` object, borrowed.
struct LabelSelector<'a> {
    match_labels: Vec<(&'a str, &'a str)>,
    match_expressions: Vec<Expression<'a>>,
}

struct Expression<'a> {
    key: &'a str,
    operator: &'a str,
    values: Vec<&'a str>,
}

impl<'a> LabelSelector<'a> {
    fn decode(value: &'a Value) -> Result<Self, SelectorError> {
        let wrong = |what: &str| SelectorError(format!("invalid label selector: {what}"));
        let fields = value.as_object().ok_or_else(|| wrong("must be an object"))?;
        let present = |name: &str| fields.get(name).filter(|v| !v.is_null());
        let mut out = Self { match_labels: Vec::new(), match_expressions: Vec::new() };
        if let Some(labels) = present("matchLabels") {
            let labels = labels.as_object().ok_or_else(|| wrong("matchLabels must be an object"))?;
            for (key, value) in labels {
                let value = string(Some(value)).ok_or_else(|| wrong("matchLabels must hold strings"))?;
                out.match_labels.push((key, value));
            }
        }
        if let Some(list) = present("matchExpressions") {
            let list = list.as_array().ok_or_else(|| wrong("matchExpressions must be a list"))?;
            let decoded: Option<Vec<_>> = list.iter().map(Expression::decode).collect();
            out.match_expressions =
                decoded.ok_or_else(|| wrong("matchExpressions must hold {key, operator, values}"))?;
        }
        Ok(out)
    }
}

impl<'a> Expression<'a> {
    fn decode(value: &'a Value) -> Option<Self> {
        let fields = value.as_object()?;
        let values = match fields.get("values") {
            None | Some(Value::Null) => Vec::new(),
            Some(list) => list.as_array()?.iter().map(|v| string(Some(v))).collect::<Option<_>>()?,
        };
        Some(Self { key: string(fields.get("key"))?, operator: string(fields.get("operator"))?, values })
    }
}

fn aggregate(errors: &[Error]) -> SelectorError {
    SelectorError(field::aggregate(errors))
}

/// As Go decodes a string field: absent and null mean empty.
fn string(value: Option<&Value>) -> Option<&str> {
    match value {
        None | Some(Value::Null) => Some(""),
        Some(v) => v.as_str(),
    }
}

/// The labels that a selector without real set operators pins down; an error names the operator that does not.
pub fn label_selector_as_labels(selector: &Value) -> Result<Labels, SelectorError> {
    if selector.is_null() {
        return Ok(Labels::new());
    }
    let fields = LabelSelector::decode(selector)?;
    let mut out: Labels =
        fields.match_labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    for e in fields.match_expressions {
        let operator = quote(e.operator);
        match (Operator::from_expression(e.operator), e.values.as_slice()) {
            (Some(Operator::In), [only]) => out.insert(e.key.to_owned(), (*only).to_owned()),
            (Some(Operator::In), _) => {
                return Err(SelectorError(format!(
                    "operator {operator} without a single value cannot be converted into the old label selector format"
                )));
            }
            (Some(_), _) => {
                return Err(SelectorError(format!(
                    "operator {operator} cannot be converted into the old label selector format"
                )));
            }
            (None, _) => return Err(SelectorError(format!("{operator} is not a valid selector operator"))),
        };
    }
    Ok(out)
}

/// Checks a `LabelSelector` inside an API object, naming the field at fault.
pub fn validate_label_selector(selector: &Value, path: &Path) -> Vec<Error> {
    if selector.is_null() {
        return Vec::new();
    }
    let fields = match LabelSelector::decode(selector) {
        Ok(fields) => fields,
        Err(why) => return vec![Error::type_invalid(path, selector.clone(), why.to_string())],
    };
    let mut errors = Vec::new();
    for (key, value) in fields.match_labels {
        errors.extend(validate_label(key, value, &path.child("matchLabels")));
    }
    for (i, e) in fields.match_expressions.iter().enumerate() {
        let at = path.child("matchExpressions").index(i);
        match Operator::from_expression(e.operator) {
            Some(Operator::In | Operator::NotIn) if e.values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(Error::required(&at.child("values"), why));
            }
            Some(Operator::Exists | Operator::DoesNotExist) if !e.values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(Error::forbidden(&at.child("values"), why));
            }
            Some(_) => {}
            None => errors.push(Error::invalid(
                &at.child("operator"),
                e.operator,
                "not a valid selector operator",
            )),
        }
        let key = names::is_qualified_name(e.key);
        errors.extend(key.into_iter().map(|m| Error::invalid(&at.child("key"), e.key, m)));
        for (j, value) in e.values.iter().enumerate() {
            let messages = names::is_label_value(value);
            errors.extend(
                messages.into_iter().map(|m| Error::invalid(&at.child("values").index(j), *value, m)),
            );
        }
    }
    errors
}

/// The rules for one label of an object.
pub fn validate_label(key: &str, value: &str, path: &Path) -> Vec<Error> {
    let keys = names::is_qualified_name(key).into_iter().map(|m| Error::invalid(path, key, m));
    let values = names::is_label_value(value).into_iter().map(|m| Error::invalid(path, value, m));
    keys.chain(values).collect()
}

/// Two sets of labels that give one key different values.
pub fn conflict(a: &Labels, b: &Labels) -> bool {
    a.iter().any(|(key, value)| b.get(key).is_some_and(|other| other != value))
}
