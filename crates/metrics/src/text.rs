//! From OpenMetrics, as `prometheus-client` writes it, to the text format of Prometheus.

use std::fmt::Write;

struct Family<'a> {
    name: String,
    metric_type: &'a str,
    help: &'a str,
    samples: Vec<Sample>,
}

/// Samples are compared by their labels, then by their place in a histogram. Buckets stay in the order of their bounds.
struct Sample {
    labels: String,
    place: u8,
    line: String,
}

/// Families are ordered by name, their series by label values.
pub(crate) fn prometheus_text(open_metrics: &str) -> String {
    let mut families: Vec<Family<'_>> = Vec::new();
    let mut help = "";
    for line in open_metrics.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, metric_type)) =
            line.strip_prefix("# TYPE ").and_then(|typed| typed.split_once(' '))
        {
            let suffix = if metric_type == "counter" { "_total" } else { "" };
            families.push(Family { name: format!("{name}{suffix}"), metric_type, help, samples: Vec::new() });
        } else if let Some(family) = families.last_mut().filter(|_| !line.starts_with('#')) {
            family.samples.extend(sample(line, family.metric_type == "histogram"));
        }
    }
    families.sort_by(|a, b| a.name.cmp(&b.name));
    let mut out = String::with_capacity(open_metrics.len() + 64 * families.len());
    for Family { name, metric_type, help, mut samples } in families {
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {metric_type}\n");
        samples.sort_by(|a, b| (&a.labels, a.place).cmp(&(&b.labels, b.place)));
        samples.iter().for_each(|sample| out.push_str(&sample.line));
    }
    out
}

fn sample(line: &str, of_histogram: bool) -> Option<Sample> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    let labels = labels.strip_suffix('}').unwrap_or(labels);
    let mut sample = Sample { labels: labels.to_owned(), place: 0, line: String::new() };
    if !of_histogram {
        sample.line = format!("{line}\n");
    } else if let Some((bound, others)) = labels.strip_prefix("le=\"").and_then(|rest| rest.split_once('"')) {
        // The bound is the first label, and becomes the last one.
        let others = others.strip_prefix(',').unwrap_or(others);
        let comma = if others.is_empty() { "" } else { "," };
        sample.line = format!("{name}{{{others}{comma}le=\"{}\"}} {value}\n", number(bound));
        sample.labels = others.to_owned();
    } else {
        sample.place = if name.ends_with("_sum") { 1 } else { 2 };
        sample.line = format!("{series} {}\n", number(value));
    }
    Some(sample)
}

/// A number without the `.0` that OpenMetrics requires.
fn number(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => number.to_string(),
        _ => text.to_owned(),
    }
}
