//! Messages show the place and what was found there, and hostile templates end soon.

use serde_json::json;
use transom_builtins::GoTemplating;

use super::{call, inline};

fn message(template: &str) -> String {
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
fn the_part_is_named() {
    let input = json!({"source": "Inline", "inline": {"templates": ["# one\n#", "# two\n{{ fail \"x\" }}"]}});
    let response = call(&GoTemplating::default(), inline("").input(input).build());
    let message = &response.results[0].message;
    assert!(message.contains("\nin inline.templates[1]:2:3\n  5 | {{ fail \"x\" }}\n"), "{message}");
}

#[test]
fn hostile_templates_end() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]\nkind: K\n";
    let named = "metadata: {annotations: {gotemplating.fn.crossplane.io/composition-resource-name: t}}";
    for (name, template, problem) in [
        (
            "loop",
            "{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}".to_owned(),
            "exceeded the limit of",
        ),
        (
            "output",
            "{{ range until 100000000 }}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{{ end }}"
                .to_owned(),
            "exceeded the limit of",
        ),
        (
            "memory",
            "{{ $x := \"a\" }}{{ range until 60 }}{{ $x = cat $x $x }}{{ end }}".to_owned(),
            "exceeded the limit of",
        ),
        (
            "recursion",
            "{{ define \"x\" }}{{ template \"x\" . }}{{ end }}{{ template \"x\" . }}".to_owned(),
            "exceeded maximum template depth",
        ),
        (
            "inclusion",
            "{{ define \"x\" }}{{ include \"x\" . }}{{ end }}{{ include \"x\" . }}".to_owned(),
            "nested reference name",
        ),
        (
            "copies",
            "{{ range until 3000000 }}{{ $x := getCompositeResource $ }}{{ end }}".to_owned(),
            "exceeded the limit of",
        ),
        (
            "credentials",
            "{{ range until 3000000 }}{{ $x := getCredentialData $ \"x\" }}{{ end }}".to_owned(),
            "exceeded the limit of",
        ),
        ("nesting", format!("kind: X\na: {}", "[".repeat(100_000)), "recursion limit exceeded"),
        ("parentheses", format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000)), "template"),
        (
            "aliases",
            format!("{{{{ range until 2000 }}}}---\n{bomb}{named}\n{{{{ end }}}}"),
            "expand to more than",
        ),
        (
            "values",
            format!("kind: X\n{named}\na: [{{{{ repeat 3000000 \"1,\" }}}}1]\n"),
            "expand to more than",
        ),
        ("documents", "{{ range until 1000000 }}---\n{{ end }}kind: X".to_owned(), ""),
        ("lines", "{{ range until 1000000 }}\n{{ end }}kind: X".to_owned(), ""),
        ("quotes", "a: '{{ range until 1000000 }}\n{{ end }}'\nkind: X".to_owned(), ""),
        ("flow", "kind: X\na: [\n{{ range until 500000 }}1,\n{{ end }}]".to_owned(), ""),
        ("keys", "kind: X\n{{ range $i := until 300000 }}k{{ $i }}: 1\n{{ end }}".to_owned(), ""),
    ] {
        let message = message(&template);
        assert!(!message.is_empty() && message.contains(problem), "{name}: {message}");
        assert!(message.len() < 9000, "{name}: {} bytes", message.len());
    }
}
