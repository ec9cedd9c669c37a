//! The text of an error with all its sources, for places that show one line: conditions, events, logs, command lines.
//!
//! Errors of this project print one layer: what was attempted, or what went wrong, without their source. An error of
//! another library whose own text contains that of its source must not be exposed as a source together with it.

use std::error::Error;

/// The texts of an error and of each of its sources, outermost first.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = String> + 'a {
    sources(error).map(ToString::to_string)
}

/// An error and each of its sources, outermost first.
pub fn sources<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> + 'a {
    std::iter::successors(Some(error), |&error| error.source())
}

/// An error and its sources, joined by colons: `cannot bind claim: cannot update claim: conflict`.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    causes(error).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Link {
        text: &'static str,
        source: Option<Box<Link>>,
    }

    fn link(text: &'static str, source: Option<Link>) -> Link {
        Link { text, source: source.map(Box::new) }
    }

    #[test]
    fn every_cause_is_printed_once() {
        let error = link("cannot call", Some(link("cannot connect", Some(link("connect", None)))));
        assert_eq!(chain(&error), "cannot call: cannot connect: connect");
        assert_eq!(causes(&error).count(), 3);
    }
}
