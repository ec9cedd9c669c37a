//! Which of the later rules a document keeps. What is stored already may go on breaking the others.

use super::props::Props;
use super::{Requirements, compile, default_values, keywords, shape, structure};
use serde_json::Value;
use transom_object::field::Path;

/// The rules that a stored document keeps.
pub(super) fn requirements(doc: &Value) -> Requirements {
    let shape = shape::check(doc, &Path::root());
    let Some(props) = Props::read(doc).filter(|_| shape.is_empty()) else {
        return Requirements { structural: false, ..Requirements::default() };
    };
    let structural =
        compile::unsupported(props).is_none() && structure::check(props, &Path::root()).is_empty();
    let mut kept = Requirements { structural, ..Requirements::default() };
    kept.pruned_defaults = !structural || default_values::are_pruned(doc);
    visit(props, &mut kept);
    kept
}

fn visit(props: Props<'_>, kept: &mut Requirements) {
    kept.known_types &= keywords::has_known_type(props);
    kept.atomic_set_items &= !keywords::breaks_atomic_set(props);
    kept.keyed_items &= !keywords::breaks_keyed_items(props);
    props.each_child(&mut |child| visit(child, kept));
}
