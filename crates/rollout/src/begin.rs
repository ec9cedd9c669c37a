//! `transom rollout plan` and `start`: from what the user wants to a plan, and from a plan to a record.

use crate::host::FunctionHostArgs;
use crate::plan::{self, Planned};
use crate::preview::Previewer;
use crate::record::{Phase, Record};
use crate::storage::{Held, Stored};
use crate::survey::{Platform, Selected, Wanted, select};
use crate::waves::Waves;
use crate::{At, STOPPED, carry_out};
use clap::Args;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;
use transom_console::{Failure, Format, duration};
use transom_engine::Cluster;
use transom_object::labels::Selector;

/// Composite resources whose changes are computed at the same time.
const MAX_PARALLEL_PREVIEWS: usize = 8;

/// Which composite resources are moved, where, and in which order.
#[derive(Args)]
struct Scope {
    /// The Composition
    composition: String,

    /// The revision to move to: its name, its number, or `latest`
    #[arg(long, value_name = "REVISION", default_value = "latest")]
    to: String,

    /// Move only those that are at this revision
    #[arg(long, value_name = "REVISION")]
    from: Option<String>,

    /// Waves, comma-separated: a cumulative number or percentage, or a label such as ring=canary
    #[arg(long, value_name = "WAVES", value_parser = Waves::parse, default_value = "1,10%,50%,100%")]
    waves: Waves,

    /// Move only those with these labels
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = Selector::parse, default_value = "", hide_default_value = true)]
    selector: Selector,

    /// Move only those in this namespace, or whose claim is in it
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Show every change of every composite resource
    #[arg(long)]
    full: bool,
}

/// Show what a rollout would change, without changing anything
///
/// Every composite resource is composed with the new revision from what exists, and the control plane checks the results by
/// dry runs. The exit code is 2 if one of them would fail.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom rollout plan apps                                  to the newest revision
  transom rollout plan apps --to 3 --from 2 -l region=eu     from one revision to another, in one region
  transom rollout plan apps --waves ring=canary,50%,100%     the first wave by a label
  transom rollout plan apps --full -o json                   for programs")]
pub struct Plan<A: Args> {
    #[command(flatten)]
    scope: Scope,

    #[command(flatten)]
    functions: A,

    #[command(flatten)]
    at: At,
}

/// Start a rollout, and wait until it is done
///
/// Shows the plan and asks before anything is written. Each wave is moved once all before it are ready.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom rollout start apps                                          to the newest revision, in four waves
  transom rollout start apps --to apps-1a2b3c4 --waves 5,100% --yes   without asking
  transom rollout start apps --rollback-on-failure --timeout 2m       all back, if a wave is not ready in time")]
pub struct Start<A: Args> {
    #[command(flatten)]
    scope: Scope,

    #[command(flatten)]
    functions: A,

    /// How long each wave may take to become ready
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    timeout: Duration,

    /// Restore the previous revisions of all composite resources if a wave fails
    #[arg(long)]
    rollback_on_failure: bool,

    /// When all is done, let those that were pinned follow the newest revision again, as `unpin` does
    #[arg(long)]
    unpin: bool,

    /// Do not show the plan, and do not ask
    #[arg(short = 'y', long)]
    yes: bool,

    #[command(flatten)]
    at: At,
}

/// What is to be done.
struct Intent {
    platform: Platform,
    /// The name of the revision.
    to: String,
    selected: Selected,
}

impl Scope {
    async fn survey(&self, cluster: &Cluster) -> Result<Intent, Failure> {
        let platform = Platform::read(cluster, &self.composition).await?;
        let to = platform.destination(&self.to)?.metadata.clone();
        let from = self.from.as_deref().map(|from| platform.revision(from)).transpose()?;
        let wanted = Wanted {
            labels: self.selector.clone(),
            namespace: self.namespace.clone(),
            from: from.map(|from| from.metadata.name.clone()),
        };
        let instances = platform.instances(cluster).await?;
        let selected = select(instances, &wanted, &to, &self.waves);
        Ok(Intent { to: to.name, platform, selected })
    }
}

impl Intent {
    /// Adds what each move would change.
    async fn preview(self, cluster: &Cluster, functions: &impl FunctionHostArgs) -> Result<Planned, Failure> {
        let Self { platform, to, selected } = self;
        let revision = platform.destination(&to)?;
        let previewer = Previewer::new(cluster, revision, platform.layout, functions).await?;
        let previews = stream::iter(&selected.targets)
            .map(|(_, instance)| previewer.preview(instance))
            .buffered(MAX_PARALLEL_PREVIEWS);
        let previews = previews.try_collect().await;
        previewer.stop().await;
        let previews = previews?;
        Ok(Planned { platform, to, selected, previews })
    }

    fn record<A: Args>(self, options: &Start<A>) -> Record {
        let Self { platform, to, selected } = self;
        Record {
            composition: platform.composition.metadata.name,
            kind: platform.kind,
            layout: platform.layout,
            claim_kind: platform.claim_kind,
            to,
            timeout: options.timeout,
            rollback_on_failure: options.rollback_on_failure,
            unpin: options.unpin,
            phase: Phase::Progressing,
            wave: 0,
            problem: None,
            paused: false,
            holder: None,
            renewals: 0,
            targets: selected.targets.into_iter().map(|(target, _)| target).collect(),
        }
    }
}

pub(crate) async fn plan<A: FunctionHostArgs>(options: Plan<A>) -> Result<ExitCode, Failure> {
    let cluster = options.at.control_plane.open().await?;
    let planned = options.scope.survey(&cluster).await?;
    let planned = planned.preview(&cluster, &options.functions).await?;
    let value = plan::value(&planned);
    let full = options.scope.full;
    transom_console::print(options.at.output.write(&value, |value| plan::text(value, full)).as_bytes())?;
    Ok(if planned.fails() { ExitCode::from(STOPPED) } else { ExitCode::SUCCESS })
}

pub(crate) async fn start<A: FunctionHostArgs>(options: Start<A>) -> Result<ExitCode, Failure> {
    let storage = options.at.open().await?;
    let earlier = storage.find(&options.scope.composition).await?;
    if let Some(earlier) = &earlier {
        must_be_over(earlier)?;
    }
    let intent = options.scope.survey(&storage.cluster).await?;
    if intent.selected.targets.is_empty() {
        return nothing_to_move(&intent, &options.at.output);
    }
    let intent = if options.yes { intent } else { confirmed(intent, &options, &storage.cluster).await? };
    let held = Held::begin(storage, intent.record(&options), earlier.as_ref()).await?;
    carry_out(held, options.at.output).await
}

/// An earlier rollout that is not over holds what its composite resources had before.
fn must_be_over(earlier: &Stored) -> Result<(), Failure> {
    let Record { composition, phase, to, .. } = &earlier.record;
    if phase.is_final() {
        return Ok(());
    }
    Err(Failure::new(format!("a rollout of Composition {composition:?} to {to} is {}", phase.name())).remedy(
        format!(
            "continue it with `transom rollout resume {composition}`, or undo it with `transom rollout rollback {composition}`"
        ),
    ))
}

fn nothing_to_move(intent: &Intent, output: &Format) -> Result<ExitCode, Failure> {
    let Intent { platform, to, selected } = intent;
    let value = serde_json::json!({
        "composition": platform.composition.metadata.name, "to": to, "phase": Phase::Done.name(),
        "already": selected.already, "skipped": plan::skipped(selected), "waves": [],
    });
    let text = |_: &serde_json::Value| {
        let skipped: Vec<String> =
            selected.skipped.iter().map(|(key, why)| format!("\n  {key}: {why}")).collect();
        format!(
            "nothing is to be moved: {} {} at {to} already, and {} cannot be moved{}\n",
            selected.already,
            if selected.already == 1 { "is" } else { "are" },
            skipped.len(),
            skipped.concat()
        )
    };
    transom_console::print(output.write(&value, text).as_bytes())
}

/// Prints the plan and asks for confirmation. Without a terminal, `--yes` must have been given.
async fn confirmed<A: FunctionHostArgs>(
    intent: Intent,
    options: &Start<A>,
    cluster: &Cluster,
) -> Result<Intent, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(
            "a rollout is started only after its plan was confirmed, and stdin is not a terminal",
        )
        .remedy("add --yes, and see `transom rollout plan` for what it does"));
    }
    let planned = intent.preview(cluster, &options.functions).await?;
    let shown = plan::text(&plan::value(&planned), options.scope.full);
    transom_console::print_to_stderr(&format!("{shown}\nStart? [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    match read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        true => Ok(Intent { platform: planned.platform, to: planned.to, selected: planned.selected }),
        false => Err(Failure::new("not started")),
    }
}
