//! The default options of function-go-templating, which hold where an input has none: through the function itself.

use crate::Case;
use crate::dice::Dice;
use crate::template;
use serde_json::{Value, json};
use transom_builtins::GoTemplating;
use transom_function::Function;
use transom_function::testing::RequestBuilder;

/// A manifest around what a template renders.
const MANIFEST: &str = "apiVersion: v1\nkind: T\nmetadata:\n  annotations:\n    gotemplating.fn.crossplane.io/composition-resource-name: t\nrendered: |-\n  ";

pub(crate) fn case(dice: &mut Dice) -> Case {
    let resource = json!({"a": {"b": {"c": "x"}, "n": null, "l": ["k"], "e": {}}, "s": "text", "f": false});
    let action = template::action(dice);
    let text = format!("{MANIFEST}<{{{{ with .observed.composite.resource }}}}{action}{{{{ end }}}}>");
    let defaults = joined(dice);
    let options: Option<Vec<String>> = dice.percent(30).then(|| {
        let count = dice.below(3);
        (0..count).map(|_| if dice.percent(20) { joined(dice) } else { option(dice).to_owned() }).collect()
    });
    let answer = answer(&text, options.as_ref(), &defaults, &resource);
    let data = json!({"observed": {"composite": {"resource": resource}}});
    (json!({"text": text, "data": data, "options": options, "defaults": defaults}), answer)
}

fn option(dice: &mut Dice) -> &'static str {
    if dice.percent(75) {
        return dice.pick(&[
            "missingkey=default",
            "missingkey=invalid",
            "missingkey=zero",
            "missingkey=error",
        ]);
    }
    dice.pick(&[
        "",
        " ",
        "missingkey=error ",
        " missingkey=error",
        "missingkey",
        "missingkey=",
        "=",
        "=error",
        "missingkey==error",
        "missingkey=error=zero",
        "MissingKey=error",
        "missingkey=ERROR",
        "x=y",
        "x",
        "é",
        "missingkey=zero;missingkey=error",
        "\t",
        "missingkey=\"error\"",
        "[]",
        "null",
    ])
}

/// Options as the flag of the function has them.
fn joined(dice: &mut Dice) -> String {
    let separator = dice.pick(&[",", ",", ",", ",", ", ", ",,", ";", "\n"]);
    let mut text = (0..dice.below(4)).map(|_| option(dice)).collect::<Vec<_>>().join(separator);
    match dice.below(20) {
        0 => text.push(','),
        1 => text.insert(0, ','),
        _ => {}
    }
    text
}

fn answer(text: &str, options: Option<&Vec<String>>, defaults: &str, resource: &Value) -> String {
    let mut input = json!({"source": "Inline", "inline": {"template": text}});
    if let Some(options) = options {
        input["options"] = json!(options);
    }
    let function = GoTemplating::default().with_default_options(defaults);
    let request = RequestBuilder::new(resource.clone()).input(input).build();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let response = runtime
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(function.run(request)).map_err(|error| error.to_string()));
    let response = match response {
        Ok(response) => response,
        Err(error) => return format!("no response: {error}"),
    };
    let Some(result) = response.results.first() else {
        let response = serde_json::to_value(&response).unwrap_or_default();
        let rendered = &response["desired"]["resources"]["t"]["resource"]["rendered"];
        return rendered
            .as_str()
            .map_or_else(|| format!("no text: {response}"), |text| format!("output: {text}"));
    };
    // The original's message is the first line, unless an option has line breaks.
    let message = &result.message;
    let refused = "cannot apply template options: panic occurred while applying template options: ";
    if let Some(problem) = message.strip_prefix(refused) {
        format!("option: {problem}")
    } else if message.starts_with("invalid function input: cannot parse the provided templates: ") {
        "error: parse".to_owned()
    } else {
        let line = message.lines().next().unwrap_or_default();
        format!("error: {}", line.strip_prefix("cannot execute template: ").unwrap_or(line))
    }
}
