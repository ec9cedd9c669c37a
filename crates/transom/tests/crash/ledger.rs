//! What one object went through, as its only writer knows it: the acknowledged state, the step whose answer was
//! cut off, and the changes that a watch must show.

use serde_json::{Value, json};
use transom_testkit::process::Reply;

pub(crate) const NAMESPACE: &str = "crash";
pub(crate) const GROUP: &str = "crash.example.com";
const HOLD: &str = "crash.example.com/hold";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A ConfigMap: created, updated, deleted.
    Plain,
    /// A ConfigMap with a finalizer: deleting marks it, releasing removes it.
    Held,
    /// An object of a custom kind.
    Custom,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Absent,
    Live { n: u64 },
    Marked { n: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Create(u64),
    Update(u64),
    Delete,
    Release,
}

/// A change as a watch shows it: what it was, the object's number, and whether it was marked for deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub ty: String,
    pub n: u64,
    pub marked: bool,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    pub kind: Kind,
    pub name: String,
    state: State,
    /// The revision of the last acknowledged write, if its response had one.
    revision: Option<u64>,
    /// Sent, and not answered.
    pending: Option<Step>,
    /// Changes that happened since the last comparison with the watch.
    pub changes: Vec<Change>,
}

impl Ledger {
    pub(crate) fn new(kind: Kind, name: String) -> Self {
        Self { kind, name, state: State::Absent, revision: None, pending: None, changes: Vec::new() }
    }

    pub(crate) fn collection(kind: Kind) -> String {
        match kind {
            Kind::Plain | Kind::Held => format!("/api/v1/namespaces/{NAMESPACE}/configmaps"),
            Kind::Custom => format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/gadgets"),
        }
    }

    pub(crate) fn path(&self) -> String {
        format!("{}/{}", Self::collection(self.kind), self.name)
    }

    /// A step that makes sense now; `n` numbers a new content and `choice` is random.
    pub(crate) fn plan(&mut self, n: u64, choice: u64) -> Step {
        let step = match (self.state, self.kind) {
            (State::Absent, _) => Step::Create(n),
            (State::Marked { .. }, _) => Step::Release,
            (State::Live { .. }, _) if choice.is_multiple_of(3) => Step::Delete,
            (State::Live { .. }, _) => Step::Update(n),
        };
        self.pending = Some(step);
        step
    }

    /// The object as a create sends it.
    pub(crate) fn object(&self, n: u64) -> Value {
        let mut metadata = json!({"name": self.name});
        if self.kind == Kind::Held {
            metadata["finalizers"] = json!([HOLD]);
        }
        match self.kind {
            Kind::Custom => json!({
                "apiVersion": format!("{GROUP}/v1"), "kind": "Gadget", "metadata": metadata, "spec": {"n": n},
            }),
            _ => json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"n": n.to_string()},
            }),
        }
    }

    /// The merge patch of an update.
    pub(crate) fn change(&self, n: u64) -> Value {
        match self.kind {
            Kind::Custom => json!({"spec": {"n": n}}),
            _ => json!({"data": {"n": n.to_string()}}),
        }
    }

    fn read(object: &Value) -> (u64, bool) {
        let custom = object["spec"]["n"].as_u64();
        let n = custom.or_else(|| object["data"]["n"].as_str().and_then(|s| s.parse().ok()));
        (n.expect("a numbered object"), object["metadata"]["deletionTimestamp"].is_string())
    }

    /// The step was answered; it must have worked, since no other client writes this object.
    pub(crate) fn acknowledged(&mut self, reply: &Reply) {
        let step = self.pending.take().expect("a step was sent");
        assert!(reply.ok(), "{step:?} of {} in state {:?}: {}", self.name, self.state, reply.text());
        self.happened(step);
        let revision = reply.revision();
        self.revision = (self.state != State::Absent && revision > 0).then_some(revision);
    }

    fn happened(&mut self, step: Step) {
        let (state, change) = self.after(step);
        self.state = state;
        self.changes.push(change);
    }

    fn after(&self, step: Step) -> (State, Change) {
        let (before, marked) = match self.state {
            State::Absent => (0, false),
            State::Live { n } => (n, false),
            State::Marked { n } => (n, true),
        };
        let change = |ty: &str, n, marked| Change { ty: ty.to_owned(), n, marked };
        match step {
            Step::Create(n) => (State::Live { n }, change("ADDED", n, false)),
            Step::Update(n) => (State::Live { n }, change("MODIFIED", n, false)),
            Step::Delete if self.kind == Kind::Held => {
                (State::Marked { n: before }, change("MODIFIED", before, true))
            }
            Step::Delete | Step::Release => (State::Absent, change("DELETED", before, marked)),
        }
    }

    /// Compares with what a restarted server says. A step that was cut off may have happened or not; anything
    /// else is a loss.
    pub(crate) fn compare_after_restart(&mut self, reply: &Reply) {
        let found = match reply.status {
            404 => State::Absent,
            200 => match Self::read(&reply.json()) {
                (n, false) => State::Live { n },
                (n, true) => State::Marked { n },
            },
            _ => unreachable!("GET {}: {}", self.path(), reply.text()),
        };
        let pending = self.pending.take();
        if found == self.state {
            if let (State::Live { .. }, Some(revision)) = (found, self.revision) {
                assert_eq!(reply.revision(), revision, "{} changed its revision", self.name);
            }
            return;
        }
        let step = pending.filter(|step| self.after(*step).0 == found);
        let Some(step) = step else {
            unreachable!(
                "{}: acknowledged {:?}, in flight {pending:?}, found {found:?}",
                self.name, self.state
            );
        };
        self.happened(step);
        self.revision = (found != State::Absent).then(|| reply.revision());
    }

    /// A watch event as a change.
    pub(crate) fn seen(event: &Value) -> Change {
        let (n, marked) = Self::read(&event["object"]);
        Change { ty: event["type"].as_str().unwrap_or_default().to_owned(), n, marked }
    }
}
