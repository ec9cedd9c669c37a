//! Composite resources of thousands of resources, and the latency of other requests in the meantime.
//!
//! A template composes as many ConfigMaps as the spec of the composite resource sets. In the meantime a probe opens a new
//! connection for `/livez` again and again, as a kubelet does, one client reads an object and another one patches
//! an object, each over one connection. Patches are written by the same sequencer as the composed resources.

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
/// Between the response to a timed request and the next one.
const REQUEST_INTERVAL: Duration = Duration::from_millis(5);
/// A composite resource that takes longer will never be ready.
const READY_TIMEOUT: Duration = Duration::from_secs(600);
/// Between two reads of a composite resource that is not ready: with thousands of references it is large.
const READY_POLL_INTERVAL: Duration = Duration::from_millis(100);
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

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
    let mut reader = Client::connect(&plane.target).await?;
    let mut writer = Client::connect(&plane.target).await?;
    for (collection, object) in platform() {
        writer.create(collection, encoded(&object)).await?;
    }
    while reader.ask(Method::GET, &sites(), "", Bytes::new()).await?.0 != StatusCode::OK {
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
    let reading = repeat(&done, async || reader.get("/api/v1/namespaces/default").await.map(drop));
    let mut patches = 0;
    let patching = repeat(&done, async || {
        patches += 1;
        patch(&mut writer, patches).await
    });
    let (took, probes, reads, writes) = tokio::join!(working, probing, reading, patching);
    let took = took?;
    let (cpu, peak) = (plane.cpu()? - cpu, process::peak_memory(own.pid())? / process::MB);
    let reconciles = plane.counters().await?.reconciles - reconciles;
    let resources = options.composites * options.resources;
    let mut figures = vec![
        Figure::new("all ready after", took.as_secs_f64(), "s"),
        Figure::new("reconciles", reconciles as f64, ""),
        Figure::new("processor time for each resource", cpu.as_secs_f64() * 1e3 / resources as f64, "ms"),
        Figure::new("peak memory", peak, "MB"),
    ];
    figures.extend(latency("probe on a new connection", &probes?));
    figures.extend(latency("get", &reads?));
    figures.extend(latency("patch", &writes?));
    Ok(figures)
}

fn latency(request: &str, timings: &Timings) -> [Figure; 3] {
    [("median", 0.5), ("99 %", 0.99), ("longest", 1.0)]
        .map(|(name, p)| Figure::new(format!("{request}, {name}"), timings.percentile(p), "ms"))
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
        while !is_ready(&serde_json::from_slice(&client.get(&path).await?).unwrap_or_default()) {
            if began.elapsed() > READY_TIMEOUT {
                return Err(Failure::new(format!("{path} is not ready after {} s", READY_TIMEOUT.as_secs())));
            }
            tokio::time::sleep(READY_POLL_INTERVAL).await;
        }
    }
    Ok(began.elapsed())
}

/// Repeats a request until `done`, and times it.
async fn repeat(
    done: &AtomicBool,
    mut request: impl AsyncFnMut() -> Result<(), Failure>,
) -> Result<Timings, Failure> {
    let (began, mut each) = (Instant::now(), Vec::new());
    while !done.load(Ordering::Relaxed) {
        let started = Instant::now();
        request().await?;
        each.push(started.elapsed());
        tokio::time::sleep(REQUEST_INTERVAL).await;
    }
    Ok(Timings::new(each, began.elapsed()))
}

/// Changes the object on each call: a patch that changes nothing is not written.
async fn patch(client: &mut Client, number: usize) -> Result<(), Failure> {
    let change = json!({"data": {"number": number.to_string()}});
    client.merge(&format!("{CONFIG_MAPS}/patched"), &change).await.map(drop)
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

fn platform() -> [(&'static str, Value); 4] {
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
    let patched = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "patched"}});
    [
        (CONFIG_MAPS, patched),
        ("/apis/pkg.crossplane.io/v1/functions", function),
        ("/apis/apiextensions.crossplane.io/v2/compositeresourcedefinitions", definition),
        ("/apis/apiextensions.crossplane.io/v1/compositions", composition),
    ]
}

fn encoded(value: &Value) -> Bytes {
    transom_object::json::encode(value).into()
}
