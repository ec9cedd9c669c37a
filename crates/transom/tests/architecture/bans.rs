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
    /// The start of the paths, below `crates`, to which the ban applies.
    within: &'static str,
    texts: &'static [&'static str],
    why: &'static str,
    allowed: &'static [&'static str],
}

const BANS: &[Ban] = &[
    Ban {
        within: "",
        texts: &["SystemTime::now", "Timestamp::now", "OffsetDateTime::now_utc"],
        why: "take the time from the caller",
        allowed: &[
            // The sources of time that others are given.
            "apiserver/src/environment.rs",
            "gotemplate/src/context.rs",
            "transom/src/plane/controllers.rs",
            // Times of what it measures.
            "bench/src/plane/mod.rs",
            // Ages in tables, validity of tokens, and times in the store's own files.
            "apiserver/src/represent.rs",
            "apiserver/src/tokens.rs",
            "apiserver/src/verbs/scale.rs",
            "apiserver/src/verbs/token.rs",
            "store/src/sequencer.rs",
            "transom/src/plane/pki.rs",
            // Files are ordered by the time of their last use.
            "oci/src/cache/entry.rs",
            "oci/src/cache/mod.rs",
        ],
    },
    Ban {
        within: "",
        texts: &["env::var"],
        why: "only the binary reads the environment",
        allowed: &[
            // Variables of one function, which others must not inherit through a flag.
            "transom/src/function/mod.rs",
            // Where OCI runtimes are found.
            "transom/src/containers/args.rs",
            "transom/src/plane/crash_injection.rs",
            "transom/src/plane/data_location.rs",
            "transom/src/plane/packages.rs",
            "transom/src/rollout/crash_injection.rs",
            "transom/src/xpkg/origin.rs",
        ],
    },
    Ban {
        within: "",
        // `.spawn(` is that of a runtime's `Handle`, a `JoinSet`, a builder of threads, or a command.
        texts: &["tokio::spawn(", ".spawn(", "spawn_blocking(", "spawn_local(", "thread::spawn("],
        why: "a task needs an owner that ends it",
        allowed: &[
            // Computing a large document must not hold up other requests; the request waits for the result.
            "apiserver/src/openapi/documents.rs",
            "bench/src/client.rs",
            "bench/src/plane/running.rs",
            // The first process of a container, and what belongs to it: ends with the container, which ends when it is dropped.
            "container/src/container.rs",
            // The processes of a container, which end with the first.
            "container/src/shim/init.rs",
            "container/src/shim/outer.rs",
            // Starts a container again; ended when its owner is dropped.
            "container/src/supervisor.rs",
            "controllers/src/definition/mod.rs",
            // Reading a large package must not hold up other runs; the run waits for the result.
            "controllers/src/package/source.rs",
            // Lists of tags that take long, in a `JoinSet` that ends with the controller of the Lock.
            "controllers/src/package/tags.rs",
            "controllers/src/usage/protection.rs",
            "engine/src/events.rs",
            "engine/src/following.rs",
            "engine/src/watches.rs",
            "engine/src/worker.rs",
            "function/src/testing.rs",
            // Reading files and unpacking layers; the caller waits for the result.
            "oci/src/cache/mod.rs",
            "oci/src/layout/mod.rs",
            "oci/src/package.rs",
            // A credential helper of Docker, which is killed with the future that waits for it.
            "oci/src/credentials/credential_program.rs",
            "oci/src/testing/mod.rs",
            "oci/src/testing/respond.rs",
            "store/src/log/compaction.rs",
            "store/src/store.rs",
            // Functions from packages, which are prepared and stopped; all are stopped with the plane.
            "transom/src/containers/revision.rs",
            "transom/src/containers/runtime.rs",
            "transom/src/plane/controllers.rs",
            // Packages that are looked at before they are installed; ends with the plane.
            "transom/src/plane/embedded.rs",
            "transom/src/plane/listener.rs",
            "transom/src/plane/server.rs",
            "transom/src/up/mod.rs",
        ],
    },
    Ban {
        within: "compose/src/",
        texts: &["HashMap", "HashSet"],
        why: "what compose decides must not depend on the order of a map",
        allowed: &[
            // Looked up by key only; the order of plans, errors and requests comes from elsewhere.
            "compose/src/distinct.rs",
            "compose/src/nesting.rs",
            "compose/src/reads.rs",
        ],
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
            if !path.starts_with(ban.within) {
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
