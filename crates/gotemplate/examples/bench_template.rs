//! Times one execution of a template file over empty data, in microseconds:
//! `cargo run --profile fast --example bench_template -- FILE`.

use std::io::Write;
use std::time::Instant;

use transom_gotemplate::{Functions, Limits, Options, Template, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).unwrap_or("conformance/gotemplate/bench.tmpl".to_owned());
    let text = std::fs::read_to_string(file)?;
    let template = Template::parse("manifests", &text, &Options::default())?;
    let (functions, limits) = (Functions::default(), Limits::default());
    let run = || template.execute(&Value::map::<&str>([]), &functions, &limits);
    for _ in 0..200 {
        run()?;
    }
    const ROUNDS: u32 = 2000;
    let began = Instant::now();
    for _ in 0..ROUNDS {
        run()?;
    }
    let micros = began.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS);
    writeln!(std::io::stdout(), "{micros:.1}")?;
    Ok(())
}
