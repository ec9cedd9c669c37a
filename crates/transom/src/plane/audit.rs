//! The audit log as a file: JSON lines, a new file when one is full.

use clap::Args;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use transom_apiserver::AuditLog;
use transom_audit::{Decision, LogFile, Policy, Request};
use transom_console::Failure;
use transom_object::yaml;

/// What is recorded of requests, and where.
#[derive(Args)]
#[command(next_help_heading = "Audit log")]
pub(crate) struct AuditArgs {
    /// Which requests are recorded: a Policy of audit.k8s.io/v1; without it none are
    #[arg(long, value_name = "FILE", requires = "audit_log_path")]
    audit_policy_file: Option<PathBuf>,

    /// The file that events are appended to, one JSON object in each line
    #[arg(long, value_name = "FILE", requires = "audit_policy_file")]
    audit_log_path: Option<PathBuf>,

    /// The size in MiB at which a new file is begun
    #[arg(long, value_name = "MIB", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    audit_log_maxsize: u64,

    /// How many full files are kept, as FILE.1, FILE.2 and so on
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    audit_log_maxbackup: usize,
}

impl AuditArgs {
    /// The log, if there is to be one. A policy that cannot be read prevents the start.
    pub(crate) fn open(&self) -> Result<Option<Arc<dyn AuditLog>>, Failure> {
        let (Some(policy), Some(path)) = (&self.audit_policy_file, &self.audit_log_path) else {
            return Ok(None);
        };
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::new(format!("the audit policy {}: {why}", policy.display()))
                .remedy("write it as the Policy of audit.k8s.io/v1 that Kubernetes documents")
        };
        let text = fs::read_to_string(policy).map_err(|e| wrong(&e))?;
        let policy = Policy::parse(&yaml::read(&text).map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))?;
        let file = LogFile::open(path.clone(), self.audit_log_maxsize << 20, self.audit_log_maxbackup);
        let file = file.map_err(|e| {
            Failure::new(format!("cannot write the audit log {}: {e}", path.display()))
                .remedy("pass another file with --audit-log-path")
        })?;
        Ok(Some(Arc::new(FileLog { policy, file: Mutex::new(file) })))
    }
}

struct FileLog {
    policy: Policy,
    file: Mutex<LogFile>,
}

impl AuditLog for FileLog {
    fn decide(&self, request: &Request<'_>) -> Decision {
        self.policy.decide(request)
    }

    fn write(&self, event: &Value) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.append(format!("{event}\n").as_bytes()) {
            tracing::error!(%error, file = %file.path().display(), "an audit event was not recorded");
        }
    }
}
