//! The status of a pod in one word, from the states of its containers.

use super::{Printed, age};
use serde_json::{Value, json};

pub(super) fn cells(o: &Printed<'_>, name: Value, created: Value) -> Vec<Value> {
    let s = Summary::of(o);
    let restarts = match s.last_restart {
        Some(at) if s.restarts != 0 => format!("{} ({} ago)", s.restarts, age(at, o.now)),
        _ => s.restarts.to_string(),
    };
    let or_none = |text: &str| json!(if text.is_empty() { "<none>" } else { text });
    vec![
        name,
        json!(format!("{}/{}", s.ready, s.total)),
        json!(s.reason),
        json!(restarts),
        created,
        or_none(o.text("/status/podIPs/0/ip")),
        or_none(o.text("/spec/nodeName")),
        or_none(o.text("/status/nominatedNodeName")),
        json!(readiness_gates(o)),
    ]
}

fn readiness_gates(o: &Printed<'_>) -> String {
    let gates = o.list("/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let holds = |gate: &&Value| {
        gate.get("conditionType").and_then(Value::as_str).is_some_and(|ty| condition(o, ty) == Some("True"))
    };
    format!("{}/{}", gates.iter().filter(holds).count(), gates.len())
}

fn condition<'a>(o: &Printed<'a>, ty: &str) -> Option<&'a str> {
    let found =
        o.list("/status/conditions").iter().find(|c| c.get("type").and_then(Value::as_str) == Some(ty));
    found?.get("status")?.as_str()
}

struct Summary<'a> {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    /// RFC 3339 in UTC, so that the greater text is the later moment.
    last_restart: Option<&'a str>,
}

impl<'a> Summary<'a> {
    fn of(o: &Printed<'a>) -> Self {
        let phase = o.text("/status/phase");
        let given = o.text("/status/reason");
        let mut s = Summary {
            reason: if given.is_empty() { phase } else { given }.to_owned(),
            ready: 0,
            total: o.list("/spec/containers").len(),
            restarts: 0,
            last_restart: None,
        };
        let gated = |c: &Value| {
            c.get("type") == Some(&json!("PodScheduled"))
                && c.get("reason") == Some(&json!("SchedulingGated"))
        };
        if o.list("/status/conditions").iter().any(gated) {
            s.reason = "SchedulingGated".to_owned();
        }
        s.total += o.list("/spec/initContainers").iter().filter(|c| restartable(c)).count();
        let (initializing, sidecars) = s.init_containers(o);
        if !initializing || condition(o, "Initialized") == Some("True") {
            (s.restarts, s.last_restart) = sidecars;
            s.containers(o);
        }
        if o.object.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string) {
            match phase {
                _ if given == "NodeLost" => s.reason = "Unknown".to_owned(),
                "Succeeded" | "Failed" => {}
                _ => s.reason = "Terminating".to_owned(),
            }
        }
        s
    }

    fn restarted(&mut self, status: &Printed<'a>) {
        self.restarts += status.number("/restartCount");
        self.last_restart = self.last_restart.max(finished(status));
    }

    /// Whether initialisation is still going on or failed, and the restarts of the sidecars alone.
    fn init_containers(&mut self, o: &Printed<'a>) -> (bool, (i64, Option<&'a str>)) {
        let specs = o.list("/spec/initContainers");
        let mut sidecars = (0, None);
        for (i, status) in o.list("/status/initContainerStatuses").iter().enumerate() {
            let status = Printed { object: status, now: o.now };
            let spec = specs.iter().find(|c| c.get("name") == status.object.get("name"));
            let sidecar = spec.is_some_and(restartable);
            self.restarted(&status);
            if sidecar {
                sidecars.0 += status.number("/restartCount");
                sidecars.1 = sidecars.1.max(finished(&status));
            }
            let terminated = status.object.pointer("/state/terminated").is_some();
            if terminated && status.number("/state/terminated/exitCode") == 0 {
                continue;
            }
            if sidecar && is_true(&status, "/started") {
                self.ready += usize::from(is_true(&status, "/ready"));
                continue;
            }
            let waiting = status.text("/state/waiting/reason");
            self.reason = match waiting {
                _ if terminated => format!("Init:{}", ended(&status)),
                "" | "PodInitializing" => format!("Init:{i}/{}", specs.len()),
                reason => format!("Init:{reason}"),
            };
            return (true, sidecars);
        }
        (false, sidecars)
    }

    fn containers(&mut self, o: &Printed<'a>) {
        let (mut running, mut failed) = (false, None);
        for status in o.list("/status/containerStatuses").iter().rev() {
            let status = Printed { object: status, now: o.now };
            self.restarted(&status);
            let waiting = status.text("/state/waiting/reason");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if status.object.pointer("/state/terminated").is_some() {
                self.reason = ended(&status);
                if status.number("/state/terminated/exitCode") != 0 {
                    failed = Some(self.reason.clone());
                }
            } else if is_true(&status, "/ready") && status.object.pointer("/state/running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            match failed {
                _ if running && condition(o, "Ready") == Some("True") => self.reason = "Running".to_owned(),
                Some(reason) => self.reason = reason,
                None if running => self.reason = "NotReady".to_owned(),
                None => {}
            }
        }
    }
}

fn restartable(container: &Value) -> bool {
    container.get("restartPolicy").and_then(Value::as_str) == Some("Always")
}

fn is_true(o: &Printed<'_>, pointer: &str) -> bool {
    o.object.pointer(pointer) == Some(&Value::Bool(true))
}

fn finished<'a>(status: &Printed<'a>) -> Option<&'a str> {
    Some(status.text("/lastState/terminated/finishedAt")).filter(|at| !at.is_empty())
}

fn ended(status: &Printed<'_>) -> String {
    match (status.text("/state/terminated/reason"), status.number("/state/terminated/signal")) {
        ("", 0) => format!("ExitCode:{}", status.number("/state/terminated/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
