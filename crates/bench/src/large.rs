//! Composite resources of thousands of resources, and what others wait for in the meantime.
//!
//! A template composes as many ConfigMaps as the composite resource asks for. While that goes on, a probe opens a
//! connection of its own for `/livez` again and again, as a kubelet does, and a client reads an object by one that it
//! keeps.

use super::Figure;
use super::client::Client;
use super::load::Timings;
use super::plane::running::OwnPlane;
use super::process;
use super::target::Target;
use crate::failure::Failure;
use bytes::Bytes;
use clap::Args;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const GROUP: &str = "large.transom.example";
/// How long to wait before the next probe.
const PAUSE: Duration = Duration::from_millis(5);
/// A composite resource that takes longer will never be ready.
const PATIENCE: Duration = Duration::from_secs(600);

/// Measure a control plane that composes thousands of resources, and the latency of other requests meanwhile
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom-bench large                                      2 composite resources of 10,000 resources each
  transom-bench large --composites 8 --resources 3000      8 of 3,000 each")]
pub(super) struct Options {
    /// Number of composite resources that are composed at the same time
    #[arg(long, default_value_t = 2, value_name = "N")]
    composites: usize,

    /// Number of resources that each of them is composed of
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    resources: usize,
}

pub(super) async fn run_all(transom: &Path, options: &Options) -> Result<Vec<Figure>, Failure> {
    let data_dir = std::env::temp_dir().join(format!("transom-bench-large-{}", std::process::id()));
    let figures = measure(transom, options, &data_dir).await;
    let _ = std::fs::remove_dir_all(&data_dir);
    figures
}

async fn measure(transom: &Path, options: &Options, data_dir: &Path) -> Result<Vec<Figure>, Failure> {
    let own = OwnPlane::start(transom, data_dir)?;
    let plane = own.plane();
    let mut client = Client::connect(&plane.target).await?;
    for (collection, object) in platform() {
        client.create(collection, encoded(&object)).await?;
    }
    while client.ask(Method::GET, &sites(), "", Bytes::new()).await?.0 != StatusCode::OK {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let done = AtomicBool::new(false);
    let (cpu, reconciles) = (plane.cpu()?, plane.counters().await?.reconciles);
    let working = async {
        let took = compose(&plane.target, options).await;
        done.store(true, Ordering::Relaxed);
        took
    };
    let probing = repeat(&done, async || probe(&plane.target).await);
    let reading = repeat(&done, async || client.get("/api/v1/namespaces/default").await.map(drop));
    let (took, probes, reads) = tokio::join!(working, probing, reading);
    let (took, probes, reads) = (took?, probes?, reads?);
    let (cpu, peak) = (plane.cpu()? - cpu, process::peak_memory(own.pid())? / process::MB);
    let reconciles = plane.counters().await?.reconciles - reconciles;
    let resources = options.composites * options.resources;
    Ok(vec![
        Figure::new("all ready after", took.as_secs_f64(), "s"),
        Figure::new("reconciles", reconciles as f64, ""),
        Figure::new("processor time for each resource", cpu.as_secs_f64() * 1e3 / resources as f64, "ms"),
        Figure::new("peak memory", peak, "MB"),
        Figure::new("probe on a new connection, median", probes.percentile(0.5), "ms"),
        Figure::new("probe on a new connection, 99 %", probes.percentile(0.99), "ms"),
        Figure::new("probe on a new connection, longest", probes.percentile(1.0), "ms"),
        Figure::new("get, median", reads.percentile(0.5), "ms"),
        Figure::new("get, 99 %", reads.percentile(0.99), "ms"),
        Figure::new("get, longest", reads.percentile(1.0), "ms"),
    ])
}

/// Creates the composite resources and waits until all are ready.
async fn compose(target: &Arc<Target>, options: &Options) -> Result<Duration, Failure> {
    let mut client = Client::connect(target).await?;
    let began = Instant::now();
    for number in 0..options.composites {
        client.create(&sites(), encoded(&site(number, options.resources))).await?;
    }
    for number in 0..options.composites {
        let path = format!("{}/site-{number}", sites());
        // Asked seldom: an object with thousands of references is large.
        while !is_ready(&serde_json::from_slice(&client.get(&path).await?).unwrap_or_default()) {
            if began.elapsed() > PATIENCE {
                return Err(Failure::new(format!("{path} is not ready after {} s", PATIENCE.as_secs())));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(began.elapsed())
}

/// Does something again and again, and times it, until all is done.
async fn repeat(
    done: &AtomicBool,
    mut work: impl AsyncFnMut() -> Result<(), Failure>,
) -> Result<Timings, Failure> {
    let (began, mut each) = (Instant::now(), Vec::new());
    while !done.load(Ordering::Relaxed) {
        let started = Instant::now();
        work().await?;
        each.push(started.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    Ok(Timings::new(each, began.elapsed()))
}

async fn probe(target: &Arc<Target>) -> Result<(), Failure> {
    Client::connect(target).await?.get("/livez").await.map(drop)
}

fn sites() -> String {
    format!("/apis/{GROUP}/v1/namespaces/default/sites")
}

fn site(number: usize, pages: usize) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Site",
        "metadata": {"name": format!("site-{number}"), "namespace": "default"},
        "spec": {"pages": pages},
    })
}

fn is_ready(site: &Value) -> bool {
    let conditions = site["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

const TEMPLATE: &str = r#"
{{- range $i := until (int .observed.composite.resource.spec.pages) }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  annotations:
    gotemplating.fn.crossplane.io/composition-resource-name: page-{{ $i }}
    gotemplating.fn.crossplane.io/ready: "True"
data:
  page: "{{ $i }}"
{{- end }}
"#;

fn platform() -> [(&'static str, Value); 3] {
    let function = json!({
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "Function",
        "metadata": {"name": "go-templating"},
        "spec": {"package": "example.org/function-go-templating:v1"},
    });
    let spec = json!({"type": "object", "properties": {"pages": {"type": "integer"}}});
    let definition = json!({
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("sites.{GROUP}")},
        "spec": {
            "scope": "Namespaced",
            "group": GROUP,
            "names": {"plural": "sites", "kind": "Site"},
            "versions": [{
                "name": "v1", "served": true, "referenceable": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    });
    let input = json!({
        "apiVersion": "gotemplating.fn.crossplane.io/v1beta1",
        "kind": "GoTemplate",
        "source": "Inline",
        "inline": {"template": TEMPLATE},
    });
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": "sites"},
        "spec": {
            "compositeTypeRef": {"apiVersion": format!("{GROUP}/v1"), "kind": "Site"},
            "mode": "Pipeline",
            "pipeline": [{"step": "pages", "functionRef": {"name": "go-templating"}, "input": input}],
        },
    });
    [
        ("/apis/pkg.crossplane.io/v1/functions", function),
        ("/apis/apiextensions.crossplane.io/v2/compositeresourcedefinitions", definition),
        ("/apis/apiextensions.crossplane.io/v1/compositions", composition),
    ]
}

fn encoded(value: &Value) -> Bytes {
    transom_object::json::encode(value).into()
}
