//! The `config.json` of a container for an OCI runtime. Pure.
//!
//! There is no namespace for the network: the container is in that of the OCI runtime, which is the container's own. There
//! is no `oomScoreAdj`: it fails where the capability to lower it is missing.

use crate::spec::{OPEN_FILES_MAX, Plan};
use serde_json::{Value, json};

/// The length of a period in which a container may use its share of the processors, in microseconds.
const CPU_PERIOD: u64 = 100_000;
/// What a container may keep in shared memory, in bytes.
const SHARED_MEMORY_BYTES: u64 = 16 << 20;

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
    let mut all = vec![("RLIMIT_NOFILE", OPEN_FILES_MAX), ("RLIMIT_CORE", 0)];
    if !plan.cgroups {
        all.extend([("RLIMIT_NPROC", limits.processes), ("RLIMIT_DATA", limits.memory_bytes)]);
    }
    all.into_iter().map(|(kind, most)| json!({"type": kind, "hard": most, "soft": most})).collect()
}

fn mounts(plan: &Plan) -> Value {
    let tmp = format!("size={}", plan.spec.limits.tmp_bytes);
    let shared = format!("size={SHARED_MEMORY_BYTES}");
    json!([
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
    ])
}

fn linux(plan: &Plan) -> Value {
    let namespaces = ["pid", "ipc", "uts", "mount"].map(|kind| json!({"type": kind}));
    let mut linux = json!({
        "namespaces": namespaces,
        "maskedPaths": [
            "/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
            "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
        ],
        "readonlyPaths": [
            "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
        ],
    });
    if plan.cgroups {
        let limits = &plan.spec.limits;
        linux["cgroupsPath"] = format!("/{}/{}", crate::workspace::CGROUP_PARENT, plan.id).into();
        linux["resources"] = json!({
            "memory": {"limit": limits.memory_bytes},
            "cpu": {"quota": limits.cpu_millis * CPU_PERIOD / 1000, "period": CPU_PERIOD},
            "pids": {"limit": limits.processes},
            "devices": [{"allow": false, "access": "rwm"}],
        });
    }
    linux
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{ContainerSpec, Limits};

    fn plan(cgroups: bool) -> Plan {
        let spec = ContainerSpec {
            name: "function-x".into(),
            root: "/images/x/rootfs".into(),
            args: vec!["/function".into(), "--insecure".into()],
            env: vec!["A=b".into()],
            cwd: "/".into(),
            port: 9443,
            limits: Limits { memory_bytes: 1 << 20, cpu_millis: 500, processes: 7, tmp_bytes: 4096 },
        };
        Plan {
            spec,
            id: "id".into(),
            user_namespace: false,
            user: 2000,
            cgroups,
            oci_runtime: None,
            folder: "/run/id".into(),
        }
    }

    #[test]
    fn a_bundle_isolates_and_limits() {
        let config = config(&plan(true));
        assert_eq!(config["root"], json!({"path": "/images/x/rootfs", "readonly": true}));
        assert_eq!(config["process"]["user"], json!({"uid": 2000, "gid": 2000}));
        assert_eq!(config["process"]["args"], json!(["/function", "--insecure"]));
        assert_eq!(config["process"]["capabilities"]["bounding"], json!([]));
        let resources = &config["linux"]["resources"];
        assert_eq!(resources["memory"]["limit"], 1 << 20);
        assert_eq!(resources["cpu"], json!({"quota": 50_000, "period": 100_000}));
        assert_eq!(resources["pids"]["limit"], 7);
        assert_eq!(config["linux"]["cgroupsPath"], "/transom/id");
        let text = config.to_string();
        assert!(!text.contains("oomScoreAdj") && !text.contains("\"network\""), "{text}");
        assert!(text.contains("size=4096"), "{text}");
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
