//! A CustomResourceDefinition and one object of its kind, through crashes: created, usable at once, deleted with
//! its objects.

use crate::ledger::GROUP;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use transom_testkit::process::{Client, Gone, WAIT_LIMIT};

pub(crate) fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            }}}],
        },
    })
}

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What is known of the definition; the object is one step ahead of or behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Defined,
    Used,
    Deleting,
}

pub(crate) struct Definition {
    plural: String,
    kind: String,
    state: State,
    in_flight: bool,
}

impl Definition {
    pub(crate) fn new(number: usize) -> Self {
        let (plural, kind) = (format!("part{number}s"), format!("Part{number}"));
        Self { plural, kind, state: State::Absent, in_flight: false }
    }

    fn path(&self) -> String {
        format!("{DEFINITIONS}/{}.{GROUP}", self.plural)
    }

    fn objects(&self) -> String {
        format!("/apis/{GROUP}/v1/namespaces/default/{}", self.plural)
    }

    /// The next step of its life; an answer is an acknowledgement.
    pub(crate) async fn step(&mut self, client: &Client) -> Result<(), Gone> {
        self.in_flight = true;
        let (reply, next) = match self.state {
            State::Absent => {
                (client.post(DEFINITIONS, &definition(&self.plural, &self.kind)).await?, State::Defined)
            }
            State::Defined => {
                let object = json!({
                    "apiVersion": format!("{GROUP}/v1"), "kind": self.kind,
                    "metadata": {"name": "one"}, "spec": {"n": 1},
                });
                (client.post(&self.objects(), &object).await?, State::Used)
            }
            State::Used => (client.delete(&self.path()).await?, State::Deleting),
            State::Deleting => {
                self.in_flight = false;
                let reply = client.get(&self.path()).await?;
                if reply.status == 404 {
                    self.state = State::Absent;
                }
                return Ok(());
            }
        };
        assert!(reply.ok(), "{} in state {:?}: {}", self.plural, self.state, reply.text());
        self.state = next;
        self.in_flight = false;
        Ok(())
    }

    /// Compares with what a restarted server says and serves.
    pub(crate) async fn compare_after_restart(&mut self, client: &Client) -> Result<(), Gone> {
        let in_flight = std::mem::take(&mut self.in_flight);
        let (acknowledged, found) = (self.state, self.find(client).await?);
        let possible = match (acknowledged, found) {
            // It goes on to vanish by itself.
            (State::Deleting, State::Absent | State::Deleting) => true,
            (a, f) if a == f => true,
            (State::Absent, State::Defined)
            | (State::Defined, State::Used)
            | (State::Used, State::Deleting | State::Absent) => in_flight,
            _ => false,
        };
        assert!(possible, "{}: acknowledged {acknowledged:?}, found {found:?}", self.plural);
        self.state = found;
        if found == State::Deleting {
            self.vanishes(client).await?;
        }
        Ok(())
    }

    async fn find(&self, client: &Client) -> Result<State, Gone> {
        let reply = client.get(&self.path()).await?;
        let listed = client.get(&self.objects()).await?;
        if reply.status == 404 {
            assert_eq!(listed.status, 404, "{} is served without a definition", self.plural);
            return Ok(State::Absent);
        }
        let definition = reply.json();
        if definition["metadata"]["deletionTimestamp"].is_string() {
            return Ok(State::Deleting);
        }
        assert_eq!(listed.status, 200, "{} is defined and not served: {}", self.plural, listed.text());
        let objects = listed.json()["items"].as_array().map_or(0, Vec::len);
        Ok(if objects == 0 { State::Defined } else { State::Used })
    }

    async fn vanishes(&mut self, client: &Client) -> Result<(), Gone> {
        let started = Instant::now();
        while client.get(&self.path()).await?.status != 404 {
            assert!(started.elapsed() < WAIT_LIMIT, "{} is not cleaned up after a restart", self.plural);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(client.get(&self.objects()).await?.status, 404);
        self.state = State::Absent;
        Ok(())
    }
}
