//! What a reconcile has watched: everything that it reads, before it reads it, or nothing at all.

use crate::reconciling::{reconcile_as, setup, with_old};
use crate::script::{Script, resource};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use transom_compose::{Lookup, Nesting, Next, Objects, Polling, Step, World, WorldError};
use transom_function::{ResourceSelector, async_trait};
use transom_object::GroupVersionKind;
use transom_xapi::{AccountReference, Composition};

/// A world that records what is to be watched, and what is read that was not watched before.
#[derive(Default)]
struct Watched {
    objects: Objects,
    watched: Mutex<BTreeSet<Lookup>>,
    read: Mutex<BTreeSet<Lookup>>,
    too_late: Mutex<Vec<Lookup>>,
}

impl Watched {
    fn read(&self, lookup: Lookup) {
        if !self.watched.lock().expect("no test panicked").contains(&lookup) {
            self.too_late.lock().expect("no test panicked").push(lookup.clone());
        }
        self.read.lock().expect("no test panicked").insert(lookup);
    }
}

#[async_trait]
impl World for Watched {
    async fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, WorldError> {
        self.read(Lookup::Named {
            kind: kind.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        });
        self.objects.get(kind, namespace, name).await
    }

    async fn list(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, WorldError> {
        let within = namespace.map(str::to_owned);
        self.read(Lookup::Labelled { kind: kind.clone(), namespace: within, labels: labels.clone() });
        self.objects.list(kind, namespace, labels).await
    }

    async fn schema(&self, kind: &GroupVersionKind) -> Result<Option<Value>, WorldError> {
        self.objects.schema(kind).await
    }

    async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, Vec<u8>>>, WorldError> {
        let kind = GroupVersionKind::new("", "v1", "Secret");
        self.read(Lookup::Named { kind, namespace: namespace.to_owned(), name: name.to_owned() });
        self.objects.secret(namespace, name).await
    }

    async fn is_namespaced(&self, kind: &GroupVersionKind) -> Result<bool, WorldError> {
        self.objects.is_namespaced(kind).await
    }

    async fn account_exists(&self, account: &AccountReference) -> Result<bool, WorldError> {
        let kind = GroupVersionKind::new("", "v1", "ServiceAccount");
        self.read(Lookup::Named { kind, namespace: account.namespace.clone(), name: account.name.clone() });
        Ok(true)
    }

    fn depends_on(&self, lookup: &Lookup) {
        self.watched.lock().expect("no test panicked").insert(lookup.clone());
    }
}

/// With the credentials of a function, so that a Secret is read as well.
fn with_credentials() -> Composition {
    let secret =
        json!({"name": "c", "source": "Secret", "secretRef": {"namespace": "team", "name": "login"}});
    let step = json!({"step": "a", "functionRef": {"name": "f"}, "credentials": [secret]});
    let of = json!({"apiVersion": "example.org/v1", "kind": "XThing"});
    let composition =
        json!({"metadata": {"name": "comp"}, "spec": {"compositeTypeRef": of, "pipeline": [step]}});
    serde_json::from_value(composition).expect("a composition")
}

fn world() -> (Value, Watched) {
    let (xr, mut objects) = with_old();
    let metadata = json!({"name": "login", "namespace": "team"});
    objects.add(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}));
    (xr, Watched { objects, ..Watched::default() })
}

/// Composes one resource, and requires an object by its name and others by their kind.
fn requiring() -> Script {
    Script::new().then(|request| {
        let mut response = request.copy_response();
        response.set_composed("a", resource("Part"));
        let named = ResourceSelector::named("v1", "ConfigMap", "limits").in_namespace("team");
        let all = ResourceSelector::all("v1", "Limit");
        let required = &mut response.requirements.get_or_insert_default().resources;
        required.extend([("named".to_owned(), named), ("all".to_owned(), all)]);
        response
    })
}

async fn reconcile(realtime: bool, script: &Script) -> (Watched, Vec<Step>, Next) {
    let (composition, nesting, (xr, world)) = (with_credentials(), Nesting::default(), world());
    let mut setup = setup(&composition, &nesting);
    setup.polling = Polling { realtime, ..Polling::default() };
    setup.account = Some(AccountReference { namespace: "team".to_owned(), name: "composer".to_owned() });
    let (recorded, next) = reconcile_as(&setup, xr, script, &world, |_| None).await;
    (world, recorded.steps, next)
}

fn watching(steps: &[Step]) -> usize {
    steps.iter().filter(|step| matches!(step, Step::Depend(_) | Step::Follow(_))).count()
}

/// The kinds of what was looked up.
fn kinds(lookups: &BTreeSet<Lookup>) -> BTreeSet<&str> {
    let kind = |lookup| match lookup {
        &Lookup::Named { ref kind, .. } | &Lookup::Labelled { ref kind, .. } => &*kind.kind,
    };
    lookups.iter().map(kind).collect()
}

const READ: [&str; 5] = ["ConfigMap", "Limit", "Part", "Secret", "ServiceAccount"];

#[tokio::test]
async fn everything_that_is_read_is_watched_from_before_the_read() {
    let (world, steps, _) = reconcile(true, &requiring()).await;
    let read = world.read.into_inner().unwrap();
    assert_eq!(kinds(&read), BTreeSet::from(READ));
    assert_eq!(world.too_late.into_inner().unwrap(), []);
    let followed = steps.iter().find_map(|step| match step {
        Step::Follow(lookups) => Some(lookups),
        _ => None,
    });
    assert!(followed.expect("it is followed").is_superset(&read));
    assert_eq!(watching(&steps), 2, "what is written is depended on before that");
}

#[tokio::test]
async fn without_realtime_no_read_and_no_step_has_anything_watched() {
    let (world, steps, _) = reconcile(false, &requiring()).await;
    assert_eq!(kinds(&world.read.into_inner().unwrap()), BTreeSet::from(READ), "the same is read");
    assert_eq!(world.watched.into_inner().unwrap(), BTreeSet::new());
    assert_eq!(watching(&steps), 0);
    assert!(steps.iter().any(|step| matches!(step, Step::Apply(_))), "the rest of the plan is the same");
}

#[tokio::test]
async fn a_failed_pipeline_has_watched_what_it_read_if_anything_is() {
    for (realtime, expected) in [(true, 1), (false, 0)] {
        let (world, steps, next) = reconcile(realtime, &Script::new().then_fail("gone")).await;
        assert!(matches!(next, Next::Failed(_)), "{next:?}");
        assert_eq!((watching(&steps), world.watched.into_inner().unwrap().is_empty()), (expected, !realtime));
    }
}
