//! Hostile templates end soon with a clear error; arbitrary text never panics the lexer, parser or evaluator.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use transom_gotemplate::{Cause, Exceeded, Functions, Limits, Options, Template, Value};

fn render(text: &str) -> Result<String, transom_gotemplate::Error> {
    let template = Template::parse("manifests", text, &Options::default())?;
    let data =
        Value::from(serde_json::json!({ "name": "web", "list": [1, 2, 3], "map": { "a": { "b": null } } }));
    template.execute(&data, &Functions::default(), &Limits::default())
}

#[test]
fn runaway_templates_reach_a_limit() {
    let deep = format!("{}1{}", "(".repeat(1500), ")".repeat(1500));
    let cases = [
        r#"{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}"#.to_owned(),
        r#"{{define "a"}}{{include "a" .}}{{end}}{{include "a" .}}"#.to_owned(),
        r#"{{define "a"}}{{template "a" .}}{{template "a" .}}{{end}}{{template "a" .}}"#.to_owned(),
        "{{range 1000000000000}}{{end}}".to_owned(),
        "{{range until 1000}}{{range until 1000}}{{range until 1000}}x{{end}}{{end}}{{end}}".to_owned(),
        r#"{{repeat 1000000000 "x"}}"#.to_owned(),
        "{{until 100000000000}}".to_owned(),
        r#"{{$s := "x"}}{{range until 100}}{{$s = print $s $s}}{{end}}"#.to_owned(),
        r#"{{$l := list 1}}{{range until 100}}{{$l = concat $l $l}}{{end}}"#.to_owned(),
        r#"{{$m := .map}}{{range until 300}}{{$m = dict "a" $m "b" $m}}{{end}}{{toJson $m}}"#.to_owned(),
        r#"{{$m := list 1 2}}{{range until 200}}{{$m = list $m $m}}{{end}}{{$m}}"#.to_owned(),
        format!(r#"{{{{printf "{}" 1}}}}"#, "%1000000[1]d".repeat(500)),
        r#"{{range until 10000}}{{bcrypt "x"}}{{end}}"#.to_owned(),
        r#"{{regexReplaceAll "" (repeat 1000000 "x") (repeat 1000 "y")}}"#.to_owned(),
        r#"{{$y := "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f]"}}{{fromYaml $y | toJson}}"#.to_owned(),
        format!(r#"{{{{define "a"}}}}{}{{{{template "a" {deep}}}}}{}{{{{end}}}}{{{{template "a" 1}}}}"#, "{{if .}}".repeat(400), "{{end}}".repeat(400)),
    ];
    for text in cases {
        let began = Instant::now();
        let error = render(&text).expect_err(&text[..text.len().min(80)]);
        let limited = matches!(error.cause, Cause::Limit(_));
        assert!(
            limited || error.message.contains("nest"),
            "{}",
            &error.message[..error.message.len().min(300)]
        );
        assert!(error.line >= 1 && error.column.is_some());
        // Unoptimised builds on busy machines get time; optimised ones stay below a second.
        assert!(began.elapsed() < Duration::from_secs(20), "{}", &text[..text.len().min(80)]);
    }
}

#[test]
fn data_that_contains_itself_is_refused_and_freed() {
    let error = render(r#"{{$_ := set .map "self" .map}}{{.map}}"#).expect_err("cyclic data prints");
    assert!(error.message.contains("contains itself"), "{error}");
    assert!(render(r#"{{$_ := set .map "root" .}}{{toYaml .}}"#).is_err());
    assert_eq!(render(r#"{{$_ := set .map "root" .}}{{.map.root.map.root.name}}"#).unwrap(), "web");
}

#[test]
fn deep_nesting_neither_parses_nor_drops_onto_the_stack() {
    let open = "{{if .name}}".repeat(1900);
    let close = "{{end}}".repeat(1900);
    assert_eq!(render(&format!("{open}deep{close}")).unwrap(), "deep");
    assert!(render(&"{{if 1}}".repeat(5000)).is_err());
    assert!(render(&format!("{{{{{}", "(".repeat(100_000))).is_err());
    let nested = r#"{{$l := list}}{{range until 200000}}{{$l = list $l}}{{end}}{{len $l}}"#;
    assert_eq!(render(nested).unwrap(), "1");
}

#[test]
fn limits_are_the_callers_to_set() {
    let template = Template::parse("t", "{{range 100}}xxxxxxxxxx{{end}}", &Options::default()).unwrap();
    let run = |limits: &Limits| template.execute(&Value::Nil, &Functions::default(), limits);
    assert_eq!(run(&Limits::default()).unwrap().len(), 1000);
    let cause = run(&Limits { steps: 50, ..Limits::default() }).unwrap_err().cause.clone();
    assert_eq!(cause, Cause::Limit(Exceeded::Steps(50)));
    let cause = run(&Limits { output: 99, ..Limits::default() }).unwrap_err().cause.clone();
    assert_eq!(cause, Cause::Limit(Exceeded::Output(99)));
}

#[test]
fn errors_say_what_was_nil_and_what_kind() {
    let error = render("a\n  {{ .map.a.b.c }}").unwrap_err();
    assert_eq!((error.line, error.column), (2, Some(9)));
    assert_eq!(error.snippet.as_deref(), Some(".map.a.b.c"));
    assert_eq!(error.cause, Cause::NilField { field: "c".to_owned() });
    let error = render("{{ .name.x }}").unwrap_err();
    assert_eq!(error.cause, Cause::NoField { field: "x".to_owned(), type_name: "interface {}".to_owned() });
    let error = render("{{ upper 1 }}").unwrap_err();
    assert!(error.message.ends_with("expected string; found 1"), "{error}");
}

#[test]
fn templates_are_shared_between_threads() {
    let template = Template::parse("t", "{{.}}", &Options::default()).unwrap();
    let text = std::thread::scope(|scope| {
        let run = || template.execute(&Value::from("x"), &Functions::default(), &Limits::default()).unwrap();
        scope.spawn(run).join().unwrap()
    });
    assert_eq!(text, "x");
}

#[test]
fn reproducible_context_repeats_itself() {
    let template = Template::parse(
        "t",
        "{{randAlphaNum 20}} {{uuidv4}} {{now}} {{randomChoice \"a\" \"b\"}}",
        &Options::default(),
    );
    let template = template.unwrap();
    let run = || {
        let context = transom_gotemplate::Reproducible::new(1_700_000_000_000_000_000, 7);
        let functions = Functions::default().with_context(std::sync::Arc::new(context));
        template.execute(&Value::Nil, &functions, &Limits::default()).unwrap()
    };
    assert_eq!(run(), run());
    assert!(run().contains("2023-11-14 22:13:20 +0000 UTC"), "{}", run());
}

fn fragment() -> impl Strategy<Value = String> {
    let pieces = [
        "{{",
        "}}",
        "{{- ",
        " -}}",
        "(",
        ")",
        "|",
        ".",
        "$",
        "$x",
        ":=",
        "=",
        ",",
        "\"a\"",
        "`b`",
        "'c'",
        "1",
        "-2.5e3",
        "0x",
        "nil",
        "true",
        "if ",
        "range ",
        "with ",
        "else ",
        "end",
        "define ",
        "template ",
        "block ",
        "break",
        "continue",
        ".name",
        ".list",
        ".map",
        "printf ",
        "\"%d %s\" ",
        "index ",
        "dict ",
        "toYaml ",
        "fromYaml ",
        "\"a: [1\" ",
        "regexFind ",
        "\"(\" ",
        "semver ",
        "set ",
        "merge ",
        "toDate ",
        "urlParse ",
        "\\",
        "\n",
        " ",
        "é",
        "/*",
        "*/",
        "\u{0}",
        "trunc ",
        "substr ",
        "slice ",
        "wrap ",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_fragments_never_panic(text in fragment()) {
        let _ = render(&text);
        let _ = render(&format!("{{{{{text}}}}}"));
    }

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,60}") {
        let _ = render(&text);
        let _ = render(&format!("{{{{ {text} }}}}"));
    }

    #[test]
    fn arbitrary_formats_never_panic(format in "%[-+# 0]{0,3}[0-9*]{0,2}(\\.[0-9*]{0,2})?.", number in any::<f64>()) {
        let args = [Value::Float(number), Value::int(number as i64), Value::str("é"), Value::Nil];
        let _ = transom_go::fmt::sprintf(&format, &args);
    }
}
