//! The `config.json` of a container for an OCI runtime. Pure.
//!
//! There is no namespace for the network: the container is in that of the OCI runtime, which is the container's own. There
//! is no `oomScoreAdj`: it fails where the capability to lower it is missing.

use crate::cgroup::{CPU_PERIOD_MICROS, RUN, cpu_quota};
use crate::seccomp;
use crate::spec::{MASKED_PATHS, Plan, READ_ONLY_PATHS, SHARED_MEMORY_BYTES};
use serde_json::{Value, json};

/// The content of `config.json`.
pub(crate) fn config(plan: &Plan) -> Value {
    let spec = &plan.spec;
    json!({
        "ociVersion": "1.0.2",
        "hostname": spec.name,
        "root": {"path": spec.root, "readonly": true},
        "process": {
            "terminal": false,
            "user": {"uid": plan.user, "gid": plan.user},
            "args": spec.args,
            "env": spec.env,
            "cwd": spec.cwd,
            "noNewPrivileges": true,
            "capabilities": {
                "bounding": [], "effective": [], "inheritable": [], "permitted": [], "ambient": [],
            },
            "rlimits": rlimits(plan),
        },
        "mounts": mounts(plan),
        "linux": linux(plan),
    })
}

fn rlimits(plan: &Plan) -> Vec<Value> {
    let limits = &plan.spec.limits;
    let mut all = vec![("RLIMIT_NOFILE", plan.open_files_max()), ("RLIMIT_CORE", 0)];
    if plan.own_cgroups().is_empty() {
        all.extend([("RLIMIT_NPROC", limits.processes), ("RLIMIT_DATA", limits.memory_bytes)]);
    }
    all.into_iter().map(|(kind, most)| json!({"type": kind, "hard": most, "soft": most})).collect()
}

fn mounts(plan: &Plan) -> Value {
    let tmp = format!("size={}", plan.spec.limits.tmp_bytes);
    let shared = format!("size={SHARED_MEMORY_BYTES}");
    let own = plan.spec.mounts.iter().map(|mount| {
        let options = ["rbind", "ro", "nosuid", "nodev", "noexec"];
        json!({"destination": mount.target, "type": "bind", "source": mount.source, "options": options})
    });
    let Value::Array(mut all) = json!([
        {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
        {
            "destination": "/dev", "type": "tmpfs", "source": "tmpfs",
            "options": ["nosuid", "strictatime", "mode=755", "size=65536"],
        },
        {
            "destination": "/dev/shm", "type": "tmpfs", "source": "shm",
            "options": ["nosuid", "noexec", "nodev", "mode=1777", shared],
        },
        {
            "destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
            "options": ["nosuid", "nodev", "mode=1777", tmp],
        },
    ]) else {
        return Value::Null;
    };
    all.extend(own);
    Value::Array(all)
}

fn linux(plan: &Plan) -> Value {
    let namespaces = ["pid", "ipc", "uts", "mount"].map(|kind| json!({"type": kind}));
    // An OCI runtime may mount `/sys` on its own account.
    let masked: Vec<&str> = MASKED_PATHS.into_iter().chain(["/sys/firmware"]).collect();
    let mut linux = json!({
        "namespaces": namespaces,
        "seccomp": if plan.once.is_some() { seccomp::profile() } else { seccomp::refusing() },
        "maskedPaths": masked,
        "readonlyPaths": READ_ONLY_PATHS,
    });
    if !plan.own_cgroups().is_empty() {
        // Below the one that has the limits.
        linux["cgroupsPath"] = format!("/{}/{}/{RUN}", crate::workspace::CGROUP_PARENT, plan.id).into();
        let quota = cpu_quota(&plan.spec.limits);
        linux["resources"] = json!({
            "devices": [{"allow": false, "access": "rwm"}],
            "cpu": {"quota": quota, "period": CPU_PERIOD_MICROS},
        });
    }
    linux
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{ContainerSpec, Limits, Mount, Network, Once};

    const CGROUP: &str = "/sys/fs/cgroup/transom/id";

    fn plan(cgroups: bool) -> Plan {
        let spec = ContainerSpec {
            name: "function-x".into(),
            root: "/images/x/rootfs".into(),
            args: vec!["/function".into(), "--insecure".into()],
            env: vec!["A=b".into()],
            cwd: "/".into(),
            port: Some(9443),
            network: Network::None,
            mounts: vec![Mount { source: "/run/token".into(), target: "/var/run/token".into() }],
            limits: Limits { memory_bytes: 1 << 20, cpu_millis: 500, processes: 7, tmp_bytes: 4096 },
        };
        Plan {
            spec,
            id: "id".into(),
            user_namespace: false,
            user: 2000,
            oci_runtime: None,
            folder: "/run/id".into(),
            counted_by: if cgroups { vec![CGROUP.into()] } else { Vec::new() },
            once: None,
        }
    }

    #[test]
    fn a_container_that_runs_once_is_restricted_further() {
        let once = Once { cgroups: vec![CGROUP.into()] };
        let config = config(&Plan { once: Some(once), ..plan(false) });
        assert_eq!(config["linux"]["seccomp"]["defaultAction"], "SCMP_ACT_ERRNO");
        assert_eq!(config["linux"]["cgroupsPath"], "/transom/id/run");
        let limits = config["process"]["rlimits"].to_string();
        assert!(!limits.contains("RLIMIT_NPROC"), "cgroups count them: {limits}");
        assert!(limits.contains("1024") && !limits.contains("4096"), "as many files as Crossplane: {limits}");
    }

    #[test]
    fn a_bundle_isolates_and_limits() {
        let config = config(&plan(true));
        assert_eq!(config["root"], json!({"path": "/images/x/rootfs", "readonly": true}));
        assert_eq!(config["process"]["user"], json!({"uid": 2000, "gid": 2000}));
        assert_eq!(config["process"]["args"], json!(["/function", "--insecure"]));
        assert_eq!(config["process"]["capabilities"]["bounding"], json!([]));
        let resources = &config["linux"]["resources"];
        // Memory and processes are limited by the cgroup above.
        assert_eq!(resources["cpu"], json!({"quota": 50_000, "period": 100_000}));
        assert_eq!(resources["devices"], json!([{"allow": false, "access": "rwm"}]));
        assert_eq!(config["linux"]["cgroupsPath"], "/transom/id/run");
        let masked = config["linux"]["maskedPaths"].as_array().unwrap();
        assert!(
            masked.contains(&json!("/proc/kcore")) && masked.contains(&json!("/sys/firmware")),
            "{masked:?}"
        );
        assert_eq!(config["linux"]["readonlyPaths"], json!(READ_ONLY_PATHS));
        let text = config.to_string();
        assert!(!text.contains("oomScoreAdj") && !text.contains("\"network\""), "{text}");
        assert!(text.contains("size=4096"), "{text}");
        let mount = json!({
            "destination": "/var/run/token", "type": "bind", "source": "/run/token",
            "options": ["rbind", "ro", "nosuid", "nodev", "noexec"],
        });
        assert_eq!(config["mounts"][4], mount);
        assert_eq!(config["linux"]["seccomp"]["defaultAction"], "SCMP_ACT_ALLOW");
    }

    #[test]
    fn without_cgroups_processes_are_limited() {
        let config = config(&plan(false));
        assert!(config["linux"].get("resources").is_none());
        assert!(config["linux"].get("cgroupsPath").is_none());
        let limits = config["process"]["rlimits"].to_string();
        assert!(limits.contains("RLIMIT_NPROC") && limits.contains("RLIMIT_DATA"), "{limits}");
    }
}
