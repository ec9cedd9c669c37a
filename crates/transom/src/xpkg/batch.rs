//! `transom xpkg batch`: the packages of a family of providers, which share a base image and differ in their CRDs and
//! their program.

use super::ResultFormat;
use super::files::{self, FileText, Selection};
use super::origin::{self, Trust};
use super::push;
use super::stream::{self, Stream};
use clap::Args;
use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use transom_console::Failure;
use transom_gotemplate::{Functions, Limits, Options, Template};
use transom_object::yaml;
use transom_oci::credentials::DockerConfig;
use transom_oci::remote::RemoteRegistry;
use transom_oci::tarball::{self, ImageFile, TarImage, Tarball};
use transom_packages::{Digest, Reference, stream::render};

/// Where the program of a provider is in its image.
const PROGRAM: &str = "/usr/local/bin/provider";
/// Stands for all CRDs, or for all examples.
const ALL: &str = "*";

/// Build and push the packages of a family of providers
///
/// Each package has the base image of its platform, a meta object made by a Go template, the CRDs whose file names begin
/// with its name and a dot, its examples, and its program. Prints the reference and digest of each package.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom xpkg batch --family-base-image base --provider-name provider-acme --smaller-providers db,net --family-package-url-format registry.example.org/acme/%s:v1.0.0 -p bin
  transom xpkg batch --family-base-image base.tar --provider-name provider-acme --family-package-url-format registry.example.org/acme/%s:v1.0.0 -p bin --platform linux_amd64 --build-only --store-packages monolith -o out")]
pub(crate) struct Batch {
    /// The base image: a file as `docker save` writes it, or NAME for the files NAME-ARCH.tar, or the images NAME-ARCH of the
    /// Docker daemon, of all platforms
    #[arg(long, value_name = "FILE|NAME")]
    family_base_image: PathBuf,

    /// The name of the family, such as provider-aws
    #[arg(long, value_name = "NAME")]
    provider_name: String,

    /// Where packages are pushed to: a reference in which %s stands for the name of the package
    #[arg(long, value_name = "FORMAT")]
    family_package_url_format: String,

    /// The members of the family
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "monolith")]
    smaller_providers: Vec<String>,

    /// How many packages are made at a time; 0 for all of them
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    concurrency: usize,

    /// How often a push that failed is repeated
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    push_retry: u32,

    /// The platforms, as OS_ARCH
    #[arg(long, value_name = "PLATFORM", value_delimiter = ',', default_value = "linux_amd64,linux_arm64", value_parser = platform)]
    platform: Vec<String>,

    /// The folder with the programs, in folders of their platforms: PLATFORM/NAME
    #[arg(short = 'p', long, value_name = "DIR")]
    provider_bin_root: PathBuf,

    /// The folder for packages that are stored, in folders of their platforms
    #[arg(short = 'o', long, value_name = "DIR", default_value = ".")]
    output_dir: PathBuf,

    /// The members whose packages are stored
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    store_packages: Vec<String>,

    /// The Go template of the meta object. It knows .Service and .Name
    #[arg(long, value_name = "FILE", default_value = "./package/crossplane.yaml.tmpl")]
    package_metadata_template: PathBuf,

    /// A variable of the template; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = push::annotation)]
    template_var: Vec<(String, String)>,

    /// A YAML file with variables of the template for each member
    #[arg(long, value_name = "FILE")]
    service_metadata: Option<PathBuf>,

    /// The folder with the CRDs
    #[arg(long, value_name = "DIR", default_value = "./package/crds")]
    crd_root: PathBuf,

    /// The folder with examples, in folders of the members
    #[arg(short = 'e', long, value_name = "DIR", default_value = "./examples")]
    examples_root: PathBuf,

    /// Files to leave out
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    ignore: Vec<String>,

    /// The CRDs of a member have another prefix than its name; * for all CRDs
    #[arg(long, value_name = "NAME=PREFIX", value_parser = push::annotation)]
    crd_group_override: Vec<(String, String)>,

    /// The examples of a member are in another folder; * for all examples
    #[arg(long, value_name = "NAME=FOLDER", value_parser = push::annotation)]
    examples_group_override: Vec<(String, String)>,

    /// The package of a member has another name than FAMILY-MEMBER
    #[arg(long, value_name = "NAME=REPOSITORY", value_parser = push::annotation)]
    package_repo_override: Vec<(String, String)>,

    /// What the name of the family is followed by where packages are pushed to
    #[arg(long, value_name = "SUFFIX", env = "PROVIDER_NAME_SUFFIX_FOR_PUSH", default_value = "")]
    provider_name_suffix_for_push: String,

    /// Push nothing
    #[arg(long)]
    build_only: bool,

    #[command(flatten)]
    result: ResultFormat,

    #[command(flatten)]
    trust: Trust,
}

fn platform(text: &str) -> Result<String, String> {
    match text.split('_').collect::<Vec<_>>()[..] {
        [os, arch] if !os.is_empty() && !arch.is_empty() => Ok(text.to_owned()),
        _ => Err("write it like linux_amd64".to_owned()),
    }
}

pub(crate) async fn run(options: Batch) -> Result<ExitCode, Failure> {
    let family = Family::read(&options).await?;
    let (registry, config) = origin::remote(&options.trust)?;
    let services = options.smaller_providers.iter();
    let made = futures_util::stream::iter(services.map(|service| family.make(service, &registry, &config)));
    let at_a_time =
        if options.concurrency == 0 { options.smaller_providers.len() } else { options.concurrency };
    let made: Vec<Result<Value, Failure>> = made.buffered(at_a_time.max(1)).collect().await;
    let (done, failures): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
    let done: Vec<Value> = done.into_iter().flatten().collect();
    let line = |one: &Value| Some(format!("{} {}\n", one["package"].as_str()?, one["digest"].as_str()?));
    let lines: String = done.iter().filter_map(line).collect();
    options.result.print(&json!({"packages": done}), &lines)?;
    Failure::all(failures.into_iter().filter_map(Result::err))?;
    Ok(ExitCode::SUCCESS)
}

/// What all packages of a family share.
struct Family<'a> {
    options: &'a Batch,
    /// The base images, in the order of the platforms.
    bases: Vec<TarImage>,
    template: Template,
    variables: Map<String, Value>,
    scratch: Scratch,
}

impl<'a> Family<'a> {
    async fn read(options: &'a Batch) -> Result<Self, Failure> {
        let path = &options.package_metadata_template;
        let text = read_text(path)?;
        let named = path.display().to_string();
        let template = Template::parse(&named, &text, &Options::default());
        let variables = match &options.service_metadata {
            None => Map::new(),
            Some(path) => variables(path)?,
        };
        let scratch = Scratch(options.output_dir.join(format!(".xpkg-batch-{}", std::process::id())));
        std::fs::create_dir_all(&scratch.0)
            .map_err(|e| Failure::new(format!("cannot create {}: {e}", scratch.0.display())))?;
        let mut bases = Vec::new();
        for platform in &options.platform {
            bases.push(base(&options.family_base_image, platform, &scratch.0).await?);
        }
        Ok(Self {
            options,
            bases,
            template: template.map_err(|e| Failure::new(e.to_string()))?,
            variables,
            scratch,
        })
    }

    /// The name of a member's package.
    fn repository(&self, service: &str) -> String {
        match find(&self.options.package_repo_override, service) {
            Some(name) => name.to_owned(),
            None => format!("{}-{service}", self.options.provider_name),
        }
    }

    /// Where a member's package is pushed to.
    fn target(&self, service: &str) -> Result<Reference, Failure> {
        let Batch { provider_name, provider_name_suffix_for_push: suffix, .. } = self.options;
        let name = match (suffix.as_str(), find(&self.options.package_repo_override, service)) {
            ("", _) => self.repository(service),
            (suffix, Some(name)) => format!("{name}-{suffix}"),
            (suffix, None) => format!("{provider_name}-{suffix}-{service}"),
        };
        let format = &self.options.family_package_url_format;
        if !format.contains("%s") {
            return Err(Failure::new(format!("--family-package-url-format {format} has no %s"))
                .remedy("write it like registry.example.org/acme/%s:v1.0.0"));
        }
        origin::reference(&format.replacen("%s", &name, 1))
    }

    /// Builds the packages of a member, and pushes them unless that is not wanted. Returns what was made.
    async fn make(
        &self,
        service: &str,
        registry: &RemoteRegistry,
        config: &DockerConfig,
    ) -> Result<Value, Failure> {
        let files = self.build(service)?;
        let stored = files.iter().filter(|_| self.is_stored(service));
        let stored: Vec<String> = stored.map(|path| path.display().to_string()).collect();
        let mut made = json!({"name": self.repository(service), "files": stored});
        if self.options.build_only {
            return Ok(made);
        }
        let reference = self.target(service)?;
        let digest = self.push(&reference, &files, registry, config).await?;
        made["package"] = reference.to_string().into();
        made["digest"] = digest.as_str().into();
        Ok(made)
    }

    /// Pushes the packages of a member, one for each platform.
    async fn push(
        &self,
        reference: &Reference,
        files: &[PathBuf],
        registry: &RemoteRegistry,
        config: &DockerConfig,
    ) -> Result<Digest, Failure> {
        let with = origin::credentials(config, reference).await?;
        let mut images =
            files.iter().map(|path| push::load(path, &BTreeMap::new())).collect::<Result<Vec<_>, _>>()?;
        // A base image that does not say what it is for is for the platform that it was given for.
        for ((_, config), platform) in images.iter_mut().zip(&self.options.platform) {
            if let (true, Some((os, arch))) = (config.architecture.is_empty(), platform.split_once('_')) {
                (config.os, config.architecture) = (os.to_owned(), arch.to_owned());
            }
        }
        let retries = self.options.push_retry;
        let mut attempt = 0;
        loop {
            match push::upload(registry, reference, &images, &BTreeMap::new(), &with).await {
                Err(error) if attempt < retries => {
                    attempt += 1;
                    super::progress::clear();
                    anstream::eprintln!("{error}; attempt {} of {}", attempt + 1, retries + 1);
                }
                result => return result.map_err(|e| origin::explain(&e)),
            }
        }
    }

    fn is_stored(&self, service: &str) -> bool {
        self.options.store_packages.iter().any(|stored| stored == service)
    }

    /// Builds the packages of a member, one for each platform, and returns their files.
    fn build(&self, service: &str) -> Result<Vec<PathBuf>, Failure> {
        let package = self.stream(service)?.parse()?;
        let rendered = render(&package);
        let examples = self.examples(service)?;
        let version = match self.options.family_package_url_format.rsplit_once(':') {
            Some((_, version)) if !version.contains('/') => version,
            _ => "latest",
        };
        let mut paths = Vec::new();
        for (platform, base) in self.options.platform.iter().zip(&self.bases) {
            let program = self.options.provider_bin_root.join(platform).join(service);
            let content = std::fs::read(&program).map_err(|e| {
                Failure::new(format!("cannot read {}: {e}", program.display()))
                    .remedy("-p names the folder with the programs, as PLATFORM/NAME")
            })?;
            let content = [ImageFile { path: PROGRAM, mode: 0o755, content: &content }];
            let image = tarball::Package {
                stream: rendered.as_bytes(),
                examples: examples.as_deref(),
                base: Some(base),
            };
            let image = tarball::build_with(image, &content, &self.scratch.0);
            let image = image.map_err(|e| origin::explain(&e))?;
            let is_stored = self.is_stored(service);
            let root = if is_stored { &self.options.output_dir } else { &self.scratch.0 };
            let name = format!("{}-{service}-{version}.xpkg", self.options.provider_name);
            let path = root.join(platform).join(name);
            let created = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            created
                .map_err(|e| Failure::new(format!("cannot create the folder of {}: {e}", path.display())))?;
            tarball::write(&[(&image, &[])], &path).map_err(|e| origin::explain(&e))?;
            if is_stored {
                anstream::eprintln!("{}", path.display());
            }
            paths.push(path);
        }
        Ok(paths)
    }

    /// The meta object and the CRDs of a member.
    fn stream(&self, service: &str) -> Result<Stream, Failure> {
        let mut data = self.variables.get(service).and_then(Value::as_object).cloned().unwrap_or_default();
        data.insert("Service".to_owned(), service.into());
        data.insert("Name".to_owned(), self.repository(service).into());
        data.extend(self.options.template_var.iter().map(|(key, value)| (key.clone(), value.clone().into())));
        let data = transom_gotemplate::Value::from(Value::Object(data));
        let text = self.template.execute(&data, &Functions::default(), &Limits::default());
        let text = text.map_err(|e| Failure::new(format!("{service}: {e}")))?;
        if text.contains("<no value>") {
            return Err(Failure::new(format!(
                "{service}: {} uses a variable that is not set",
                self.template.name()
            ))
            .remedy("set it with --template-var KEY=VALUE or --service-metadata"));
        }
        let path = self.options.package_metadata_template.clone();
        let mut all = vec![FileText { path, bytes: text.into_bytes() }];
        let prefix = match find(&self.options.crd_group_override, service) {
            Some(ALL) => String::new(),
            Some(prefix) => format!("{prefix}."),
            None => format!("{service}."),
        };
        let root = &self.options.crd_root;
        let found = Selection::new(root, Some(&self.options.examples_root), &self.options.ignore)?.files()?;
        let is_own =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix));
        let own: Vec<PathBuf> = found.into_iter().filter(is_own).collect();
        all.extend(files::read(&own)?);
        Ok(Stream::join(root, all))
    }

    fn examples(&self, service: &str) -> Result<Option<Vec<u8>>, Failure> {
        let folder = match find(&self.options.examples_group_override, service) {
            Some(ALL) => self.options.examples_root.clone(),
            Some(folder) => self.options.examples_root.join(folder),
            None => self.options.examples_root.join(service),
        };
        if !folder.is_dir() {
            return Ok(None);
        }
        let found = Selection::new(&folder, None, &self.options.ignore)?.files()?;
        stream::examples(files::read(&found)?).map(Some)
    }
}

fn find<'l>(list: &'l [(String, String)], key: &str) -> Option<&'l str> {
    list.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

fn read_text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())))
}

/// The variables of all members.
fn variables(path: &Path) -> Result<Map<String, Value>, Failure> {
    let named = path.display();
    let documents = yaml::read_documents(&read_text(path)?)
        .map_err(|e| Failure::new(format!("{named}:{}:{}: {}", e.line, e.column, e.message)))?;
    let Some(Value::Object(members)) = documents.into_iter().next().map(|document| document.value) else {
        return Err(Failure::new(format!("{named} is not a map")).remedy("write NAME: {VARIABLE: VALUE}"));
    };
    for (member, variables) in &members {
        for (variable, value) in variables.as_object().into_iter().flatten() {
            if !can_be_variable(value) {
                let what =
                    format!("{named}: {member}.{variable} is neither a single value nor a list of these");
                return Err(Failure::new(what).remedy("give each value a variable of its own"));
            }
        }
    }
    Ok(members)
}

/// Variables are single values and lists of them, as in the original.
fn can_be_variable(value: &Value) -> bool {
    match value {
        Value::Object(_) => false,
        Value::Array(items) => items.iter().all(can_be_variable),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// The base image of a platform: a file, or an image of the Docker daemon, which is written to a folder.
async fn base(named: &Path, platform: &str, scratch: &Path) -> Result<TarImage, Failure> {
    let arch = platform.split('_').next_back().unwrap_or_default();
    let beside = |ending: &str| {
        let mut name = named.file_name().unwrap_or_default().to_owned();
        name.push(format!("-{arch}{ending}"));
        named.with_file_name(name)
    };
    let candidates = [beside(".tar"), beside(""), named.to_owned()];
    let path = match candidates.into_iter().find(|path| path.is_file()) {
        Some(path) => path,
        None => {
            let (image, saved) =
                (format!("{}-{arch}", named.display()), scratch.join(format!("base-{arch}.tar")));
            let (first, named) = (beside(".tar").display().to_string(), named.display());
            origin::from_daemon(&image, &saved).await.map_err(|failure| {
                Failure::new(format!("there is neither {first} nor {named}, and {failure}"))
                    .remedy(format!("save the base image with `docker save IMAGE-{arch} -o {first}`"))
            })?;
            saved
        }
    };
    let image = Tarball::open(&path).and_then(|archive| archive.single());
    image.map_err(|e| origin::explain(&e).remedy("give the file that `docker save IMAGE -o FILE` writes"))
}

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // A failure leaves files in the temporary directory, which is harmless.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
