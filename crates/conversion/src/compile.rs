//! Rules bound to the schemas of the versions they are about.

use crate::convert::{Computed, Step};
use crate::path::FieldPath;
use crate::rules::{Expression, Problem, Rule, RuleError, Rules};
use serde_json::Value;
use std::collections::VecDeque;
use transom_cel::{Env, Program};
use transom_object::field::{self, Path};
use transom_schema::rules::{Rules as Validations, declare};
use transom_schema::{Schema, normalize, structural, validate};

/// A version of a kind.
#[derive(Clone, Copy, Debug)]
pub struct VersionSchema<'a> {
    /// Its name, such as `v1`.
    pub name: &'a str,
    /// Its `openAPIV3Schema`.
    pub schema: &'a Value,
}

/// A version, ready to convert from and to.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) schema: Schema,
    validations: Validations,
}

/// Converts objects of a kind between its versions.
#[derive(Debug)]
pub struct Converter {
    pub(crate) versions: Vec<Version>,
    /// For each rule the step forward, then the step backward.
    pub(crate) steps: Vec<Step>,
    pub(crate) examples: Vec<Value>,
}

impl Version {
    fn compile(version: &VersionSchema<'_>) -> Result<Self, RuleError> {
        let name = version.name.to_owned();
        let schema = structural::parse(version.schema)
            .map_err(|errors| RuleError::new("rules", Problem::Schema { version: name.clone(), errors }))?;
        Ok(Self { validations: Validations::build(&schema, true), schema, name })
    }

    /// Fills in defaults.
    pub(crate) fn default(&self, object: &mut Value) {
        normalize::default(object, &self.schema);
    }

    /// What an API server would refuse in an object once it has its defaults, as one text.
    pub(crate) fn objection_to(&self, object: &Value) -> Option<String> {
        let mut object = object.clone();
        self.default(&mut object);
        self.objection(&object)
    }

    /// What an API server would refuse in an object that has its defaults, as one text.
    pub(crate) fn objection(&self, object: &Value) -> Option<String> {
        let mut errors = validate::validate(object, None, &self.schema, &Path::root());
        errors.extend(validate::list_types(object, None, &self.schema, &Path::root()));
        if !validate::blocks_rules(&errors) {
            errors.extend(self.validations.validate(object, None, &Path::root()));
        }
        (!errors.is_empty()).then(|| field::aggregate(&errors))
    }
}

impl Converter {
    /// Compiles rules. All mistakes that can be found without converting anything are reported.
    pub fn compile(rules: &Rules, versions: &[VersionSchema<'_>]) -> Result<Self, Vec<RuleError>> {
        let mut errors = Vec::new();
        let mut compiled = Vec::new();
        for version in versions {
            match Version::compile(version) {
                Ok(version) => compiled.push(version),
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut compiling = Compiling { versions: compiled, groups: Vec::new(), steps: Vec::new(), errors };
        compiling.groups = (0..compiling.versions.len()).collect();
        for (index, rule) in rules.rules.iter().enumerate() {
            compiling.rule(index, rule);
        }
        compiling.connected();
        let Compiling { versions, steps, mut errors, .. } = compiling;
        let converter = Self { versions, steps, examples: rules.examples.clone() };
        for (index, example) in rules.examples.iter().enumerate() {
            if converter.version_of(example).is_none() {
                errors.push(RuleError::new(format!("examples[{index}].apiVersion"), Problem::Example));
            }
        }
        if errors.is_empty() { Ok(converter) } else { Err(errors) }
    }

    /// The names of the versions.
    pub fn versions(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().map(|version| version.name.as_str())
    }

    pub(crate) fn index_of(&self, version: &str) -> Option<usize> {
        self.versions.iter().position(|known| known.name == version)
    }

    /// The version that an object is in.
    pub(crate) fn version_of(&self, object: &Value) -> Option<usize> {
        let api_version = object.get("apiVersion")?.as_str()?;
        self.index_of(api_version.rsplit('/').next().unwrap_or(api_version))
    }

    /// The steps from one version to another.
    pub(crate) fn route(&self, from: usize, to: usize) -> Option<Vec<&Step>> {
        let mut reached: Vec<Option<&Step>> = vec![None; self.versions.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front().filter(|at| *at != to) {
            for step in self.steps.iter().filter(|step| step.from == at) {
                if step.to != from && reached[step.to].is_none() {
                    reached[step.to] = Some(step);
                    queue.push_back(step.to);
                }
            }
        }
        let mut route = Vec::new();
        let mut at = to;
        while at != from {
            let step = reached[at]?;
            route.push(step);
            at = step.from;
        }
        route.reverse();
        Some(route)
    }
}

struct Compiling {
    versions: Vec<Version>,
    /// Which versions are connected: those with the same number.
    groups: Vec<usize>,
    steps: Vec<Step>,
    errors: Vec<RuleError>,
}

impl Compiling {
    fn error(&mut self, field: String, problem: Problem) {
        self.errors.push(RuleError::new(field, problem));
    }

    fn version(&mut self, field: String, name: &str) -> Option<usize> {
        let found = self.versions.iter().position(|version| version.name == name);
        if found.is_none() {
            let known = self.versions.iter().map(|version| version.name.clone()).collect();
            self.error(field, Problem::UnknownVersion { name: name.to_owned(), known });
        }
        found
    }

    fn rule(&mut self, index: usize, rule: &Rule) {
        let at = format!("rules[{index}]");
        let from = self.version(format!("{at}.from"), &rule.from);
        let to = self.version(format!("{at}.to"), &rule.to);
        let (Some(from), Some(to)) = (from, to) else { return };
        if from == to {
            return self.error(format!("{at}.to"), Problem::SameVersion);
        }
        if !self.connect(from, to) {
            let (from, to) = (rule.from.clone(), rule.to.clone());
            return self.error(at, Problem::SecondWay { from, to });
        }
        let mut moves = Vec::new();
        for (i, one) in rule.moves.iter().enumerate() {
            let source = self.field(format!("{at}.moves[{i}].from"), &one.from, from);
            let target = self.field(format!("{at}.moves[{i}].to"), &one.to, to);
            moves.extend(source.zip(target));
        }
        let forward = self.expressions(&format!("{at}.forward"), &rule.forward, from, to);
        let backward = self.expressions(&format!("{at}.backward"), &rule.backward, to, from);
        let sides = |side: fn(&(FieldPath, FieldPath)) -> &FieldPath| moves.iter().map(side).cloned();
        let targets = |side: fn(&(FieldPath, FieldPath)) -> &FieldPath, computed: &[Computed]| {
            sides(side).chain(computed.iter().map(|one| one.path.clone())).collect::<Vec<_>>()
        };
        let (olds, news) = (targets(|pair| &pair.0, &backward), targets(|pair| &pair.1, &forward));
        self.distinct(&at, &olds);
        self.distinct(&at, &news);
        let recomputed = |computed: &[Computed]| -> Vec<FieldPath> {
            computed.iter().filter(|one| !one.only_if_missing).map(|one| one.path.clone()).collect()
        };
        let (back, forth) = (recomputed(&backward), recomputed(&forward));
        let reversed = moves.iter().map(|(from, to)| (to.clone(), from.clone())).collect();
        self.steps.push(Step { rule: index, from, to, moves, computed: forward, recomputed_on_return: back });
        self.steps.push(Step {
            rule: index,
            from: to,
            to: from,
            moves: reversed,
            computed: backward,
            recomputed_on_return: forth,
        });
    }

    /// Notes that two versions are connected; false if they were already.
    fn connect(&mut self, from: usize, to: usize) -> bool {
        let (kept, merged) = (self.groups[from], self.groups[to]);
        self.groups.iter_mut().filter(|group| **group == merged).for_each(|group| *group = kept);
        kept != merged
    }

    fn connected(&mut self) {
        let apart = self.versions.iter().zip(&self.groups).filter(|(_, group)| **group != self.groups[0]);
        let apart: Vec<String> = apart.map(|(version, _)| version.name.clone()).collect();
        for name in apart {
            self.error("rules".to_owned(), Problem::Unreached(name));
        }
    }

    fn field(&mut self, at: String, text: &str, version: usize) -> Option<FieldPath> {
        let path = match FieldPath::parse(text) {
            Ok(path) => path,
            Err(why) => {
                self.error(at, Problem::Path { path: text.to_owned(), why });
                return None;
            }
        };
        let version = &self.versions[version];
        if path.schema(&version.schema).is_none() {
            let problem = Problem::NoField { version: version.name.clone(), path: path.to_string() };
            self.error(at, problem);
            return None;
        }
        Some(path)
    }

    fn expressions(&mut self, at: &str, list: &[Expression], from: usize, to: usize) -> Vec<Computed> {
        let declared = declare(&self.versions[from].schema, "selfType");
        let env = declared.map_or_else(Env::new, |decl| Env::new().with_decl("self", &decl));
        let mut computed = Vec::new();
        for (i, one) in list.iter().enumerate() {
            let path = self.field(format!("{at}[{i}].path"), &one.path, to);
            match (Program::compile(&one.expression, &env), path) {
                (Ok(program), Some(path)) => {
                    computed.push(Computed { path, program, only_if_missing: one.only_if_missing });
                }
                (Err(error), _) => self.error(format!("{at}[{i}].expression"), Problem::Expression(error)),
                (Ok(_), None) => {}
            }
        }
        computed
    }

    /// Every field of a version has one move or expression at most.
    fn distinct(&mut self, at: &str, paths: &[FieldPath]) {
        for (i, path) in paths.iter().enumerate() {
            if let Some(other) = paths[..i].iter().find(|other| other.overlaps(path)) {
                let problem = Problem::Overlap { path: path.to_string(), other: other.to_string() };
                self.errors.push(RuleError::new(at, problem));
            }
        }
    }
}
