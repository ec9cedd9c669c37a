//! Elections in virtual time: processes that are partitioned, slow, killed and added at random.

use super::*;
use crate::ownership::Ownership;
use http::{Request, Response};
use kube::client::Body;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::task::AbortHandle;
use tower::service_fn;

const SHARDS: u32 = 4;
const LEADER: &str = "leader";
const COLLECTION: &str = "/apis/coordination.k8s.io/v1/namespaces/n/leases";

/// A server that stores Leases with compare-and-swap.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<(u64, BTreeMap<String, Value>)>>);

impl Server {
    fn answer(&self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        let (route, query) = path.split_once('?').unwrap_or((path, ""));
        if route == "/apis/coordination.k8s.io/v1" {
            let lease = json!({"name": "leases", "kind": "Lease", "namespaced": true});
            return (200, json!({"resources": [lease]}));
        }
        let mut stored = self.0.lock().unwrap();
        let (version, leases) = &mut *stored;
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        let name = route.strip_prefix(COLLECTION).unwrap().trim_start_matches('/').to_owned();
        match (method, name.is_empty()) {
            ("GET", true) => {
                let role = query.rsplit_once("%3D").map(|(_, role)| role).unwrap_or_default();
                let has = |lease: &&Value| meta::label(lease, LABEL) == Some(role);
                let items: Vec<Value> = leases.values().filter(has).cloned().collect();
                (200, json!({"metadata": {"resourceVersion": version.to_string()}, "items": items}))
            }
            ("GET", false) => leases.get(&name).map_or((404, json!({})), |lease| (200, lease.clone())),
            ("DELETE", _) => leases.remove(&name).map_or((404, json!({})), |lease| (200, lease)),
            (method, _) => {
                let name = meta::name(&sent).to_owned();
                let before = leases.get(&name).map(|lease| meta::resource_version(lease).to_owned());
                match (method, before) {
                    ("POST", Some(_)) => return (409, json!({"reason": "AlreadyExists"})),
                    ("PUT", None) => return (404, json!({})),
                    ("PUT", Some(before)) if before != meta::resource_version(&sent) => {
                        return (409, json!({"reason": "Conflict"}));
                    }
                    _ => {}
                }
                *version += 1;
                let mut lease = sent;
                lease["metadata"]["resourceVersion"] = version.to_string().into();
                leases.insert(name, lease.clone());
                (200, lease)
            }
        }
    }

    fn holder(&self, shard: u32) -> String {
        self.0
            .lock()
            .unwrap()
            .1
            .get(&shard_name(LEADER, shard))
            .map(|l| record::holder(l).to_owned())
            .unwrap_or_default()
    }
}

/// What lies between a process and the server.
#[derive(Default)]
struct Network {
    /// Requests reach the server, answers do not come back.
    deaf: AtomicBool,
    /// Requests do not reach the server.
    cut: AtomicBool,
    delay_ms: AtomicU64,
}

struct Process {
    ownership: Ownership,
    network: Arc<Network>,
    stop: watch::Sender<bool>,
    task: AbortHandle,
}

fn start(server: &Server, identity: &str) -> Process {
    let network: Arc<Network> = Arc::default();
    let (between, server) = (network.clone(), server.clone());
    let service = service_fn(move |request: Request<Body>| {
        let (between, server) = (between.clone(), server.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let delay = between.delay_ms.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(1 + delay)).await;
            if between.cut.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            let path = head.uri.path_and_query().unwrap().as_str();
            let (code, answer) = server.answer(head.method.as_str(), path, &body);
            tokio::time::sleep(Duration::from_millis(delay)).await;
            if between.deaf.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            let answer =
                Response::builder().status(code).body(Body::from(serde_json::to_vec(&answer).unwrap()));
            Ok::<_, std::convert::Infallible>(answer.unwrap())
        }
    });
    let ownership = Ownership::shared(SHARDS);
    let options = ElectionOptions {
        namespace: "n".to_owned(),
        leader_lease: LEADER.to_owned(),
        identity: identity.to_owned(),
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };
    let clock = Clock::starting_at(transom_object::time::parse("2024-01-01T00:00:00Z").unwrap());
    let cluster = Cluster::new(kube::Client::new(service, "n"));
    let election = Election::new(cluster, clock, options, ownership.clone());
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(election.run(stopped)).abort_handle();
    Process { ownership, network, stop, task }
}

fn holders(processes: &[Process], shard: u32) -> usize {
    processes.iter().filter(|process| process.ownership.holds(shard)).count()
}

/// Lets time pass; at no moment do two processes hold one shard.
async fn pass(processes: &[Process], seconds: u64, what: &str) {
    for _ in 0..seconds * 20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        for shard in 0..=SHARDS {
            assert!(holders(processes, shard) <= 1, "shard {shard} is held twice: {what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_clean_stop_hands_over_at_once_and_a_lost_process_is_replaced_after_its_lease() {
    let server = Server::default();
    let mut processes = vec![start(&server, "a")];
    pass(&processes, 3, "alone").await;
    assert!((0..=SHARDS).all(|shard| processes[0].ownership.holds(shard)));
    processes.push(start(&server, "b"));
    pass(&processes, 8, "two").await;
    let halves = (1..=SHARDS).filter(|shard| processes[1].ownership.holds(*shard)).count();
    assert_eq!(halves, 2, "shards are divided");
    assert!(processes[0].ownership.holds(LEADER_SHARD), "the leader stays");
    processes[0].stop.send_replace(true);
    pass(&processes, 6, "a stopped").await;
    assert!((0..=SHARDS).all(|shard| processes[1].ownership.holds(shard)), "within a few rounds");
    // The process is gone without a word.
    processes[1].task.abort();
    processes[1].network.cut.store(true, Ordering::SeqCst);
    processes.push(start(&server, "c"));
    pass(&processes, 9, "b is lost").await;
    assert!((0..=SHARDS).all(|shard| !processes[2].ownership.holds(shard)), "b might still write");
    pass(&processes, 12, "c takes over").await;
    assert!((0..=SHARDS).all(|shard| processes[2].ownership.holds(shard)));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_taken_while_another_program_leads() {
    let server = Server::default();
    let other = |renewed: u64| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": LEADER, "namespace": "n", "resourceVersion": renewed.to_string()},
            "spec": {"holderIdentity": "other-7d9_x", "leaseDurationSeconds": 15},
        })
    };
    let processes = [start(&server, "a")];
    for renewed in 0..10 {
        server.0.lock().unwrap().1.insert(LEADER.to_owned(), other(1000 + renewed));
        pass(&processes, 5, "the other leads").await;
        assert!((0..=SHARDS).all(|shard| !processes[0].ownership.holds(shard)));
    }
    pass(&processes, 20, "the other ended").await;
    assert!((0..=SHARDS).all(|shard| processes[0].ownership.holds(shard)));
}

/// A generator that can be replayed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[tokio::test(start_paused = true)]
async fn no_shard_is_ever_held_twice_and_none_is_forgotten() {
    for seed in 1..=20 {
        let (server, mut random) = (Server::default(), Random(seed));
        let mut processes: Vec<Process> = (0..3).map(|n| start(&server, &format!("p{n}"))).collect();
        for step in 0..30 {
            let count = processes.len() as u64;
            let at = usize::try_from(random.below(count)).unwrap();
            let network = processes[at].network.clone();
            match random.below(7) {
                0 => network.cut.store(true, Ordering::SeqCst),
                1 => network.deaf.store(true, Ordering::SeqCst),
                2 => network.delay_ms.store(random.below(9_000), Ordering::SeqCst),
                3 => drop(processes[at].stop.send_replace(true)),
                4 => processes.push(start(&server, &format!("s{step}"))),
                _ => {
                    network.cut.store(false, Ordering::SeqCst);
                    network.deaf.store(false, Ordering::SeqCst);
                    network.delay_ms.store(0, Ordering::SeqCst);
                }
            }
            let seconds = 1 + random.below(20);
            pass(&processes, seconds, &format!("seed {seed}, step {step}")).await;
        }
        for process in &processes {
            process.network.cut.store(false, Ordering::SeqCst);
            process.network.deaf.store(false, Ordering::SeqCst);
            process.network.delay_ms.store(0, Ordering::SeqCst);
        }
        processes.push(start(&server, "last"));
        pass(&processes, 90, &format!("seed {seed}, at the end")).await;
        for shard in 0..=SHARDS {
            assert_eq!(
                holders(&processes, shard),
                1,
                "seed {seed}: shard {shard} of {}",
                server.holder(shard)
            );
        }
        processes.iter().for_each(|process| process.task.abort());
    }
}
