//! Answers templates given as JSON lines, in the form of the Go oracle (see conformance/gotemplate).

use std::io::{BufRead, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use transom_gotemplate::{Functions, Limits, Options, Template, Value};

fn respond(question: &serde_json::Value) -> Result<String, String> {
    let mut options = Options::default();
    if let Some(option) = question["option"].as_str().filter(|option| !option.is_empty()) {
        options.set(option)?;
    }
    let text = question["template"].as_str().unwrap_or_default();
    let template = Template::parse("manifests", text, &options).map_err(|error| error.to_string())?;
    let data = Value::from(&question["data"]);
    template.execute(&data, &Functions::default(), &Limits::default()).map_err(|error| error.to_string())
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let question: serde_json::Value = serde_json::from_str(&line?)?;
        let answer = match respond(&question) {
            Ok(output) => serde_json::json!({ "output": STANDARD.encode(output), "error": "" }),
            Err(error) => serde_json::json!({ "output": "", "error": error }),
        };
        writeln!(out, "{answer}")?;
    }
    Ok(())
}
