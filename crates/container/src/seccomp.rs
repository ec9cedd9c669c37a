//! Which system calls the program of a container may make.
//!
//! Functions and providers that serve are refused what has been a way out of containers, with `EPERM`. A container that runs
//! once may make the calls that container engines allow by default without capabilities; all others fail as on a kernel
//! without them, as do calls that make namespaces.

use serde_json::{Value, json};

/// `ENOSYS`: programs fall back as on an older kernel.
const NOT_IMPLEMENTED: u32 = 38;
/// The flags of `clone` that make namespaces.
const NAMESPACE_FLAGS: u64 = 0x7E02_0080;

/// Of all architectures.
const ALLOWED: &str = "accept4 bind brk capget capset chdir clock_getres clock_gettime clock_nanosleep close close_range \
    connect copy_file_range dup dup3 epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 eventfd2 execve execveat exit exit_group \
    faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchown fchownat fcntl fdatasync fgetxattr flistxattr flock \
    fsync fstat fstatfs ftruncate futex getcpu getcwd getdents64 getegid geteuid getgid getgroups getitimer \
    getpeername getpgid getpid getppid getpriority getrandom getresgid getresuid getrlimit get_robust_list getrusage getsid \
    getsockname getsockopt gettid gettimeofday getuid getxattr inotify_add_watch inotify_init1 inotify_rm_watch ioctl kill \
    lgetxattr linkat listen listxattr llistxattr lseek madvise membarrier memfd_create mincore mkdirat mlock mlock2 \
    mlockall mmap mprotect mremap msync munlock munlockall munmap nanosleep openat openat2 pidfd_open \
    pidfd_send_signal pipe2 ppoll prctl pread64 preadv preadv2 prlimit64 pselect6 pwrite64 pwritev pwritev2 read readahead \
    readlinkat readv recvfrom recvmmsg recvmsg renameat2 restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask \
    rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_getaffinity sched_getattr \
    sched_getparam sched_get_priority_max sched_get_priority_min sched_getscheduler sched_setaffinity sched_yield sendfile \
    sendmmsg sendmsg sendto setgid setgroups setitimer setpgid setpriority setregid setresgid setresuid setreuid \
    setrlimit set_robust_list setsid setsockopt set_tid_address setuid shutdown sigaltstack socketpair splice \
    statfs statx symlinkat sync sync_file_range syncfs sysinfo tee tgkill timer_create timer_delete timer_getoverrun \
    timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname unlinkat \
    utimensat wait4 waitid write writev";
/// Of x86_64 alone.
const ALLOWED_X86_64: &str = "access alarm arch_prctl chmod chown creat dup2 epoll_create epoll_wait eventfd fork futimesat \
    getdents getpgrp inotify_init lchown link lstat mkdir mknod newfstatat open pause pipe poll readlink rename renameat rmdir \
    select signalfd signalfd4 stat symlink time unlink utime utimes vfork";
/// Of aarch64 alone.
const ALLOWED_AARCH64: &str = "newfstatat renameat signalfd4";
/// `AF_NETLINK` and above: families of sockets that talk to the kernel or to other machines on the same host.
const FIRST_REFUSED_FAMILY: u64 = 11;

fn names() -> impl Iterator<Item = &'static str> {
    let more = if cfg!(target_arch = "x86_64") { ALLOWED_X86_64 } else { ALLOWED_AARCH64 };
    ALLOWED.split_whitespace().chain(more.split_whitespace())
}

/// The profile in the `config.json` of an OCI runtime.
pub(crate) fn profile() -> Value {
    let architecture = if cfg!(target_arch = "x86_64") { "SCMP_ARCH_X86_64" } else { "SCMP_ARCH_AARCH64" };
    // On x86_64 the flags are the first argument.
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": NOT_IMPLEMENTED,
        "architectures": [architecture],
        "syscalls": [
            {"names": names().collect::<Vec<_>>(), "action": "SCMP_ACT_ALLOW"},
            {
                "names": ["clone"], "action": "SCMP_ACT_ALLOW",
                "args": [{"index": 0, "value": NAMESPACE_FLAGS, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}],
            },
            {
                "names": ["socket"], "action": "SCMP_ACT_ALLOW",
                "args": [{"index": 0, "value": FIRST_REFUSED_FAMILY, "op": "SCMP_CMP_LT"}],
            },
        ],
    })
}

/// Restricts this thread, and the program that it becomes.
pub(crate) fn restrict() -> Result<(), String> {
    let filter = compile().map_err(|e| e.to_string())?;
    seccompiler::apply_filter(&filter).map_err(|e| e.to_string())
}

fn compile() -> Result<seccompiler::BpfProgram, seccompiler::Error> {
    let architecture = std::env::consts::ARCH.try_into()?;
    let mut rules: Vec<Value> = names().map(|name| json!({"syscall": name})).collect();
    let argument =
        |operation: Value, value: u64| json!([{"index": 0, "type": "dword", "op": operation, "val": value}]);
    rules.push(json!({"syscall": "clone", "args": argument(json!({"masked_eq": NAMESPACE_FLAGS}), 0)}));
    rules.push(json!({"syscall": "socket", "args": argument(json!("lt"), FIRST_REFUSED_FAMILY)}));
    let filter = json!({"once": {
        "mismatch_action": {"errno": NOT_IMPLEMENTED}, "match_action": "allow", "filter": rules,
    }});
    let mut compiled = seccompiler::compile_from_json(filter.to_string().as_bytes(), architecture)?;
    Ok(compiled.remove("once").unwrap_or_default())
}

/// The system calls that containers that serve are refused: what has been a way out of containers. New languages need new
/// system calls, so all others are allowed.
const REFUSED: &[&str] = &[
    // Kernel modules, other kernels, restarts.
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    // Mounts, and other namespaces.
    "mount",
    "umount",
    "umount2",
    "pivot_root",
    "setns",
    "unshare",
    "open_tree",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    // Programs and probes in the kernel.
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    // The memory of other processes.
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "kcmp",
    "pidfd_getfd",
    // Keys of the kernel, which have no namespace.
    "add_key",
    "request_key",
    "keyctl",
    // Files by their handles, which leave the root file system.
    "open_by_handle_at",
    "name_to_handle_at",
    // Time, accounting, quotas, swapping, ports, the log of the kernel.
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "stime",
    "acct",
    "quotactl",
    "quotactl_fd",
    "swapon",
    "swapoff",
    "iopl",
    "ioperm",
    "syslog",
    "vhangup",
    "lookup_dcookie",
    "nfsservctl",
    "sysfs",
    "uselib",
    "ustat",
    "vm86",
    "vm86old",
    "modify_ldt",
];

/// The filter of a container that serves, in the `config.json` of an OCI runtime.
pub(crate) fn refusing() -> Value {
    json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": REFUSED, "action": "SCMP_ACT_ERRNO", "errnoRet": 1}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_known_to_the_compiler_and_has_nothing_dangerous() {
        assert!(!compile().unwrap().is_empty());
        let all: Vec<&str> = names().collect();
        for refused in [
            "mount",
            "unshare",
            "setns",
            "ptrace",
            "bpf",
            "keyctl",
            "clone3",
            "open_by_handle_at",
            "io_uring_setup",
        ] {
            assert!(!all.contains(&refused), "{refused}");
        }
        assert!(profile()["syscalls"][0]["names"].as_array().unwrap().len() > 150);
    }
}
