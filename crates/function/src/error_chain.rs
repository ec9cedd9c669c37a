//! The text of an error with all its sources, for places that show one line: conditions, logs, results.

/// The texts of an error and of each of its sources, outermost first.
pub fn causes(error: &dyn std::error::Error) -> impl Iterator<Item = String> {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string)
}

/// An error and its sources, joined by colons. A source whose text its parent already contains is left out.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut texts = Vec::<String>::new();
    for text in causes(error) {
        if !texts.last().is_some_and(|last| last.contains(&text)) {
            texts.push(text);
        }
    }
    texts.join(": ")
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
    fn no_cause_is_printed_twice() {
        let error = link("cannot call", Some(link("cannot connect: refused", Some(link("refused", None)))));
        assert_eq!(chain(&error), "cannot call: cannot connect: refused");
        assert_eq!(causes(&error).count(), 3);
    }
}
