//! The options of Go templates, and what missing keys are without any: as function-go-templating sets them.

use crate::Case;
use crate::dice::Dice;
use serde_json::{Value, json};
use transom_gotemplate::{Functions, Limits, Options, Template};

pub(crate) fn case(dice: &mut Dice) -> Case {
    // All numbers of a protobuf request are doubles.
    let data = json!({"a": {"b": {"c": "x"}, "n": null, "l": [1.0, {"k": "v"}], "e": {}}, "s": "text", "f": false, "z": 0.0, "i": 3.0});
    let text: String = (0..=dice.below(3)).map(|_| action(dice)).collect();
    let options = dice.percent(60).then(|| {
        let all = [
            "missingkey=default",
            "missingkey=invalid",
            "missingkey=zero",
            "missingkey=error",
            "missingkey=x",
            "x=y",
            "missingkey",
            "",
        ];
        let sound = &all[..4];
        (0..dice.below(3))
            .map(|_| if dice.percent(90) { dice.one(sound) } else { dice.one(&all) })
            .collect::<Vec<_>>()
    });
    let answer = answer(&text, options.as_deref(), &data);
    (json!({"text": text, "data": data, "options": options}), answer)
}

fn path(dice: &mut Dice) -> String {
    let depth = 1 + dice.below(4);
    (0..depth)
        .map(|_| format!(".{}", dice.pick(&["a", "b", "c", "n", "l", "e", "s", "f", "z", "missing", "i"])))
        .collect()
}

pub(crate) fn action(dice: &mut Dice) -> String {
    let (one, other) = (path(dice), path(dice));
    match dice.below(8) {
        0 => format!("{{{{ if {one} }}}}yes{{{{ else }}}}no{{{{ end }}}}"),
        1 => format!("{{{{ with {one} }}}}{{{{ {other} }}}}{{{{ end }}}}"),
        2 => format!("{{{{ range $k, $v := {one} }}}}{{{{ $k }}}}={{{{ $v }}}},{{{{ end }}}}"),
        3 => format!("{{{{ index . \"a\" \"{}\" }}}}", dice.pick(&["b", "missing", "n"])),
        4 => format!("{{{{ $x := {one} }}}}{{{{ $x }}}}|{{{{ $x{other} }}}}"),
        5 => format!("{{{{ printf \"%v\" {one} }}}}"),
        6 => format!("{{{{ and {one} {other} }}}}{{{{ or {one} {other} }}}}{{{{ not {one} }}}}"),
        _ => format!("<{{{{ {one} }}}}>"),
    }
}

fn answer(text: &str, set: Option<&[&str]>, data: &Value) -> String {
    let mut options = Options { plain: true, ..Options::default() };
    let refused = set.unwrap_or_default().iter().try_for_each(|option| options.set(option)).err();
    let Ok(template) = Template::parse("manifests", text, &options) else { return "error: parse".to_owned() };
    if let Some(problem) = refused {
        return format!("option: {problem}");
    }
    match template.execute(&data.into(), &Functions::default(), &Limits::default()) {
        Ok(output) => format!("output: {output}"),
        Err(error) => format!("error: {error}"),
    }
}
