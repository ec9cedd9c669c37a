//! Follows what runs revisions: a change of an object that a revision runs by, or depends on, has the revision reported, so
//! that its state is looked at again. Changes that an attempt to run the revision made or has read are not reported.
//!
//! The watches read metadata only, in the namespace of what runs.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use transom_engine::{
    Change, ChangeNotice, Clock, Cluster, Depth, Error, ErrorContext, Key, Listing, ObjectHash, Observer,
    Result, SeenVersions, Subscription, Via, Watches, version,
};
use transom_object::time::Timestamp;
use transom_object::{GroupVersionKind, meta};
use transom_runner::{Changed, ProviderChanged, RevisionId};

/// The kinds of which objects are followed.
const KINDS: [(&str, &str); 4] =
    [("apps", "Deployment"), ("", "Service"), ("", "ServiceAccount"), ("", "Secret")];
/// What is due is not done in a shorter time, so that a clock that goes wrong does not make a revision busy.
const MIN_DUE: Duration = Duration::from_secs(60);

/// A revision that is run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// Of a Function.
    Function(RevisionId),
    /// Of a Provider, by its name.
    Provider(String),
}

/// Kind and name of an object in the namespace of what runs.
type Object = (String, String);

/// What is known of a revision.
#[derive(Default)]
struct Known {
    /// The objects that it depends on.
    objects: BTreeSet<Object>,
    /// The versions of these that it was run with.
    seen: SeenVersions,
    /// When the first of its certificates is to be replaced.
    renewal: Option<Timestamp>,
    /// How many attempts to run it are under way.
    attempts: usize,
    /// The newest changes since they began, by object.
    pending: BTreeMap<Object, ChangeNotice>,
}

impl Known {
    /// Ends an attempt. Returns whether a change is left that it has not seen.
    fn end(&mut self) -> bool {
        self.attempts = self.attempts.saturating_sub(1);
        if self.attempts > 0 {
            return false;
        }
        std::mem::take(&mut self.pending).into_values().any(|notice| !self.seen.includes(notice))
    }
}

/// What is called with revisions.
#[derive(Clone, Default)]
struct Listeners {
    functions: Option<Changed>,
    providers: Option<ProviderChanged>,
}

/// An object that is being written.
#[derive(Default)]
struct Written {
    writers: usize,
    /// Its changes since then.
    held: Vec<ChangeNotice>,
}

/// The revisions that are run, and what each depends on.
#[derive(Default)]
struct Followed {
    known: Mutex<BTreeMap<Subject, Known>>,
    written: Mutex<BTreeMap<Object, Written>>,
    listeners: Mutex<Listeners>,
}

impl Followed {
    fn known(&self) -> MutexGuard<'_, BTreeMap<Subject, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn written(&self) -> MutexGuard<'_, BTreeMap<Object, Written>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, subjects: impl IntoIterator<Item = Subject>) {
        let listeners = self.listeners().clone();
        for subject in subjects {
            match (&subject, &listeners) {
                (Subject::Function(id), Listeners { functions: Some(changed), .. }) => changed(id),
                (Subject::Provider(name), Listeners { providers: Some(changed), .. }) => changed(name),
                _ => {}
            }
        }
    }

    /// Reports the revisions that depend on an object of which a version is new to them. Those that are being run are judged
    /// when the attempt ends, since only then all that it reads is known.
    fn changed(&self, object: &Object, notice: ChangeNotice) {
        if let Some(written) = self.written().get_mut(object) {
            return written.held.push(notice);
        }
        let mut concerned = Vec::new();
        for (subject, known) in self.known().iter_mut().filter(|(_, known)| known.objects.contains(object)) {
            if known.attempts == 0 {
                concerned.extend((!known.seen.includes(notice)).then(|| subject.clone()));
                continue;
            }
            let newest = known.pending.entry(object.clone()).or_insert(notice);
            if newest.version <= notice.version {
                *newest = notice;
            }
        }
        self.report(concerned);
    }
}

/// The observer of one kind.
struct OfKind {
    followed: Arc<Followed>,
    namespace: Arc<str>,
}

impl Observer for OfKind {
    fn changed(&self, change: &Change<'_>) {
        let Some(seen) = change.object() else { return };
        let object = ObjectHash::new(change.gvk, &self.namespace, &seen.key.name);
        let via = if change.gap { Via::List } else { Via::Watch };
        let named = (change.gvk.kind.clone(), seen.key.name.to_string());
        self.followed.changed(&named, ChangeNotice { object, version: change.version, via });
    }

    /// A deletion before the first list is reported by the absence of the object alone.
    fn listed(&self, listing: &Listing<'_>) {
        let gvk = listing.gvk;
        let exists = |name: &str| listing.objects.contains_key(&Key::new(&*self.namespace, name));
        let known = self.followed.known();
        let depended_on = known.values().flat_map(|known| known.objects.iter());
        let is_absent = |(kind, name): &&Object| *kind == gvk.kind && !exists(name);
        let absent: BTreeSet<Object> = depended_on.filter(is_absent).cloned().collect();
        drop(known);
        for named in absent {
            let object = ObjectHash::new(gvk, &self.namespace, &named.1);
            let notice = ChangeNotice { object, version: listing.version, via: Via::Absence };
            self.followed.changed(&named, notice);
        }
    }
}

/// Follows what runs revisions in one namespace.
pub(crate) struct Following {
    cluster: Cluster,
    namespace: Arc<str>,
    clock: Clock,
    followed: Arc<Followed>,
    /// They start with the first revision that is run.
    watches: OnceLock<Vec<Subscription>>,
}

impl Following {
    pub(crate) fn new(cluster: &Cluster, namespace: &str, clock: Clock) -> Self {
        let (followed, watches) = (Arc::default(), OnceLock::new());
        let cluster = cluster.watching_in(namespace).remote();
        Self { cluster, namespace: namespace.into(), clock, followed, watches }
    }

    /// Has `changed` called with revisions of Functions of which something has changed.
    pub(crate) fn report_functions(&self, changed: Changed) {
        self.followed.listeners().functions = Some(changed);
    }

    /// Has `changed` called with revisions of Providers of which something has changed.
    pub(crate) fn report_providers(&self, changed: ProviderChanged) {
        self.followed.listeners().providers = Some(changed);
    }

    /// Begins to run a revision. Its objects are followed from now on. Fails if they may not be watched.
    pub(crate) async fn begin(&self, subject: Subject) -> Result<Attempt> {
        for watch in self.watches.get_or_init(|| self.start()) {
            let (mirror, namespace) = (watch.mirror(), &self.namespace);
            // Any other problem of a watch ends by itself, and what was missed is reported then.
            if let Err(Error::Watch(why)) = mirror.ready().await
                && why.is_forbidden()
            {
                let context = format!("cannot watch {}s in namespace {namespace:?}", mirror.gvk().kind);
                return Err(Error::Watch(why)).context(context);
            }
        }
        self.followed.known().entry(subject.clone()).or_default().attempts += 1;
        Ok(Attempt { followed: Some((self.followed.clone(), subject)), found: Mutex::default() })
    }

    fn start(&self) -> Vec<Subscription> {
        let watches = Watches::new(self.cluster.clone());
        let start = |(group, kind)| {
            let observer = OfKind { followed: self.followed.clone(), namespace: self.namespace.clone() };
            watches.subscribe(&GroupVersionKind::new(group, "v1", kind), Depth::Header, Arc::new(observer))
        };
        KINDS.into_iter().map(start).collect()
    }

    /// Reports a revision no more.
    pub(crate) fn forget(&self, subject: &Subject) {
        self.followed.known().remove(subject);
    }

    /// After which time a revision has to be run again because of its certificates.
    pub(crate) fn due_in(&self, subject: &Subject) -> Option<Duration> {
        let renewal = self.followed.known().get(subject)?.renewal?;
        let left = renewal.as_second().saturating_sub(self.clock.now().as_second());
        Some(Duration::from_secs(u64::try_from(left).unwrap_or_default()).max(MIN_DUE))
    }
}

/// What an attempt to run a revision found out.
#[derive(Default)]
struct Found {
    objects: BTreeSet<Object>,
    renewal: Option<Timestamp>,
    is_complete: bool,
}

/// An attempt to run a revision. It ends when it is dropped.
pub(crate) struct Attempt {
    followed: Option<(Arc<Followed>, Subject)>,
    found: Mutex<Found>,
}

impl Attempt {
    /// One of which nothing is followed.
    pub(crate) fn unfollowed() -> Self {
        Self { followed: None, found: Mutex::default() }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the entry of the revision, unless it was forgotten meanwhile.
    fn note(&self, note: impl FnOnce(&mut Known)) {
        if let Some((followed, subject)) = &self.followed
            && let Some(known) = followed.known().get_mut(subject)
        {
            note(known);
        }
    }

    /// The revision depends on an object, which need not exist. To be called before the object is read.
    pub(crate) fn depends_on(&self, gvk: &GroupVersionKind, name: &str) {
        let object = (gvk.kind.clone(), name.to_owned());
        self.found().objects.insert(object.clone());
        self.note(|known| {
            known.objects.insert(object);
        });
    }

    /// Reads an object that the revision depends on.
    pub(crate) async fn get(
        &self,
        cluster: &Cluster,
        gvk: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>> {
        self.depends_on(gvk, name);
        let stored = cluster.get(gvk, namespace, name).await?;
        stored.iter().for_each(|object| self.saw(object));
        Ok(stored)
    }

    /// The revision is run with this version of an object: as it was read, or as it is stored after it was written.
    pub(crate) fn saw(&self, object: &Value) {
        let Some(gvk) = meta::gvk(object) else { return };
        let hash = ObjectHash::new(&gvk, meta::namespace(object), meta::name(object));
        self.note(|known| known.seen.read(hash, version(meta::resource_version(object))));
    }

    /// An object of the revision is about to be written. The write wakes no other revision that depends on the object: two
    /// revisions that want different values would otherwise wake each other again and again.
    pub(crate) fn writing(&self, gvk: &GroupVersionKind, name: &str) -> Writing {
        let object = (gvk.kind.clone(), name.to_owned());
        let followed = self.followed.as_ref().map(|(followed, _)| followed.clone());
        if let Some(followed) = &followed {
            followed.written().entry(object.clone()).or_default().writers += 1;
        }
        Writing { followed, object }
    }

    /// A certificate of the revision is to be replaced at this time.
    pub(crate) fn renews_at(&self, time: Timestamp) {
        let mut found = self.found();
        found.renewal = Some(found.renewal.map_or(time, |known| known.min(time)));
    }

    /// All that the revision depends on is known: what it depended on before is forgotten.
    pub(crate) fn complete(&self) {
        self.found().is_complete = true;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let found = std::mem::take(&mut *self.found());
        let mut is_outdated = false;
        self.note(|known| {
            if found.is_complete {
                (known.objects, known.renewal) = (found.objects, found.renewal);
            }
            is_outdated = known.end();
        });
        if let Some((followed, subject)) = self.followed.take().filter(|_| is_outdated) {
            followed.report([subject]);
        }
    }
}

/// An object is being written. It ends when it is dropped; changes of the object are held back until then.
pub(crate) struct Writing {
    followed: Option<Arc<Followed>>,
    object: Object,
}

impl Writing {
    /// The object was written, and is stored like this.
    pub(crate) fn wrote(&self, object: &Value) {
        let (Some(followed), Some(gvk)) = (&self.followed, meta::gvk(object)) else { return };
        let hash = ObjectHash::new(&gvk, meta::namespace(object), meta::name(object));
        let version = version(meta::resource_version(object));
        followed.known().values_mut().for_each(|known| known.seen.read(hash, version));
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let Some(followed) = &self.followed else { return };
        let held = {
            let mut all = followed.written();
            let Some(written) = all.get_mut(&self.object) else { return };
            written.writers -= 1;
            if written.writers > 0 {
                return;
            }
            all.remove(&self.object).unwrap_or_default().held
        };
        held.into_iter().for_each(|notice| followed.changed(&self.object, notice));
    }
}
