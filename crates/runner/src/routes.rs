//! Which revision of a function is called: what is known of every revision that can be, and the choice between them.
//!
//! No I/O, no time: the [`Router`](crate::Router) calls what is chosen here.

use crate::account::CallAccount;
use crate::instance::Instance;
use crate::revision::RevisionId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transom_compose::{RunError, WantedRevision};
use transom_object::quote::quote;
use transom_xapi::function::{ImageId, RevisionTraits};

/// The most revisions that an error lists.
const LISTED_MAX: usize = 5;

/// A revision, and how it is called.
#[derive(Clone)]
pub(crate) struct Route {
    pub id: RevisionId,
    pub number: i64,
    pub traits: RevisionTraits,
    /// The package that the revision comes from.
    pub package: String,
    /// Whether the revision is active. An inactive but ready revision is called only while no active one is ready.
    pub active: bool,
    /// Whether it is known to answer.
    pub ready: bool,
    /// What is called, or why there is nothing.
    pub target: Result<Target, String>,
}

#[derive(Clone)]
pub(crate) struct Target {
    pub instance: Arc<dyn Instance>,
    pub calls: Arc<CallAccount>,
    /// Different for every instance and package that a revision ever has.
    pub generation: u64,
}

impl Route {
    /// Revisions with the highest preference are called first. `None`: never called.
    fn preference(&self) -> Option<u8> {
        match (self.active, self.ready) {
            (true, true) => Some(3),
            (false, true) => Some(2),
            (true, false) => Some(1),
            (false, false) => None,
        }
    }

    fn is_wanted(&self, wanted: WantedRevision<'_>) -> bool {
        let by_image = matches!(wanted, WantedRevision::Image(_));
        (self.id.is_sole() && !by_image) || self.traits.satisfy(&self.id.revision, wanted)
    }
}

/// All revisions.
#[derive(Default)]
pub(crate) struct Routes {
    functions: BTreeMap<String, BTreeMap<String, Arc<Route>>>,
    /// The functions that have a revision with a digest.
    by_digest: BTreeMap<String, BTreeSet<String>>,
    /// Why functions that are installed cannot be called.
    reasons: BTreeMap<String, String>,
    generation: u64,
}

impl Routes {
    pub(crate) fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    pub(crate) fn get(&self, id: &RevisionId) -> Option<&Arc<Route>> {
        self.functions.get(&id.function)?.get(&id.revision)
    }

    /// The revisions of a function.
    pub(crate) fn of(&self, function: &str) -> impl Iterator<Item = &Arc<Route>> {
        self.functions.get(function).into_iter().flat_map(BTreeMap::values)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// Adds or replaces a revision. Returns whether calls may be routed in another way now.
    pub(crate) fn insert(&mut self, route: Route) -> bool {
        let id = route.id.clone();
        let before = self.get(&id).cloned();
        let changed = before.as_ref().is_none_or(|before| {
            let generation = |route: &Route| route.target.as_ref().ok().map(|target| target.generation);
            (before.number, before.active, before.ready) != (route.number, route.active, route.ready)
                || before.traits != route.traits
                || generation(before) != generation(&route)
        });
        if route.ready {
            self.reasons.remove(&id.function);
        }
        if before.is_some_and(|before| before.traits.digest != route.traits.digest) {
            self.remove(&id);
        }
        if !route.traits.digest.is_empty() {
            let functions = self.by_digest.entry(route.traits.digest.clone()).or_default();
            functions.insert(id.function.clone());
        }
        self.functions.entry(id.function).or_default().insert(id.revision, Arc::new(route));
        changed
    }

    /// Removes a revision. Returns whether there was one.
    pub(crate) fn remove(&mut self, id: &RevisionId) -> bool {
        let Some(revisions) = self.functions.get_mut(&id.function) else { return false };
        let Some(removed) = revisions.remove(&id.revision) else { return false };
        let digest = &removed.traits.digest;
        let is_last = !revisions.values().any(|route| route.traits.digest == *digest);
        if revisions.is_empty() {
            self.functions.remove(&id.function);
        }
        if is_last && let Some(functions) = self.by_digest.get_mut(digest) {
            functions.remove(&id.function);
            if functions.is_empty() {
                self.by_digest.remove(digest);
            }
        }
        true
    }

    pub(crate) fn explain(&mut self, function: &str, reason: &str) {
        self.reasons.insert(function.to_owned(), reason.to_owned());
    }

    pub(crate) fn forget_reason(&mut self, function: &str) {
        self.reasons.remove(function);
    }

    pub(crate) fn reason(&self, function: &str) -> Option<&str> {
        self.reasons.get(function).map(String::as_str)
    }

    /// The revision that is called for a step: of those that it wants, an active and ready one before all others, and of
    /// these the one with the highest number.
    pub(crate) fn choose(&self, function: &str, wanted: WantedRevision<'_>) -> Option<&Arc<Route>> {
        match wanted {
            WantedRevision::Image(image) => {
                let functions = self.by_digest.get(ImageId::of(image).digest);
                let routes = functions.into_iter().flatten().flat_map(|function| self.of(function));
                best(routes, wanted)
            }
            _ => best(self.of(function), wanted),
        }
    }

    /// Why no revision can be called for a step that wants one in particular; `None` if the function has no revisions.
    pub(crate) fn missing(&self, function: &str, wanted: WantedRevision<'_>) -> Option<RunError> {
        if let WantedRevision::Image(image) = wanted {
            let wanted = format!("there is no active FunctionRevision with the image {image}");
            let reason = format!("install a Function with spec.package: {image}");
            return Some(RunError::NoRevision { wanted, reason });
        }
        let active: Vec<String> =
            self.of(function).filter(|route| route.active).map(|route| described(route)).collect();
        let (what, remedy) = match wanted {
            WantedRevision::Named(name) => (
                format!("FunctionRevision {}, which functionRevisionRef names, is not active", quote(name)),
                "set its spec.desiredState to Active if the Function's revisionActivationPolicy is Manual, or raise its \
                 activeRevisionLimit",
            ),
            WantedRevision::Labelled(labels) => (
                format!(
                    "it has no active revision with the labels {}, which functionRevisionSelector requires",
                    listed(labels)
                ),
                "label the Function, or a FunctionRevision that is active",
            ),
            WantedRevision::Newest | WantedRevision::Image(_) => return None,
        };
        if active.is_empty() {
            return None;
        }
        let more = active.len().saturating_sub(LISTED_MAX);
        let mut names = active[..active.len().min(LISTED_MAX)].join(", ");
        if more > 0 {
            names.push_str(&format!(" and {more} more"));
        }
        let wanted = format!("function {} cannot be called", quote(function));
        Some(RunError::NoRevision { wanted, reason: format!("{what}; {remedy}; active are {names}") })
    }
}

fn best<'r>(
    routes: impl Iterator<Item = &'r Arc<Route>>,
    wanted: WantedRevision<'_>,
) -> Option<&'r Arc<Route>> {
    let ranked = routes
        .filter(|route| route.is_wanted(wanted))
        .filter_map(|route| Some(((route.preference()?, route.number), route)));
    ranked.max_by_key(|(rank, _)| *rank).map(|(_, route)| route)
}

fn described(route: &Route) -> String {
    let labels =
        route.traits.labels.iter().filter(|(key, _)| *key != transom_xapi::constants::label::PACKAGE);
    let labels: BTreeMap<String, String> = labels.map(|(k, v)| (k.clone(), v.clone())).collect();
    if labels.is_empty() {
        route.id.revision.clone()
    } else {
        format!("{} ({})", route.id.revision, listed(&labels))
    }
}

fn listed(labels: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn route(function: &str, number: i64, active: bool, ready: bool) -> Route {
        let revision = format!("{function}-{number}");
        let channel = if number % 2 == 0 { "alpha" } else { "stable" };
        let traits = RevisionTraits {
            labels: labels(&[("channel", channel), ("pkg.crossplane.io/package", function)]),
            repositories: vec![format!("r.io/{function}")],
            digest: format!("sha256:{number}"),
        };
        let id = RevisionId { function: function.to_owned(), revision };
        let target = Err("it does not run".to_owned());
        Route { id, number, traits, package: String::new(), active, ready, target }
    }

    fn routes(all: &[Route]) -> Routes {
        let mut routes = Routes::default();
        for route in all {
            routes.insert(route.clone());
        }
        routes
    }

    fn chosen<'r>(routes: &'r Routes, function: &str, wanted: WantedRevision<'_>) -> Option<&'r str> {
        routes.choose(function, wanted).map(|route| route.id.revision.as_str())
    }

    #[test]
    fn the_highest_number_that_is_active_and_ready_is_called() {
        use WantedRevision::{Labelled, Named, Newest};
        let (alpha, stable, none) = (
            labels(&[("channel", "alpha")]),
            labels(&[("channel", "stable")]),
            labels(&[("channel", "none")]),
        );
        let all = routes(&[
            route("f", 1, true, true),
            route("f", 2, true, true),
            route("f", 3, true, false),
            route("f", 4, false, true),
            route("f", 5, false, false),
            route("g", 9, true, true),
        ]);
        for (wanted, expected) in [
            (Newest, Some("f-2")),
            (Named("f-1"), Some("f-1")),
            (Named("f-3"), Some("f-3")),
            (Named("f-5"), None),
            (Named("g-9"), None),
            (Labelled(&alpha), Some("f-2")),
            (Labelled(&stable), Some("f-1")),
            (Labelled(&none), None),
        ] {
            assert_eq!(chosen(&all, "f", wanted), expected, "{wanted:?}");
        }
        assert_eq!(chosen(&all, "h", Newest), None);
    }

    #[test]
    fn one_that_was_active_stands_in_for_those_that_are_not_ready() {
        let all = routes(&[route("f", 1, false, true), route("f", 2, true, false)]);
        assert_eq!(chosen(&all, "f", WantedRevision::Newest), Some("f-1"));
        let alpha = labels(&[("channel", "alpha")]);
        assert_eq!(chosen(&all, "f", WantedRevision::Labelled(&alpha)), Some("f-2"), "never another one");
        assert_eq!(chosen(&all, "f", WantedRevision::Named("f-2")), Some("f-2"));
        let all =
            routes(&[route("f", 1, false, false), route("f", 2, true, false), route("f", 3, true, false)]);
        assert_eq!(chosen(&all, "f", WantedRevision::Newest), Some("f-3"), "it says why it is not ready");
    }

    #[test]
    fn an_image_is_found_whatever_the_function_is_called() {
        let mut all =
            routes(&[route("f", 1, true, true), route("g", 1, true, true), route("g", 2, true, true)]);
        let image =
            |all: &Routes, image: &str| chosen(all, image, WantedRevision::Image(image)).map(str::to_owned);
        assert_eq!(image(&all, "r.io/f@sha256:1").as_deref(), Some("f-1"));
        assert_eq!(image(&all, "r.io/g@sha256:1").as_deref(), Some("g-1"));
        assert_eq!(image(&all, "r.io/g@sha256:3"), None);
        let mut moved = route("g", 1, true, true);
        moved.traits.digest = "sha256:7".to_owned();
        assert!(all.insert(moved.clone()));
        assert!(!all.insert(moved), "nothing changed");
        assert_eq!(image(&all, "r.io/g@sha256:1"), None);
        assert_eq!(image(&all, "r.io/g@sha256:7").as_deref(), Some("g-1"));
        assert!(all.remove(&route("g", 1, true, true).id) && !all.remove(&route("g", 1, true, true).id));
        assert_eq!(image(&all, "r.io/g@sha256:7"), None);
        assert_eq!(all.by_digest.len(), 2);
        for (function, number) in [("f", 1), ("g", 2)] {
            all.remove(&route(function, number, true, true).id);
        }
        assert!(all.by_digest.is_empty() && all.functions.is_empty());
    }

    #[test]
    fn an_error_says_what_was_looked_for_and_what_there_is() {
        let all =
            routes(&[route("f", 1, true, true), route("f", 2, true, false), route("f", 3, false, true)]);
        let why = |wanted| all.missing("f", wanted).expect("a reason").to_string();
        let active = "active are f-1 (channel=stable), f-2 (channel=alpha)";
        let named = why(WantedRevision::Named("f-3"));
        assert!(named.starts_with("function \"f\" cannot be called: FunctionRevision \"f-3\", which functionRevisionRef names, is not active; "), "{named}");
        assert!(named.ends_with(active), "{named}");
        let two = labels(&[("a", "b"), ("c", "d")]);
        let labelled = why(WantedRevision::Labelled(&two));
        assert!(
            labelled.contains("no active revision with the labels a=b,c=d") && labelled.ends_with(active),
            "{labelled}"
        );
        let image = why(WantedRevision::Image("r.io/f@sha256:9"));
        assert!(image.ends_with("install a Function with spec.package: r.io/f@sha256:9"), "{image}");
        assert!(all.missing("g", WantedRevision::Named("f-1")).is_none(), "there is no such function");
        let many = routes(&(1..=8).map(|n| route("f", n, true, true)).collect::<Vec<_>>());
        let why = many.missing("f", WantedRevision::Named("x")).expect("a reason").to_string();
        assert!(why.ends_with("f-5 (channel=stable) and 3 more"), "{why}");
    }
}
