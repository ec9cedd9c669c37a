//! What functions in containers cannot do, how that is named, and how they are stopped.

use super::*;

/// What a container may see and do, by what it prints.
#[tokio::test(flavor = "multi_thread")]
async fn a_function_is_isolated() {
    let registry = Registry::start().await;
    let script = r#"
        echo "root:" /*
        echo "processes:" /proc/[0-9]*
        (echo x > /written) 2>/dev/null && echo "wrote to its root"
        (echo x > /tmp/written) && echo "wrote to tmp"
        [ -e HOST ] && echo "sees the host"
        while read -r line; do
            case "$line" in Uid*|Cap*|NoNewPrivs*) echo $line;; esac
        done < /proc/self/status
        while read -r name rest; do echo "interface $name"; done < /proc/net/dev
        text=0123456789abcdef
        for doubled in 1 2 3 4 5 6 7 8 9 10; do text=$text$text; done
        (while echo $text; do :; done) > /tmp/large 2>/dev/null
        echo "filled tmp"
        while :; do sleep 1000 & done
    "#;
    let host = std::fs::canonicalize(env!("CARGO_MANIFEST_DIR")).unwrap();
    let digest = registry.push_script("function-hostile", &script.replace("HOST", host.to_str().unwrap()));
    let mut flags = CHROOT.to_vec();
    flags.extend(["--function-processes", "20"]);
    let user = User::of_packages(&flags).await;
    user.apply(&install_function("function-hostile", &registry.at("acme/function-hostile:v1"))).await;
    let seen = || logs_if_any(&user, "function-hostile");
    until("its number of processes is limited", || seen().contains("Cannot fork")).await;
    let seen = seen();
    let line = |start: &str| seen.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    for unseen in ["/home", "/root", "/etc", "/work"] {
        assert!(!line("root:").contains(unseen), "{seen}");
    }
    assert_eq!(line("processes:"), "processes: /proc/1", "{seen}");
    assert!(seen.contains("wrote to tmp") && !seen.contains("wrote to its root"), "{seen}");
    assert!(!seen.contains("sees the host"), "{seen}");
    for none in ["CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert!(line(none).ends_with("0000000000000000"), "{seen}");
    }
    assert_eq!(line("NoNewPrivs:"), "NoNewPrivs: 1", "{seen}");
    let interfaces: Vec<&str> =
        seen.lines().filter_map(|l| l.strip_prefix("interface ")).filter(|l| l.ends_with(':')).collect();
    assert_eq!(interfaces, ["lo:"], "{seen}");
    assert!(seen.contains("filled tmp"), "its files are limited: {seen}");
    // Others go on.
    let user_uid = line("Uid:");
    assert!(!user_uid.contains("Uid: 0 0 0 0") || !rustix::process::geteuid().is_root(), "{seen}");
    // The limits that it reached are named.
    let is_named = |revision: &Value| {
        let message = message_of_runtime(revision);
        message.contains("limit of processes and threads") && message.contains("it filled /tmp (64 MiB)")
    };
    user.until(FUNCTION_REVISION, &revision_of("function-hostile", &digest), is_named).await;
}

/// What a program tries and cannot do is in the condition of its revision, and another function is called all the time.
#[tokio::test(flavor = "multi_thread")]
async fn the_limits_that_functions_reach_are_named() {
    let registry = Registry::start().await;
    let text = "text=0123456789abcdef; for doubled in 1 2 3 4 5 6 7 8 9 10; do text=$text$text; done";
    let memory = format!("{text}; echo begun; while :; do text=$text$text; done");
    let output = format!("{text}; while :; do echo $text; done");
    let memory = registry.push_script("function-memory", &memory);
    let output = registry.push_script("function-output", &output);
    let stubborn =
        registry.push_script("function-stubborn", "trap '' TERM; echo begun; while :; do sleep 1; done");
    let serve = ["/usr/bin/transom", "function", "serve", "function-dummy"];
    registry.push_function("acme/function-stubborn:v2", server(), &serve, "A=b");
    registry.push_function(&format!("acme/{PACKAGED}:v1"), server(), &serve, "A=b");
    let mut flags = CHROOT.to_vec();
    flags.extend(["--function-memory", "128Mi"]);
    let user = User::of_packages(&flags).await;
    for name in ["function-memory", "function-output", "function-stubborn", PACKAGED] {
        user.apply(&install_function(name, &registry.at(&format!("acme/{name}:v1")))).await;
    }
    let printed = "it printed more than 1 MiB in a second";
    for (name, digest, words) in
        [("function-memory", &memory, "limit of memory"), ("function-output", &output, printed)]
    {
        let is_named = |revision: &Value| message_of_runtime(revision).contains(words);
        let revision = user.until(FUNCTION_REVISION, &revision_of(name, digest), is_named).await;
        let message = message_of_runtime(&revision);
        assert!(words == printed || message.contains("128 MiB"), "{message}");
        user.until(FUNCTION, name, |function| message_of(function, "Healthy").contains(words)).await;
    }
    until("it ignores SIGTERM", || logs_if_any(&user, "function-stubborn").contains("begun")).await;
    let v2 = registry.at("acme/function-stubborn:v2");
    user.patch(FUNCTION, "function-stubborn", json!({"spec": {"package": v2}})).await;
    let is_named = |revision: &Value| {
        message_of_runtime(revision).contains("it did not end within 5 s of SIGTERM and was killed")
    };
    let revision =
        user.until(FUNCTION_REVISION, &revision_of("function-stubborn", &stubborn), is_named).await;
    assert_eq!(revision["spec"]["desiredState"], "Inactive");
    user.until_true(FUNCTION, "function-stubborn", "Healthy").await;
    user.until_true(FUNCTION, PACKAGED, "Healthy").await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("things", "Thing", &json!({}), &[(PACKAGED, one_map("Thing", "packaged").1)]))
        .await;
    user.apply(&object("Thing", "one", "coolField: a")).await;
    user.until_ready(THING, "one").await;
}

fn logs_if_any(user: &User, name: &str) -> String {
    let data = user.home.data();
    let output = transom(&["function", "logs", name, "--data-dir", data.to_str().unwrap()]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A revision that is replaced finishes its calls before it is stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_under_way_is_finished_before_its_revision_is_stopped() {
    let registry = Registry::start().await;
    let (user, [first, second]) = with_packaged(&registry).await;
    let serves = |(_, line): &(u32, String)| line.contains("function serve function-dummy");
    let (program, _) = below(user.plane.pid()).into_iter().find(serves).expect("it runs");
    let signal = |signal| {
        let id = rustix::process::Pid::from_raw(i32::try_from(program).unwrap()).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    };
    signal(Signal::STOP);
    user.apply(&object("Thing", "two", "coolField: b")).await;
    let waits = |thing: &Value| message_of(thing, "Responsive").contains(PACKAGED);
    user.until(THING, "two", waits).await;
    let v2 = registry.at(&format!("acme/{PACKAGED}:v2"));
    user.patch(FUNCTION, PACKAGED, json!({"spec": {"package": v2}})).await;
    user.until_true(FUNCTION_REVISION, &revision_of(PACKAGED, &second), "RuntimeHealthy").await;
    let is_inactive = |revision: &Value| status_of(revision, "RuntimeHealthy") == "Unknown";
    user.until(FUNCTION_REVISION, &revision_of(PACKAGED, &first), is_inactive).await;
    // The next composite resource is composed by the new one, while the call goes on.
    user.apply(&object("Thing", "three", "coolField: c")).await;
    user.until_ready(THING, "three").await;
    assert!(Path::new(&format!("/proc/{program}")).exists(), "it has a call to finish");
    signal(Signal::CONT);
    user.until_ready(THING, "two").await;
    until("the first version ends", || !Path::new(&format!("/proc/{program}")).exists()).await;
    assert_eq!(user.failed_calls(PACKAGED).await, 0, "calls that failed");
}
