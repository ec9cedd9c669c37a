//! Hostile templates end soon, in little memory, with a message that says why. Each runs in a process of its own, so that
//! what one takes is not hidden by what another took before.

use std::process::Command;

use super::errors::message;

/// Names the case that a process is to run.
const CASE: &str = "TRANSOM_HOSTILE_TEMPLATE";
/// What one call may take, the process around it included.
const MAX_KILOBYTES: u64 = 256 << 10;
/// In seconds of processor time. Unoptimised builds get more.
const LONGEST: f64 = if cfg!(debug_assertions) { 6.0 } else { 1.0 };

struct Case {
    name: &'static str,
    template: String,
    /// What the message says.
    problem: &'static str,
}

fn case(name: &'static str, template: impl Into<String>, problem: &'static str) -> Case {
    Case { name, template: template.into(), problem }
}

const LIMIT: &str = "exceeded the limit of";

/// Templates that run on or grow.
fn running() -> Vec<Case> {
    let all = r#"{{ $x := "a" }}"#;
    vec![
        case("loop", "{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}", LIMIT),
        case("count", "{{ range 9000000000000 }}{{ end }}", LIMIT),
        case("until", "{{ until 1000000000 }}", LIMIT),
        case("steps", "{{ untilStep 0 2000000000 1 | len }}", LIMIT),
        case("sequence", "{{ seq 1 100000000 }}", LIMIT),
        case("output", format!("{{{{ range until 100000000 }}}}{}{{{{ end }}}}", "a".repeat(57)), LIMIT),
        case("repetition", r#"{{ repeat 1000000000 "x" }}"#, LIMIT),
        case("width", r#"{{ range until 1000 }}{{ printf "%999999d" 1 }}{{ end }}"#, LIMIT),
        case("huge width", r#"{{ printf "%9999999d" 1 }}kind"#, ""),
        case("indentation", r#"{{ range until 1000 }}{{ indent 1000000 "x" }}{{ end }}"#, LIMIT),
        case(
            "text doubling",
            format!("{all}{{{{ range until 60 }}}}{{{{ $x = cat $x $x }}}}{{{{ end }}}}"),
            LIMIT,
        ),
        case(
            "list doubling",
            "{{ $l := list 1 }}{{ range until 60 }}{{ $l = concat $l $l }}{{ end }}",
            LIMIT,
        ),
        case(
            "shared lists",
            "{{ $l := list 1 }}{{ range until 200 }}{{ $l = list $l $l }}{{ end }}{{ toYaml $l }}",
            LIMIT,
        ),
        case(
            "shared maps",
            r#"{{ $m := dict }}{{ range until 200 }}{{ $m = dict "a" $m "b" $m }}{{ end }}{{ $m | toJson }}"#,
            LIMIT,
        ),
        case(
            "copies of copies",
            r#"{{ $m := dict "a" 1 }}{{ range until 60 }}{{ $m = dict "a" (deepCopy $m) "b" (deepCopy $m) }}{{ end }}"#,
            LIMIT,
        ),
        case(
            "kept maps",
            r#"{{ $m := dict }}{{ range $i := until 1000000 }}{{ $_ := set $m (toString $i) (dict "a" 1) }}{{ end }}"#,
            LIMIT,
        ),
        case(
            "maps in JSON",
            r#"{{ $x := fromJson (printf "[%s{}]" (repeat 1500000 "{\"a\":1},")) }}"#,
            LIMIT,
        ),
        case("maps in YAML", r#"{{ $x := fromYaml (printf "[%s{}]" (repeat 500000 "{a: 1},")) }}"#, LIMIT),
        case("copies", "{{ range until 3000000 }}{{ $x := getCompositeResource $ }}{{ end }}", LIMIT),
        case(
            "credentials",
            r#"{{ range until 3000000 }}{{ $x := getCredentialData $ "x" }}{{ end }}"#,
            LIMIT,
        ),
        case("itself", r#"{{ $m := dict }}{{ $_ := set $m "a" $m }}{{ toYaml $m }}"#, "nests deeper"),
        case(
            "itself in JSON",
            r#"{{ $m := dict }}{{ $_ := set $m "a" $m }}{{ toJson $m }}{{ fail "x" }}"#,
            "",
        ),
        case("replacement", r#"{{ regexReplaceAll "" (repeat 1000000 "x") (repeat 1000 "y") }}"#, LIMIT),
        case("replacements", r#"{{ replace "x" (repeat 100000 "y") (repeat 1000000 "x") }}"#, LIMIT),
        case("join", r#"{{ join (repeat 1000000 "x") (until 10000) }}"#, LIMIT),
    ]
}

/// Templates that nest or recur.
fn nesting() -> Vec<Case> {
    let parentheses = format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000));
    let blocks = format!("{}x{}", "{{ if 1 }}".repeat(100_000), "{{ end }}".repeat(100_000));
    vec![
        case(
            "recursion",
            r#"{{ define "x" }}{{ template "x" . }}{{ end }}{{ template "x" . }}"#,
            "exceeded maximum template depth",
        ),
        case(
            "inclusion",
            r#"{{ define "x" }}{{ include "x" . }}{{ end }}{{ include "x" . }}"#,
            "nested reference name",
        ),
        case(
            "branching recursion",
            r#"{{ define "x" }}{{ if . }}{{ template "x" (sub . 1) }}{{ template "x" (sub . 1) }}{{ end }}{{ end }}{{ template "x" 900 }}"#,
            LIMIT,
        ),
        case(
            "branching inclusion",
            r#"{{ define "x" }}{{ if . }}{{ include "x" (sub . 1) }}{{ include "x" (sub . 1) }}{{ end }}{{ end }}{{ include "x" 900 }}"#,
            "",
        ),
        case("parentheses", parentheses, "template"),
        case("blocks", blocks, "template"),
        case("deep YAML", format!("kind: X\na: {}", "[".repeat(100_000)), "recursion limit exceeded"),
        case("deep fromYaml", r#"{{ fromYaml (repeat 100000 "[") }}{{ fail "x" }}"#, ""),
        case("deep fromJson", r#"{{ fromJson (repeat 100000 "[") }}{{ fail "x" }}"#, ""),
        case("deep patterns", r#"{{ regexMatch (repeat 100000 "(") "x" }}{{ fail "x" }}"#, ""),
        case(
            "deep lists",
            "{{ $l := list }}{{ range until 100000 }}{{ $l = list $l }}{{ end }}{{ toYaml $l }}",
            "",
        ),
    ]
}

/// Functions that are slow by nature.
fn slow() -> Vec<Case> {
    vec![
        case("bcrypt", r#"{{ range until 10000 }}{{ bcrypt "x" }}{{ end }}"#, LIMIT),
        case("htpasswd", r#"{{ range until 10000 }}{{ htpasswd "u" "p" }}{{ end }}"#, LIMIT),
        case(
            "passwords",
            r#"{{ range until 10000 }}{{ derivePassword 1 "long" "p" "u" "s" }}{{ end }}"#,
            LIMIT,
        ),
        case(
            "certificates",
            r#"{{ range until 1000 }}{{ genSelfSignedCert "x" nil nil 1 }}{{ end }}"#,
            LIMIT,
        ),
        case("elliptic keys", r#"{{ range until 100000 }}{{ genPrivateKey "ecdsa" }}{{ end }}"#, LIMIT),
        case("authorities", r#"{{ range until 10000 }}{{ genCA "x" 1 }}{{ end }}"#, LIMIT),
        case(
            "patterns",
            r#"{{ range until 100000 }}{{ regexMatch "(a*)*b" (repeat 10000 "a") }}{{ end }}"#,
            LIMIT,
        ),
        case("large patterns", r#"{{ regexMatch "((a{100}){100}){100}" "a" }}{{ fail "x" }}"#, ""),
        case(
            "classes",
            r#"{{ range until 100 }}{{ regexMatch "(\\pL{100}){10}" "a" }}{{ end }}{{ fail "x" }}"#,
            "",
        ),
    ]
}

/// Small templates whose manifests are large.
fn manifests() -> Vec<Case> {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]\nkind: K\n";
    let named = "metadata: {annotations: {gotemplating.fn.crossplane.io/composition-resource-name: t}}";
    let expand = "expand to more than";
    vec![
        case("aliases", format!("{{{{ range until 2000 }}}}---\n{bomb}{named}\n{{{{ end }}}}"), expand),
        case("values", format!("kind: X\n{named}\na: [{{{{ repeat 1900000 \"1,\" }}}}1]\n"), expand),
        case("documents", "{{ range until 1000000 }}---\n{{ end }}kind: X", ""),
        case("lines", "{{ range until 1000000 }}\n{{ end }}kind: X", ""),
        case("quotes", "a: '{{ range until 1000000 }}\n{{ end }}'\nkind: X", ""),
        case("flow", "kind: X\na: [\n{{ range until 500000 }}1,\n{{ end }}]", ""),
        case("keys", "kind: X\n{{ range $i := until 300000 }}k{{ $i }}: 1\n{{ end }}", ""),
    ]
}

fn cases() -> impl Iterator<Item = Case> {
    running().into_iter().chain(nesting()).chain(slow()).chain(manifests())
}

/// A field of /proc/self/status in kB.
fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

/// Seconds of processor time, of which the kernel counts hundredths.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// Does nothing but in the processes that the other test starts.
#[test]
fn the_case_that_is_named() {
    let Ok(name) = std::env::var(CASE) else { return };
    let case = cases().find(|case| case.name == name).expect("a case");
    let message = message(&case.template);
    let shown: String = message.chars().take(300).collect();
    assert!(!message.is_empty() && message.contains(case.problem), "{name}: {shown}");
    assert!(message.len() < 9000, "{name}: {} bytes", message.len());
    // The peak is known on Linux alone; elsewhere it is zero.
    let (peak, took) = (status("VmHWM"), processor_time());
    assert!(peak < MAX_KILOBYTES, "{name} took {peak} kB");
    assert!(took < LONGEST, "{name} took {took} s");
    println!("{name}: {} MB, {took:.2} s: {}", peak / 1024, message.lines().next().unwrap_or_default());
}

#[test]
fn hostile_templates_end_soon_and_in_little_memory() {
    let program = std::env::current_exe().expect("a path");
    let (_, module) = module_path!().split_once("::").expect("a module of the test binary");
    let test = format!("{module}::the_case_that_is_named");
    let run = |case: &Case| {
        let mut command = Command::new(&program);
        let output = command.args(["--exact", &test, "--nocapture"]).env(CASE, case.name).output();
        let output = output.expect("the test runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        println!(
            "{}",
            said.lines().filter(|line| line.starts_with(case.name)).collect::<Vec<_>>().join("\n")
        );
        (!output.status.success() || !said.contains("1 passed"))
            .then(|| format!("{}: {said}{}", case.name, String::from_utf8_lossy(&output.stderr)))
    };
    let failed: Vec<String> = cases().filter_map(|case| run(&case)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
