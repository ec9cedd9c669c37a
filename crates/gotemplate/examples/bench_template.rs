//! Times how a template file is parsed, and rendered over empty data, in microseconds:
//! `cargo run --profile fast --example bench_template -- FILE`.

use std::io::Write;
use std::time::Instant;

use transom_gotemplate::{Error, Functions, Limits, Options, Template, Value};

const ROUNDS: u32 = 2000;

/// The mean time of a step, after some that do not count.
fn each(step: impl Fn() -> Result<(), Error>) -> Result<f64, Error> {
    for _ in 0..ROUNDS / 10 {
        step()?;
    }
    let began = Instant::now();
    for _ in 0..ROUNDS {
        step()?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).unwrap_or("conformance/gotemplate/bench.tmpl".to_owned());
    let text = std::fs::read_to_string(file)?;
    let (options, functions, limits) = (Options::default(), Functions::default(), Limits::default());
    let parsing = each(|| Template::parse("manifests", &text, &options).map(drop))?;
    let template = Template::parse("manifests", &text, &options)?;
    let rendering = each(|| template.execute(&Value::map::<&str>([]), &functions, &limits).map(drop))?;
    writeln!(std::io::stdout(), "{parsing:.1} {rendering:.1}")?;
    Ok(())
}
