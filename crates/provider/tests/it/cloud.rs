//! An external system that misbehaves, and a provider for it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use transom_engine::{Clock, Cluster, Metrics};
use transom_provider::schema::{integer, object, text, texts};
use transom_provider::*;
use transom_testkit::embedded;
use transom_testkit::rng::Rng;

/// How the external system behaves.
#[derive(Clone, Copy, Default)]
pub(crate) struct Faults {
    /// Of 100 requests, how many fail before they do anything.
    pub(crate) fails: u64,
    /// Of 100 changes, how many are made and reported as failed.
    pub(crate) lies: u64,
    /// The longest time until a request is answered, in milliseconds.
    pub(crate) slow: u64,
    /// How long until a thing that was created is seen, in milliseconds.
    pub(crate) hidden: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Thing {
    /// The managed resource that it was made for.
    pub(crate) of: String,
    pub(crate) size: i64,
    seen_from: Instant,
}

/// All external resources.
pub(crate) struct Cloud {
    pub(crate) things: Mutex<BTreeMap<String, Thing>>,
    pub(crate) faults: Mutex<Faults>,
    rng: Mutex<Rng>,
    /// Whether things are named after their managed resources.
    deterministic: bool,
    pub(crate) reads: AtomicU64,
    /// Whether it answers changes as a Kubernetes does that protects an object.
    pub(crate) conflicts: AtomicBool,
    /// Whether it waits for something that it follows.
    pub(crate) waits: AtomicBool,
    /// Whether it cannot be reached.
    pub(crate) unreachable: AtomicBool,
    /// How many managed resources were forgotten.
    pub(crate) forgotten: AtomicU64,
}

impl Cloud {
    pub(crate) fn new(seed: u64, deterministic: bool) -> Arc<Self> {
        Arc::new(Self {
            things: Mutex::default(),
            faults: Mutex::default(),
            rng: Mutex::new(Rng::new(seed)),
            deterministic,
            reads: Default::default(),
            conflicts: Default::default(),
            waits: Default::default(),
            unreachable: Default::default(),
            forgotten: Default::default(),
        })
    }

    fn draw(&self, below: u64) -> u64 {
        self.rng.lock().unwrap().below(below.max(1))
    }

    /// Waits, and perhaps fails, as a request does.
    async fn request(&self) -> Result<Faults> {
        let faults = *self.faults.lock().unwrap();
        let slow = self.draw(faults.slow + 1);
        tokio::time::sleep(Duration::from_millis(slow)).await;
        if self.draw(100) < faults.fails {
            return Err(Error::domain("too many requests"));
        }
        Ok(faults)
    }

    async fn change(&self) -> Result<Faults> {
        if self.conflicts.load(Ordering::SeqCst) {
            let (reason, message) = ("Conflict".to_owned(), "the thing is in use".to_owned());
            return Err(Error::Refused { code: 409, reason, message });
        }
        self.request().await
    }

    fn lie(&self, faults: Faults) -> Result<()> {
        if self.draw(100) < faults.lies { Err(Error::domain("the connection was lost")) } else { Ok(()) }
    }

    pub(crate) fn count(&self) -> usize {
        self.things.lock().unwrap().len()
    }
}

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Parameters {
    pub(crate) size: Option<i64>,
    pub(crate) neighbor: Option<String>,
    pub(crate) neighbors: Option<Vec<String>>,
}

pub(crate) struct Things(pub Arc<Cloud>);

impl External for Things {
    type Parameters = Parameters;
    type Session = ();

    async fn connect(&self, _: &Resource<'_, Parameters>) -> Result<()> {
        match self.0.unreachable.load(Ordering::SeqCst) {
            true => Err(Error::domain("no route to the cloud")),
            false => Ok(()),
        }
    }

    async fn observe(&self, (): &(), resource: &Resource<'_, Parameters>) -> Result<Observation<Parameters>> {
        self.0.reads.fetch_add(1, Ordering::SeqCst);
        if self.0.waits.load(Ordering::SeqCst) {
            resource.wait_for_followed();
            return Err(Error::domain("it waits"));
        }
        self.0.request().await?;
        let things = self.0.things.lock().unwrap();
        let thing = things.get(resource.external_name()).filter(|thing| thing.seen_from <= Instant::now());
        let Some(thing) = thing else { return Ok(Observation::missing()) };
        let mut filled = resource.parameters.clone();
        let late = late_initialize(&mut filled.size, &thing.size).then_some(filled);
        let same = resource.parameters.size.is_none_or(|size| size == thing.size);
        Ok(Observation {
            up_to_date: same,
            difference: if same { String::new() } else { format!("size is {}", thing.size) },
            late_initialized: late,
            connection: [("size".to_owned(), thing.size.to_string().into_bytes())].into(),
            ..Observation::up_to_date()
        })
    }

    async fn create(&self, (): &(), resource: &Resource<'_, Parameters>) -> Result<Creation> {
        let faults = self.0.change().await?;
        let of = resource.object["metadata"]["name"].as_str().unwrap().to_owned();
        let name = match self.0.deterministic {
            true => resource.external_name().to_owned(),
            false => format!("id-{}", self.0.draw(u64::MAX)),
        };
        {
            let mut things = self.0.things.lock().unwrap();
            if things.contains_key(&name) {
                return Err(Error::domain(format!("{name} exists already")));
            }
            let seen_from = Instant::now() + Duration::from_millis(faults.hidden);
            let size = resource.parameters.size.unwrap_or(1);
            things.insert(name.clone(), Thing { of, size, seen_from });
        }
        // The answer takes as long as the request: a kill in between loses it.
        tokio::time::sleep(Duration::from_millis(self.0.draw(faults.slow + 1))).await;
        self.0.lie(faults)?;
        let external_name = (!self.0.deterministic).then_some(name);
        Ok(Creation { connection: [("token".to_owned(), b"once".to_vec())].into(), external_name })
    }

    async fn update(&self, (): &(), resource: &Resource<'_, Parameters>) -> Result<Update> {
        let faults = self.0.change().await?;
        if let Some(thing) = self.0.things.lock().unwrap().get_mut(resource.external_name()) {
            thing.size = resource.parameters.size.unwrap_or(thing.size);
        }
        self.0.lie(faults)?;
        Ok(Update::default())
    }

    async fn delete(&self, (): &(), resource: &Resource<'_, Parameters>) -> Result<()> {
        let faults = self.0.change().await?;
        self.0.things.lock().unwrap().remove(resource.external_name());
        self.0.lie(faults)
    }

    fn forget(&self, _: &Waker) {
        self.0.forgotten.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) fn kind(deterministic: bool) -> ManagedKind {
    let gvk = GroupVersionKind::new("cloud.example.org", "v1", "Thing");
    ManagedKind {
        group: "cloud.example.org",
        version: "v1",
        kind: "Thing",
        plural: "things",
        scope: Scope::Cluster,
        layout: Layout::Legacy,
        categories: &["managed"],
        description: "A thing.",
        parameters: object(
            "A thing.",
            &[],
            json!({
                "size": integer("Its size."),
                "neighbor": text("The name of another."),
                "neighbors": texts("The names of others."),
            }),
        ),
        more_spec: json!({}),
        at_provider: None,
        references: vec![
            Reference::one("neighbor", gvk.clone()),
            Reference::many("neighbors", "neighborRefs", "neighborsSelector", gvk),
        ],
        configs: None,
        deterministic_names: deterministic,
    }
}

/// An API server, and what runs on it.
pub(crate) struct Stand {
    pub(crate) cluster: Cluster,
    client: kube::Client,
    pub(crate) cloud: Arc<Cloud>,
    pub(crate) running: Option<RunningProvider>,
    pub(crate) metrics: Arc<Metrics>,
    settings: Settings,
}

/// Polls and retries so soon that tests need not wait.
const FAST: Settings = Settings {
    poll_interval: Some(Duration::from_millis(200)),
    min_poll_interval: Duration::from_millis(1),
    sooner_polls: true,
    spread_polls: true,
    max_reconcile_rate: 10_000,
    timeout: Duration::from_secs(60),
    management_policies: true,
    first_backoff: Duration::from_millis(5),
    longest_backoff: Duration::from_millis(100),
};

const DAY: Duration = Duration::from_secs(24 * 3600);

impl Stand {
    pub(crate) async fn new(cloud: Arc<Cloud>) -> Self {
        Self::with(cloud, FAST).await
    }

    /// Nothing is polled, and what failed is retried after a day: whatever happens sooner happens because of a watch.
    pub(crate) async fn without_polls(cloud: Arc<Cloud>) -> Self {
        let backoff = Settings { first_backoff: DAY, longest_backoff: DAY, ..FAST };
        Self::with(cloud, Settings { poll_interval: None, ..backoff }).await
    }

    async fn with(cloud: Arc<Cloud>, settings: Settings) -> Self {
        let server = embedded::server().await;
        let client = embedded::admin_kube_client(&server);
        let cluster = Cluster::new(client.clone());
        let metrics = Arc::default();
        let mut stand = Self { cluster, client, cloud, running: None, metrics, settings };
        stand.provider().install(&stand.cluster).await.unwrap();
        stand.start();
        stand
    }

    fn provider(&self) -> Provider {
        let kind = kind(self.cloud.deterministic);
        Provider::new("provider-cloud", self.settings).manages(kind, Things(self.cloud.clone()))
    }

    pub(crate) fn start(&mut self) {
        let clock = Clock::starting_at(transom_object::time::Timestamp::now());
        let (client, metrics) = (self.client.clone(), self.metrics.clone());
        self.running = Some(self.provider().start(Context {
            client,
            clock,
            metrics,
            seed: 1,
            ownership: transom_engine::Ownership::whole(),
        }));
    }

    /// Ends the provider at whatever it does.
    pub(crate) fn kill(&mut self) {
        self.running = None;
    }

    pub(crate) async fn create(&self, name: &str, spec: &Value, metadata: &Value) {
        let mut object = json!({
            "apiVersion": "cloud.example.org/v1", "kind": "Thing", "metadata": metadata, "spec": spec,
        });
        object["metadata"]["name"] = name.into();
        self.cluster.create(&object, "test").await.unwrap();
    }

    pub(crate) async fn get(&self, name: &str) -> Option<Value> {
        let gvk = GroupVersionKind::new("cloud.example.org", "v1", "Thing");
        self.cluster.get(&gvk, "", name).await.unwrap()
    }

    pub(crate) async fn patch(&self, name: &str, patch: &Value) {
        let object =
            json!({"apiVersion": "cloud.example.org/v1", "kind": "Thing", "metadata": {"name": name}});
        self.cluster.merge_patch(&object, patch, "test").await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        let gvk = GroupVersionKind::new("cloud.example.org", "v1", "Thing");
        self.cluster.delete(&gvk, "", name, Default::default()).await.unwrap();
    }

    /// Waits until an object is as it should be.
    pub(crate) async fn until(
        &self,
        what: &str,
        name: &str,
        holds: impl Fn(Option<&Value>) -> bool,
    ) -> Option<Value> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let found = self.get(name).await;
            if holds(found.as_ref()) {
                return found;
            }
            assert!(Instant::now() < deadline, "{what}: {found:#?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

impl Stand {
    /// The events about an object: type, reason and message.
    pub(crate) async fn events(&self, name: &str) -> Vec<[String; 3]> {
        let gvk = GroupVersionKind::new("", "v1", "Event");
        let events = self.cluster.list(&gvk, "", &BTreeMap::new()).await.unwrap();
        let about = events.iter().filter(|event| event["involvedObject"]["name"] == name);
        let fields =
            |event: &Value| ["type", "reason", "message"].map(|f| event[f].as_str().unwrap().to_owned());
        about.map(fields).collect()
    }

    /// Waits until there is an event about an object.
    pub(crate) async fn until_event(&self, name: &str, kind: &str, reason: &str, message: &str) {
        let expected = [kind, reason, message].map(str::to_owned);
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let events = self.events(name).await;
            if events.contains(&expected) {
                return;
            }
            assert!(Instant::now() < deadline, "{expected:?} of {name}: {events:#?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

pub(crate) fn condition(object: &Value, kind: &str) -> Condition {
    conditions::get(&conditions::of(object), kind)
}

pub(crate) fn is_ready(object: Option<&Value>) -> bool {
    object.is_some_and(|o| condition(o, "Ready").is_true() && condition(o, "Synced").is_true())
}
