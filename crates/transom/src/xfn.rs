//! `transom xfn`: runs container functions, from the command line or for control planes.

use crate::containers::ContainerArgs;
use crate::xpkg::origin;
use clap::{Args, Subcommand, ValueEnum};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use transom_console::{Failure, duration};
use transom_machine::{DockerCredentials, HostResources};
use transom_object::error_chain::chain;
use transom_xapi::inline::{ContainerFunction, Network, Resources, SecretName};
use transom_xfn::{Programs, RunError, RunSettings, RunnerAddress, WantedImage};

/// Run container functions: programs of images that read and write a document
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  transom xfn run registry.example.org/label:v1 function-io.yaml   run a function once
  transom xfn start                                                run functions for control planes")]
pub(crate) enum Xfn {
    Run(Box<Run>),
    Start(Box<Start>),
}

/// Run a container function once, and print what it writes
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xfn run registry.example.org/label:v1 function-io.yaml
  transom xfn run registry.example.org/label:v1 - --network-policy Runner")]
pub(crate) struct Run {
    /// The image
    #[arg(value_name = "IMAGE")]
    image: String,

    /// The document that the function reads; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// How long the function may take
    #[arg(long, default_value = "30s", value_parser = duration, value_name = "DURATION")]
    timeout: Duration,

    /// When the image is pulled
    #[arg(long, default_value = "IfNotPresent", value_enum, value_name = "POLICY")]
    image_pull_policy: Policy,

    /// Isolated: only the loopback interface; Runner: the network of this process
    #[arg(long, default_value = "Isolated", value_enum, value_name = "POLICY")]
    network_policy: NetworkPolicy,

    /// Memory limit of the function
    #[arg(long, default_value = "128Mi", value_name = "QUANTITY")]
    memory: String,

    /// CPU limit of the function, in processors
    #[arg(long, default_value = "100m", value_name = "QUANTITY")]
    cpu: String,

    /// Run the function this many times, and print how long that takes instead of what it writes
    #[arg(long, value_name = "N")]
    measure: Option<usize>,

    /// How many run at a time, with --measure
    #[arg(long, default_value_t = 1, requires = "measure", value_name = "N")]
    parallel: usize,

    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Policy {
    IfNotPresent,
    Always,
    Never,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum NetworkPolicy {
    Isolated,
    Runner,
}

/// Serve Crossplane's protocol of runners (ContainerizedFunctionRunnerService v1alpha1)
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xfn start                                  at Crossplane's default, an abstract socket
  transom xfn start --address unix:/run/xfn.sock     for steps with runner.endpoint: unix:/run/xfn.sock")]
pub(crate) struct Start {
    /// Where to listen: HOST:PORT, unix:PATH, or @NAME for an abstract socket. There is no encryption and no
    /// authentication: every program that reaches it can run images
    #[arg(long, default_value = "@crossplane/fn/default.sock", value_parser = RunnerAddress::parse, value_name = "ADDRESS")]
    address: RunnerAddress,

    /// The kind of the address [default: what the address says]
    #[arg(long, value_enum, value_name = "NETWORK")]
    network: Option<ListenNetwork>,

    #[command(flatten)]
    logging: transom_console::LogArgs,

    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum ListenNetwork {
    Unix,
    Tcp,
}

#[derive(Args)]
// Crossplane's name of the flag.
#[command(mut_arg("container_runtime", |arg| arg.visible_alias("runtime")))]
struct PlaceArgs {
    /// Where images are kept [default: a folder of the user's caches]
    #[arg(short = 'c', long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,

    // Crossplane's registry of images that name none.
    #[arg(short = 'r', long, hide = true, value_parser = no_default_registry, value_name = "HOST")]
    registry: Option<String>,

    #[command(flatten)]
    containers: ContainerArgs,
}

/// Refuses the flag: every image names its registry.
fn no_default_registry(host: &str) -> Result<String, String> {
    Err(format!("there is no default registry; write it into the name of the image: {host}/IMAGE:TAG"))
}

impl PlaceArgs {
    #[cfg(target_os = "linux")]
    fn programs(&self) -> Result<Arc<Programs>, Failure> {
        let (registry, config) = origin::remote_for_images()?;
        let place = HostResources {
            dir: origin::containers_folder(self.cache_dir.as_deref())?,
            images: Arc::new(registry),
            credentials: Arc::new(DockerCredentials(config)),
            grace: Duration::ZERO,
        };
        Ok(self.containers.programs(place))
    }

    #[cfg(not(target_os = "linux"))]
    fn programs(&self) -> Result<Arc<Programs>, Failure> {
        Err(Failure::new("containers run on Linux only"))
    }
}

pub(crate) fn run(command: Xfn) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::new(format!("cannot start the runtime: {e}")))?;
    match command {
        Xfn::Run(options) => runtime.block_on(options.run()),
        Xfn::Start(options) => {
            options.logging.init();
            runtime.block_on(options.serve())
        }
    }
}

impl Run {
    async fn run(&self) -> Result<ExitCode, Failure> {
        let input = read(&self.file)?;
        let policy = match self.image_pull_policy {
            Policy::IfNotPresent => "IfNotPresent",
            Policy::Always => "Always",
            Policy::Never => "Never",
        };
        let network = (self.network_policy == NetworkPolicy::Runner).then(|| "Runner".to_owned());
        let limits = [("cpu", &self.cpu), ("memory", &self.memory)];
        let function = ContainerFunction {
            image: self.image.clone(),
            image_pull_policy: Some(policy.to_owned()),
            image_pull_secrets: Vec::<SecretName>::new(),
            network: Some(Network { policy: network }),
            resources: Some(Resources {
                limits: limits.map(|(name, limit)| (name.to_owned(), limit.clone())).into(),
            }),
            ..ContainerFunction::default()
        };
        let cannot = |error: &(dyn std::error::Error + 'static)| {
            Failure::new(format!("cannot run {}: {}", self.image, chain(error)))
        };
        let settings = RunSettings::of(&function).map_err(|e| cannot(&e))?;
        let settings = RunSettings { timeout: self.timeout, ..settings };
        let programs = self.place.programs()?;
        let credentials = programs.credentials(&self.image).await.map_err(|e| cannot(&e))?;
        let image = WantedImage { reference: self.image.clone(), policy: settings.policy, credentials };
        let output = programs.run(&image, &settings, false, input.clone()).await;
        let output = output.map_err(|e| cannot(&e))?;
        let Some(runs) = self.measure else { return transom_console::print(&output) };
        let began = Instant::now();
        let times: Vec<f64> = stream::iter(0..runs)
            .map(|_| {
                let (input, programs, image, settings) = (input.clone(), &programs, &image, &settings);
                async move {
                    let began = Instant::now();
                    programs.run(image, settings, false, input).await?;
                    Ok::<f64, RunError>(began.elapsed().as_secs_f64())
                }
            })
            .buffer_unordered(self.parallel.max(1))
            .try_collect()
            .await
            .map_err(|e| cannot(&e))?;
        transom_console::print(measured(times, self.parallel, began.elapsed()).as_bytes())
    }
}

/// The median of the times of runs, and how many ended in a second.
fn measured(mut times: Vec<f64>, parallel: usize, took: Duration) -> String {
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or_default() * 1000.0;
    let rate = times.len() as f64 / took.as_secs_f64();
    let runs = times.len();
    format!("{}\n", json!({"runs": runs, "parallel": parallel, "median_ms": median, "per_second": rate}))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut input = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut input).map(|_| input)
    } else {
        std::fs::read(path)
    };
    read.map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())))
}

impl Start {
    /// The kind of network, if it is given, is that of the address.
    fn check_network(&self) -> Result<(), Failure> {
        let wrong = |what| Failure::new(format!("--address is not {what}, which --network asks for"));
        match (self.network, &self.address) {
            (Some(ListenNetwork::Tcp), RunnerAddress::Unix(_)) => {
                Err(wrong("an address of TCP").remedy("write --address HOST:PORT"))
            }
            (Some(ListenNetwork::Unix), RunnerAddress::Tcp(_)) => {
                Err(wrong("a Unix socket").remedy("write --address unix:PATH or --address @NAME"))
            }
            _ => Ok(()),
        }
    }

    async fn serve(&self) -> Result<ExitCode, Failure> {
        self.check_network()?;
        let programs = self.place.programs()?;
        let failed = |e: std::io::Error| Failure::new(format!("cannot serve container functions: {e}"));
        let mut terminated =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).map_err(failed)?;
        let stop = async move {
            tokio::select! {
                _ = terminated.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        };
        let ready = || tracing::info!(address = ?self.address, "runs container functions");
        transom_xfn::serve(programs, &self.address, stop, ready).await.map_err(failed)?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: Xfn,
    }

    fn parse(arguments: &[&str]) -> Result<Xfn, String> {
        let line = Line::try_parse_from([&["xfn"], arguments].concat());
        line.map(|line| line.command).map_err(|e| e.to_string())
    }

    #[test]
    fn flags_of_crossplane_are_known() {
        let refused = |network: &str, address: &str| {
            let arguments = ["start", "--network", network, "--address", address, "--runtime", "crun"];
            let Ok(Xfn::Start(start)) = parse(&arguments) else { panic!("{arguments:?}") };
            start.check_network().err().map(|failure| failure.to_string())
        };
        assert_eq!(refused("unix", "@crossplane/fn/default.sock"), None);
        assert_eq!(refused("unix", "/run/xfn.sock"), None);
        assert_eq!(refused("tcp", "127.0.0.1:1234"), None);
        assert!(refused("unix", "127.0.0.1:1234").is_some_and(|why| why.contains("--address unix:PATH")));
        assert!(refused("tcp", "/run/xfn.sock").is_some_and(|why| why.contains("--address HOST:PORT")));
        for arguments in [["start", "-r", "a.b"].as_slice(), &["run", "i", "f", "--registry", "a.b"]] {
            let why = parse(arguments).err().expect("it is refused");
            assert!(why.contains("write it into the name of the image: a.b/IMAGE:TAG"), "{why}");
        }
        assert!(
            parse(&["run", "i", "f", "--runtime", "docker"]).is_err(),
            "it is the flag --container-runtime"
        );
    }
}
