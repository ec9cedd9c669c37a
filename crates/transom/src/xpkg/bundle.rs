//! `transom xpkg bundle`: packages and all that they depend on, in one file.

use super::ResultFormat;
use super::origin::{self, Opened, Origin};
use crate::plane::is_builtin;
use clap::Args;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use transom_console::Failure;
use transom_oci::layout::BundleWriter;
use transom_packages::constraint::{VersionConstraint, highest, versions};
use transom_packages::meta::Dependency;
use transom_packages::{Digest, Reference, stream};

/// How often a choice may be changed because of what was found later.
const ROUNDS_MAX: usize = 100;
/// The most packages in a bundle.
const PACKAGES_MAX: usize = 1000;

/// Collect packages with all their dependencies and signatures in one file
///
/// The file is a tar archive of an OCI layout. `--packages FILE` of the other commands reads it
/// instead of registries, without a network. Of each dependency, the highest version is taken that all packages which
/// depend on it allow.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xpkg bundle registry.example.org/acme/platform:v1.0.0 -o platform.tar
  transom xpkg bundle registry.example.org/acme/platform:v1.0.0 -o platform.tar --without-builtins
  transom xpkg inspect registry.example.org/acme/platform:v1.0.0 --packages platform.tar")]
pub(crate) struct Bundle {
    /// The packages: references with a tag or digest
    #[arg(value_name = "REF", required = true)]
    packages_wanted: Vec<String>,

    /// The file to write
    #[arg(short = 'o', long, value_name = "FILE")]
    output: PathBuf,

    /// Leave out functions that are built into Transom, which a plane runs without their packages
    #[arg(long)]
    without_builtins: bool,

    #[command(flatten)]
    result: ResultFormat,

    #[command(flatten)]
    origin: Origin,
}

/// Whether a dependency is left out: a function that a plane runs without its package.
pub(super) fn is_left_out(source: &str, without_builtins: bool) -> bool {
    without_builtins && Reference::parse_source(source).is_ok_and(|source| is_builtin(&source))
}

pub(crate) async fn run(options: Bundle) -> Result<ExitCode, Failure> {
    let wanted = options.packages_wanted.iter().map(|text| origin::reference(text));
    let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
    let opened = options.origin.open().await?;
    let mut resolution = Resolution::new(&opened, &wanted, options.without_builtins)?;
    resolution.resolve().await?;
    let chosen = resolution.chosen();
    let failed = |e| opened.explain(&e);
    let mut writer = BundleWriter::create(&options.output).await.map_err(failed)?;
    let mut packages = Vec::new();
    for (reference, is_root) in chosen {
        let with = opened.credentials(&reference).await?;
        let digest = writer.add(opened.images(), &reference, &with).await.map_err(failed)?;
        if is_root {
            writer.mark_root(&reference);
        }
        let signatures = writer.add_signatures(opened.images(), &reference, &digest, &with).await;
        let signatures = signatures.map_err(failed)?;
        let tagged = Reference { digest: None, ..reference.clone() };
        let name = if reference.tag.is_some() { tagged } else { reference };
        super::progress::clear();
        anstream::eprintln!("{name} {digest}, signatures and attestations: {signatures}");
        packages.push(json!({
            "package": name.to_string(), "digest": digest.as_str(), "signatures": signatures, "requested": is_root,
        }));
    }
    writer.finish().await.map_err(failed)?;
    let path = options.output.display().to_string();
    options.result.print(&json!({"path": path, "packages": packages}), &format!("{path}\n"))
}

/// A package of the bundle: its reference with its digest, and what it depends on.
struct Member {
    reference: Reference,
    dependencies: Vec<Dependency>,
}

/// Which version of each package goes into the bundle.
pub(super) struct Resolution<'a> {
    opened: &'a Opened,
    /// What the user asked for, by source: not up for choice.
    fixed: BTreeMap<String, Vec<Reference>>,
    /// What was chosen, by source.
    choices: BTreeMap<String, Reference>,
    /// What was read, by reference.
    members: BTreeMap<String, Member>,
    tags: BTreeMap<String, Vec<String>>,
    without_builtins: bool,
}

/// A dependency, and the package that has it.
struct Need {
    by: String,
    range: VersionConstraint,
    text: String,
}

impl<'a> Resolution<'a> {
    pub(super) fn new(
        opened: &'a Opened,
        wanted: &[Reference],
        without_builtins: bool,
    ) -> Result<Self, Failure> {
        let mut fixed: BTreeMap<String, Vec<Reference>> = BTreeMap::new();
        for reference in wanted {
            fixed.entry(reference.source()).or_default().push(reference.clone());
        }
        let (choices, members, tags) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Self { opened, fixed, choices, members, tags, without_builtins })
    }

    /// Chooses until every dependency of what is chosen is satisfied by what is chosen.
    pub(super) async fn resolve(&mut self) -> Result<(), Failure> {
        for _ in 0..ROUNDS_MAX {
            let needs = self.needs().await?;
            let mut choices = BTreeMap::new();
            for (source, needs) in &needs {
                if !self.is_fixed(source, needs)? {
                    choices.insert(source.clone(), self.choose(source, needs).await?);
                }
            }
            if choices == self.choices {
                return Ok(());
            }
            self.choices = choices;
        }
        Err(Failure::new(format!("no set of versions was found in {ROUNDS_MAX} rounds"))
            .remedy("name the versions of the dependencies on the command line"))
    }

    /// What all packages that were asked for or chosen depend on, by source.
    async fn needs(&mut self) -> Result<BTreeMap<String, Vec<Need>>, Failure> {
        let roots: Vec<Reference> =
            self.fixed.values().flatten().chain(self.choices.values()).cloned().collect();
        let mut needs: BTreeMap<String, Vec<Need>> = BTreeMap::new();
        for reference in roots {
            let by = reference.to_string();
            for dependency in self.member(&reference).await?.dependencies.clone() {
                if is_left_out(&dependency.package, self.without_builtins) {
                    continue;
                }
                let range = VersionConstraint::parse(&dependency.version)
                    .map_err(|e| Failure::new(format!("{by}: {}: {e}", dependency.package)))?;
                let need = Need { by: by.clone(), range, text: dependency.version };
                needs.entry(dependency.package).or_default().push(need);
            }
        }
        Ok(needs)
    }

    /// Whether the user named the version, which must then be one that is needed.
    fn is_fixed(&self, source: &str, needs: &[Need]) -> Result<bool, Failure> {
        let Some(fixed) = self.fixed.get(source) else { return Ok(false) };
        let unmet = needs.iter().find(|need| {
            let allows = |r: &Reference| {
                let tag = r.tag.as_deref().is_some_and(|tag| need.range.allows(tag));
                tag || r.digest.as_ref().is_some_and(|digest| need.range.allows(digest.as_str()))
            };
            !fixed.iter().any(allows)
        });
        match unmet {
            None => Ok(true),
            Some(need) => Err(Failure::new(format!("{} needs {source} in version {}", need.by, need.text))
                .remedy("ask for such a version, or leave the package out of the command: it is added")),
        }
    }

    async fn choose(&mut self, source: &str, needs: &[Need]) -> Result<Reference, Failure> {
        let repository = Reference::parse_source(source)
            .map_err(|e| Failure::new(format!("a dependency of {}: {e}", by(needs))))?;
        if let Some(digest) = needs.iter().find_map(|need| need.range.digest()) {
            let others = needs.iter().filter(|need| !need.range.allows(digest.as_str()));
            return match others.map(|need| &need.text).next() {
                None => Ok(repository.at(digest.clone())),
                Some(other) => Err(conflict(source, needs, &format!("{digest} is not {other}"))),
            };
        }
        let tags = self.tags(&repository).await?;
        let known = versions(&tags);
        let ranges: Vec<&VersionConstraint> = needs.iter().map(|need| &need.range).collect();
        match highest(&known, &ranges) {
            Some(version) => {
                repository.at_version(&version.original).map_err(|e| Failure::new(format!("{source}: {e}")))
            }
            None => {
                let first: Vec<&str> = known.iter().rev().take(5).map(|v| v.original.as_str()).collect();
                Err(conflict(source, needs, &format!("there are {}", first.join(", "))))
            }
        }
    }

    async fn tags(&mut self, repository: &Reference) -> Result<Vec<String>, Failure> {
        let source = repository.source();
        if let Some(tags) = self.tags.get(&source) {
            return Ok(tags.clone());
        }
        let with = self.opened.credentials(repository).await?;
        let tags = self.opened.registry().tags(repository, &with).await;
        let tags = tags.map_err(|e| match is_builtin(repository) {
            true => self
                .opened
                .explain(&e)
                .remedy("--without-builtins leaves it out: a plane needs no package for it"),
            false => self.opened.explain(&e),
        })?;
        self.tags.insert(source, tags.clone());
        Ok(tags)
    }

    /// What a package depends on. Read once.
    async fn member(&mut self, reference: &Reference) -> Result<&Member, Failure> {
        let key = reference.to_string();
        if !self.members.contains_key(&key) {
            if self.members.len() >= PACKAGES_MAX {
                return Err(Failure::new(format!("more than {PACKAGES_MAX} packages are needed")));
            }
            let member = self.read(reference).await?;
            self.members.insert(key.clone(), member);
        }
        self.members.get(&key).ok_or_else(|| Failure::new(format!("{key} was not read")))
    }

    async fn read(&self, reference: &Reference) -> Result<Member, Failure> {
        let failed = |e| self.opened.explain(&e);
        let with = self.opened.credentials(reference).await?;
        let digest: Digest = self.opened.registry().resolve(reference, &with).await.map_err(failed)?;
        let fetched =
            self.opened.registry().fetch(&reference.at(digest.clone()), &with).await.map_err(failed)?;
        let package =
            stream::parse(&fetched.content).map_err(|e| Failure::new(format!("{reference}: {e}")))?;
        // The tag names it in the bundle; the digest is what was read.
        let reference = Reference { digest: Some(digest), ..reference.clone() };
        Ok(Member { reference, dependencies: package.meta.dependencies })
    }

    /// All packages of the bundle, and whether the user asked for them.
    pub(super) fn chosen(&self) -> Vec<(Reference, bool)> {
        let fixed = self.fixed.values().flatten().map(|reference| (reference, true));
        let all = fixed.chain(self.choices.values().map(|reference| (reference, false)));
        let member = |(reference, is_root): (&Reference, bool)| {
            Some((self.members.get(&reference.to_string())?.reference.clone(), is_root))
        };
        all.filter_map(member).collect()
    }
}

fn by(needs: &[Need]) -> String {
    let names: Vec<&str> = needs.iter().map(|need| need.by.as_str()).collect();
    names.join(", ")
}

fn conflict(source: &str, needs: &[Need], problem: &str) -> Failure {
    let listed: Vec<String> = needs.iter().map(|need| format!("{} needs {}", need.by, need.text)).collect();
    Failure::new(format!("no version of {source} fits: {}; {problem}", listed.join(", ")))
        .remedy("bundle other versions of these packages, or push a version that fits")
}
