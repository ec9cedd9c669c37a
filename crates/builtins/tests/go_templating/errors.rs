//! Messages show the place and what was found there.

use serde_json::json;
use transom_builtins::GoTemplating;

use super::{call, inline};

pub(super) fn message(template: &str) -> String {
    let response = call(&GoTemplating::default(), inline(template).build());
    response.results.first().map(|result| result.message.clone()).unwrap_or_default()
}

#[test]
fn the_place_is_shown_with_what_was_found() {
    for (template, expected) in [
        (
            "# {{ $x := dict \"a\" nil }}\n# {{ $x.a.b }}",
            "cannot execute template: template: manifests:2:7: executing \"manifests\" at <$x.a.b>: nil pointer evaluating interface {}.b
  2 | # {{ $x.a.b }}
    |          ^ what should have the field b is null",
        ),
        (
            "a: {{ .observed.composite.resource.kind.x }}",
            "cannot execute template: template: manifests:1:15: executing \"manifests\" at <.observed.composite.resource.kind.x>: can't evaluate field x in type interface {}
  1 | a: {{ .observed.composite.resource.kind.x }}
    |                                        ^ a value of type interface {} has no field x",
        ),
        (
            "{{ upper .no }}",
            "cannot execute template: template: manifests:1:9: executing \"manifests\" at <.no>: invalid value; expected string
  1 | {{ upper .no }}
    |          ^ there is no value here, but a string is needed",
        ),
        (
            "{{ upper 1 }}",
            "cannot execute template: template: manifests:1:9: executing \"manifests\" at <1>: expected string; found 1
  1 | {{ upper 1 }}
    |          ^",
        ),
        (
            "x\n  {{ fail \"bad\" }}",
            "cannot execute template: template: manifests:2:5: executing \"manifests\" at <fail \"bad\">: error calling fail: bad
  2 |   {{ fail \"bad\" }}
    |      ^ fail failed",
        ),
        (
            "a\n{{ if }}",
            "invalid function input: cannot parse the provided templates: template: manifests:2: missing value for if
  2 | {{ if }}",
        ),
        (
            "---\nkind: X\nname: 'a' b\n",
            "cannot decode manifest: error converting YAML to JSON: yaml: line 3 (document 1, line 2) near: 'name: 'a' b': did not find expected key
  3 | name: 'a' b
    |           ^",
        ),
    ] {
        assert_eq!(message(template), expected);
    }
}

#[test]
fn what_is_not_composed_yet_is_hinted_at() {
    let hint = "\n    = .observed.resources is not there until something has been composed; \
                write (default dict .observed.resources)";
    let template = "# {{ len .observed.resources }}";
    assert!(message(template).ends_with(hint), "{}", message(template));
    assert_eq!(message("# {{ len (default dict .observed.resources) }}"), "");
    // What exists cannot be the reason.
    let request = inline("# {{ fail (toString .observed.resources) }}");
    let request = request.observed("a", json!({"apiVersion": "v1", "kind": "ConfigMap"})).build();
    let response = call(&GoTemplating::default(), request);
    assert!(!response.results[0].message.contains("default dict"), "{:?}", response.results);
}

#[test]
fn the_part_is_named() {
    let input = json!({"source": "Inline", "inline": {"templates": ["# one\n#", "# two\n{{ fail \"x\" }}"]}});
    let response = call(&GoTemplating::default(), inline("").input(input).build());
    let message = &response.results[0].message;
    assert!(message.contains("\nin inline.templates[1]:2:3\n  5 | {{ fail \"x\" }}\n"), "{message}");
}
