//! What only some files may do: read the clock or the environment, start tasks, threads and processes, and in `compose`
//! use maps without an order. Everything else gets time, settings and random numbers from its caller, so that it can be
//! tested and simulated.
//!
//! A file that is listed and no longer needs it fails, too.

use super::budgets::{code_only, without_tests};
use super::{root, sources};
use std::collections::BTreeSet;

/// Banned texts, the reason, where the ban applies, and the files that may contain them.
struct Ban {
    /// The starts of the paths, below `crates`, to which the ban applies.
    within: &'static [&'static str],
    texts: &'static [&'static str],
    why: &'static str,
    allowed: &'static [&'static str],
}

const BANS: &[Ban] = &[
    Ban {
        within: &[""],
        texts: &["SystemTime::now", "Timestamp::now", "OffsetDateTime::now_utc"],
        why: "take the time from the caller",
        allowed: &[
            // The sources of time that others are given.
            "apiserver/src/environment.rs",
            "gotemplate/src/context.rs",
            "provider/src/run.rs",
            "transom/src/plane/cluster.rs",
            "transom/src/plane/controllers.rs",
            "transom/src/plane/webhooks.rs",
            // Times of what it measures.
            "bench/src/plane/mod.rs",
            // Ages in tables, validity of tokens, and times in the store's own files.
            "apiserver/src/represent.rs",
            "apiserver/src/tokens.rs",
            "apiserver/src/verbs/scale.rs",
            "apiserver/src/verbs/token.rs",
            "store/src/sequencer.rs",
            "transom/src/plane/pki.rs",
            // When spans begin and end.
            "telemetry/src/span.rs",
            "transom/src/plane/oidc.rs",
            // Files are ordered by the time of their last use.
            "oci/src/cache/entry.rs",
            "oci/src/cache/mod.rs",
        ],
    },
    Ban {
        within: &[""],
        texts: &["env::var"],
        why: "only the binary reads the environment",
        allowed: &[
            // Chosen by tests, in debug builds.
            "container/src/crash_injection.rs",
            "provider/src/crash_injection.rs",
            "rollout/src/crash_injection.rs",
            // Variables of one function, which others must not inherit through a flag.
            "transom/src/function/mod.rs",
            // Where OCI runtimes are found.
            "transom/src/containers/args.rs",
            "transom/src/plane/crash_injection.rs",
            "transom/src/plane/data_location.rs",
            "transom/src/plane/packages.rs",
            "transom/src/xpkg/origin.rs",
        ],
    },
    Ban {
        within: &[""],
        // `.spawn(` is that of a runtime's `Handle`, a `JoinSet`, a builder of threads, or a command.
        texts: &[
            "tokio::spawn(",
            ".spawn(",
            "spawn_blocking(",
            "spawn_local(",
            "thread::spawn(",
            "Command::new(",
        ],
        why: "a task needs an owner that ends it",
        allowed: &[
            // Computing a large document must not hold up other requests; the request waits for the result.
            "apiserver/src/openapi/documents.rs",
            // Connections to what is measured, and planes that are; they end with the measurement.
            "bench/src/client.rs",
            "bench/src/plane/running.rs",
            // Ends the process at the second signal.
            "console/src/signals.rs",
            // Waits for the order to kill this process, in debug builds that a test has asked for it.
            "container/src/crash_injection.rs",
            // The first process of a container, and what belongs to it: ends with the container, which ends when it is dropped.
            "container/src/container.rs",
            // A container that runs once, in a task that ends it when its caller gives up.
            "container/src/once.rs",
            // The processes of a container, which end with the first; the program takes the place of one of them.
            "container/src/shim/enter.rs",
            "container/src/shim/init.rs",
            "container/src/shim/mod.rs",
            "container/src/shim/outer.rs",
            // Starts a container again; ended when its owner is dropped.
            "container/src/supervisor.rs",
            // Reports that a kind is served, outside of the lock of a watch; ends at once. Wakes definitions when versions are
            // converted elsewhere; ends with the controllers.
            "controllers/src/definition/mod.rs",
            // Looks up the addresses of a function; ends with the channel that it does so for.
            "runner/src/balance.rs",
            // Reading a large package must not hold up other runs; the run waits for the result.
            "controllers/src/package/source.rs",
            // Lists of tags that take long, in a `JoinSet` that ends with the controller of the Lock.
            "controllers/src/package/tags.rs",
            // Looks whether what is in use may be deleted; ends with the controllers.
            "controllers/src/usage/protection.rs",
            // Sends events, sweeps dependencies, follows watches, and runs reconcilers; all end with the engine.
            "engine/src/events.rs",
            "engine/src/following.rs",
            "engine/src/watches.rs",
            "engine/src/worker.rs",
            // A function for tests.
            "function/src/testing.rs",
            // Connections, which end with their endpoint; and the upkeep of certificates, which ends with the webhooks.
            "hosting/src/endpoint.rs",
            "hosting/src/webhooks.rs",
            // Functions from packages, which are prepared and stopped; all are stopped with the plane.
            "machine/src/program.rs",
            // Providers that are being stopped, in a `JoinSet` that is waited for when the plane stops.
            "machine/src/providers.rs",
            "machine/src/runtime.rs",
            // Reading files and unpacking layers; the caller waits for the result.
            "oci/src/cache/mod.rs",
            "oci/src/layout/mod.rs",
            "oci/src/package.rs",
            // A credential helper of Docker, which is killed with the future that waits for it.
            "oci/src/credentials/credential_program.rs",
            // A registry for tests.
            "oci/src/testing/mod.rs",
            "oci/src/testing/respond.rs",
            // A connection to PostgreSQL, which ends when its client is dropped.
            "providers/src/sql/pool.rs",
            // The threads that write the log and compact it; they are joined when the store is closed.
            "store/src/log/compaction.rs",
            "store/src/store.rs",
            // Sends spans; ends with the runtime of the process.
            "telemetry/src/export.rs",
            // A collector for tests.
            "telemetry/src/testing.rs",
            // The program of a project, which is killed with the value that owns it.
            "transom/src/function/process.rs",
            // Conversions, and checks of their rules, which compute for a while; the request waits for the result.
            "controllers/src/validation.rs",
            "transom/src/plane/conversions.rs",
            "transom/src/plane/webhooks.rs",
            // The election, which is stopped with the controllers.
            "transom/src/plane/cluster.rs",
            // The start of the controllers, and what expires cached responses; both end with the controllers.
            "transom/src/plane/controllers.rs",
            // Packages that are looked at before they are installed; ends with the plane.
            "transom/src/plane/embedded.rs",
            // Connections, which end with the listener; and the upkeep of the server, which ends with it.
            "transom/src/plane/listener.rs",
            "transom/src/plane/server.rs",
            // `git` and the script of a template, which are waited for.
            "transom/src/xpkg/init.rs",
            // The program of an adapted image, which is killed with the call that waits for it.
            "xfn/src/adapted.rs",
        ],
    },
    Ban {
        within: &["compose/src/"],
        texts: &["HashMap", "HashSet"],
        why: "what compose decides must not depend on the order of a map",
        allowed: &[
            // Looked up by key only; the order of plans, errors and requests comes from elsewhere.
            "compose/src/distinct.rs",
            "compose/src/nesting.rs",
            "compose/src/reads.rs",
        ],
    },
    Ban {
        within: &["store/src/"],
        texts: &["Value", "serde_json"],
        why: "objects are kept as encoded bytes with a small header",
        allowed: &[],
    },
    Ban {
        within: &[
            "go/src/",
            "object/src/",
            "cel/src/",
            "schema/src/",
            "kinds/src/",
            "rbac/src/",
            "oidc/src/",
            "packages/src/",
            "xapi/src/",
            "admission/src/",
            "crd/src/",
            "openapi/src/",
            "conversion/src/",
            "compose/src/",
        ],
        texts: &[
            "std::fs",
            "std::process",
            "std::net::Tcp",
            "tokio::",
            "Instant::now",
            "SystemRandom",
            "rand::",
        ],
        why: "these crates do no I/O themselves, and have neither a clock nor randomness",
        // Its tests make keys.
        allowed: &["oidc/src/jwt.rs"],
    },
];

#[test]
fn clocks_environment_tasks_and_maps_are_where_they_may_be() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let crates = root().join("crates");
    let (mut found, mut problems) = (BTreeSet::new(), Vec::new());
    for file in files {
        let path = file.strip_prefix(&crates).unwrap().to_string_lossy().into_owned();
        let of_tests = ["/tests", "_tests.rs", "/codegen/"].iter().any(|part| path.contains(part));
        let is_test = of_tests || path.starts_with("testkit/");
        if !path.contains("/src/") || is_test {
            continue;
        }
        let code = code_only(&without_tests(&std::fs::read_to_string(&file).unwrap()));
        for (n, ban) in BANS.iter().enumerate() {
            if !ban.within.iter().any(|start| path.starts_with(start)) {
                continue;
            }
            let Some(text) = ban.texts.iter().find(|text| code.contains(**text)) else { continue };
            match ban.allowed.iter().find(|allowed| path == **allowed) {
                Some(allowed) => {
                    found.insert((n, *allowed));
                }
                None => problems.push(format!("{path}: {text}: {}", ban.why)),
            }
        }
    }
    for (n, ban) in BANS.iter().enumerate() {
        let unused = ban.allowed.iter().filter(|file| !found.contains(&(n, **file)));
        problems
            .extend(unused.map(|file| format!("{file}: listed for {:?}, but no longer uses it", ban.texts)));
    }
    assert!(problems.is_empty(), "{problems:#?}");
}
