//! Answers templates given as JSON lines, in the form of the Go oracle (see conformance/gotemplate).

use std::io::{BufRead, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use transom_gotemplate::{Functions, Key, Limits, Options, Template, Type, Value};

/// Functions in place of those that function-go-templating has, the same as the oracle's.
fn functions() -> Functions {
    let mut functions = Functions::default();
    let text = |value: &Value| value.as_str().map(|text| text.lossy().into_owned()).unwrap_or_default();
    functions.register("setResourceNameAnnotation", &[Type::Str], move |_, args| {
        Ok(Value::from(format!("resource-name: {}", text(&args[0]))))
    });
    functions.register("getComposedResource", &[Type::Map, Type::Str], |_, args| {
        Ok(Value::map([("kind", args[1].clone())]))
    });
    functions.register("getCompositeResource", &[Type::Map], |_, args| {
        let path = ["observed", "composite", "resource"];
        Ok(path.iter().fold(args[0].clone(), |value, field| match value {
            Value::Map(map) => map.get(&Key::str(*field)).unwrap_or(Value::Nil),
            _ => Value::Nil,
        }))
    });
    functions.register("getResourceCondition", &[Type::Str, Type::Map], |_, args| {
        Ok(Value::map([("Type", args[0].clone()), ("Status", Value::str("True"))]))
    });
    functions.register("getExtraResources", &[Type::Map, Type::Str], |_, args| {
        Ok(Value::list(vec![args[1].clone()]))
    });
    functions
}

fn respond(functions: &Functions, question: &serde_json::Value) -> Result<String, String> {
    let mut options =
        Options { functions: functions.names().map(str::to_owned).collect(), ..Options::default() };
    if let Some(option) = question["option"].as_str().filter(|option| !option.is_empty()) {
        options.set(option).map_err(|error| error.to_string())?;
    }
    let text = question["template"].as_str().unwrap_or_default();
    let template = Template::parse("manifests", text, &options).map_err(|error| error.to_string())?;
    let data = Value::from(&question["data"]);
    template.execute(&data, functions, &Limits::default()).map_err(|error| error.to_string())
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let functions = functions();
    for line in std::io::stdin().lock().lines() {
        let question: serde_json::Value = serde_json::from_str(&line?)?;
        let answer = match respond(&functions, &question) {
            Ok(output) => serde_json::json!({ "output": STANDARD.encode(output), "error": "" }),
            Err(error) => serde_json::json!({ "output": "", "error": error }),
        };
        writeln!(out, "{answer}")?;
    }
    Ok(())
}
