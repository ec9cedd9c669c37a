//! Patterns of paths with wildcards, for endpoints that own only a few fields of an object.

use super::element::Element;
use super::set::Set;
use std::sync::Arc;

/// Which paths match: all, or those that begin with one of some steps and continue as it does.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// Every path.
    Everything,
    /// Sorted by step; wildcards come first and win.
    OneOf(Vec<(Step, Matcher)>),
}

/// A pattern for one element of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Every element.
    Any,
    /// This element.
    Is(Element),
}

impl Step {
    fn matches(&self, element: &Element) -> bool {
        match self {
            Self::Any => true,
            Self::Is(own) => own == element,
        }
    }
}

impl Matcher {
    /// Matches the path of these steps, every path on the way there, and all paths below.
    pub fn prefix(steps: impl IntoIterator<Item = Step, IntoIter: DoubleEndedIterator>) -> Self {
        steps.into_iter().rev().fold(Self::Everything, |below, step| Self::OneOf(vec![(step, below)]))
    }

    /// Matches what either matches.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        let (Self::OneOf(a), Self::OneOf(b)) = (self, other) else { return Self::Everything };
        let mut all = a.clone();
        for (step, below) in b {
            match all.iter_mut().find(|(s, _)| s == step) {
                Some((_, own)) => *own = own.merge(below),
                None => all.push((step.clone(), below.clone())),
            }
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        Self::OneOf(all)
    }

    fn below(&self, element: &Element) -> Option<&Self> {
        match self {
            Self::Everything => Some(self),
            Self::OneOf(steps) => {
                steps.iter().find(|(step, _)| step.matches(element)).map(|(_, below)| below)
            }
        }
    }
}

impl Set {
    /// Only the paths that match.
    #[must_use]
    pub fn matching(&self, matcher: &Matcher) -> Self {
        if matches!(matcher, Matcher::Everything) {
            return self.clone();
        }
        let members = self.members().iter().filter(|e| matcher.below(e).is_some()).cloned().collect();
        let children = self.children().iter().filter_map(|(element, child)| {
            let child = child.matching(matcher.below(element)?);
            (!child.is_empty()).then(|| (element.clone(), Arc::new(child)))
        });
        Self::from_unsorted(members, children.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn wildcards_match_any_element_and_win() {
        let set = Set::from_fields(&json!({"f:a": {".": {}, "i:0": {"f:x": {}, "f:y": {}}, "i:1": {"f:x": {}, "f:y": {}}}, "f:b": {}})).unwrap();
        let field = |n: &str| Step::Is(Element::field(n));
        let any = Matcher::prefix([field("a"), Step::Any, field("x")]);
        let one = Matcher::prefix([field("a"), Step::Is(Element::Index(1)), field("y")]);
        assert_eq!(
            set.matching(&any.merge(&one)).to_json(),
            r#"{"f:a":{".":{},"i:0":{"f:x":{}},"i:1":{"f:x":{}}}}"#
        );
        assert_eq!(set.matching(&one).to_json(), r#"{"f:a":{".":{},"i:1":{"f:y":{}}}}"#);
        assert_eq!(set.matching(&Matcher::Everything), set);
    }
}
