//! Our own table of every function, source, kind of document and annotation, and of what goes wrong with them.

use serde_json::{Value, json};
use transom_builtins::GoTemplating;
use transom_function::testing::RequestBuilder;
use transom_function::{Ready, RunFunctionRequest};

use super::{call, inline, to_json};

/// What a template prints, read back from a composed resource it is put into.
fn printed(template: &str, build: impl Fn(RequestBuilder) -> RequestBuilder) -> Value {
    let manifest = format!(
        "apiVersion: v1\nkind: T\nmetadata:\n  annotations:\n    {{{{ setResourceNameAnnotation \"t\" }}}}\nout: {{{{ define \"out\" }}}}{template}{{{{ end }}}}{{{{ include \"out\" . | quote }}}}\n"
    );
    let response = to_json(&call(&GoTemplating::default(), build(inline(&manifest)).build()));
    match response["results"][0]["message"].as_str() {
        Some(problem) => json!({ "error": problem.lines().next() }),
        None => response["desired"]["resources"]["t"]["resource"]["out"].clone(),
    }
}

/// A request in which there is something to find for every function.
fn everything(builder: RequestBuilder) -> RequestBuilder {
    let conditions = json!([
        {"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2024-05-06T07:08:09Z"},
        {"type": "Synced", "status": "False", "message": "no", "observedGeneration": 4},
    ]);
    builder
        .observed(
            "db",
            json!({"kind": "DB", "spec": {"n": 5, "f": 0.5}, "status": {"conditions": conditions}}),
        )
        .observed("a.b", json!({"kind": "Dotted"}))
        .observed("7", json!({"kind": "Number"}))
        .credential("aws", "key", b"secret")
        .required("nodes", [json!({"kind": "Node", "metadata": {"name": "n1"}})])
        .required("none", [])
        .context(
            "apiextensions.crossplane.io/extra-resources",
            json!({"old": {"items": [{"resource": {"kind": "Old"}}]}}),
        )
}

#[test]
fn every_function_of_its_own() {
    let db = "(getComposedResource . \"db\")";
    for (template, expected) in [
        ("{{ randomChoice \"x\" }}", json!("x")),
        ("{{ has (randomChoice \"x\" \"y\") (list \"x\" \"y\") }}", json!("true")),
        ("{{ randomChoice }}", json!({"error": "invalid argument to Intn"})),
        (
            "{{ setResourceNameAnnotation \"n\" }}",
            json!("gotemplating.fn.crossplane.io/composition-resource-name: n"),
        ),
        ("{{ toYaml (dict \"b\" (list 1 \"yes\") \"a\" 2.0) }}", json!("a: 2\nb:\n    - 1\n    - \"yes\"\n")),
        ("{{ (fromYaml \"a: {b: [1, x]}\").a.b }}", json!("[1 x]")),
        (
            "{{ include \"missing\" . }}",
            json!({"error": "no template \"missing\" associated with template \"manifests\""}),
        ),
        ("{{ (getCompositeResource .).metadata.name }}", json!("cool")),
        ("{{ getCompositeResource (dict) }}", json!("map[]")),
        (&format!("{{{{ {db}.spec.n | typeOf }}}} {{{{ {db}.spec.f }}}}"), json!("int64 0.5")),
        ("{{ (getComposedResource . \"a.b\").kind }}", json!("Dotted")),
        ("{{ getComposedResource . \"7\" }}", json!("map[]")),
        ("{{ getComposedResource . \"no\" | empty }}", json!("true")),
        ("{{ getComposedConnectionDetails . \"db\" }}", json!("map[]")),
        // What is returned is a copy.
        (
            "{{ $x := getCompositeResource . }}{{ set $x \"kind\" \"Y\" | len }}{{ (getCompositeResource .).kind }}",
            json!("4XR"),
        ),
        ("{{ range getExtraResources . \"nodes\" }}{{ .resource.metadata.name }}{{ end }}", json!("n1")),
        ("{{ getExtraResources . \"none\" | len }}{{ getExtraResources . \"no\" | len }}", json!("00")),
        ("{{ (index (getExtraResourcesFromContext . \"old\") 0).resource.kind }}", json!("Old")),
        ("{{ getExtraResourcesFromContext . \"nodes\" }}", json!("[]")),
        ("{{ (getCredentialData . \"aws\").key | toString }}", json!("secret")),
        ("{{ getCredentialData . \"aws\" }}", json!("map[key:[115 101 99 114 101 116]]")),
        ("{{ getCredentialData . \"no\" }}", json!("map[]")),
        // A value that is not a request has no credentials.
        ("{{ $_ := set . \"extra\" 1 }}{{ getCredentialData . \"aws\" }}", json!("map[]")),
    ] {
        let out = printed(template, everything);
        match expected["error"].as_str() {
            Some(problem) => {
                assert!(out["error"].as_str().is_some_and(|out| out.ends_with(problem)), "{template}: {out}");
            }
            None => assert_eq!(out, expected, "{template}"),
        }
    }
}

#[test]
fn conditions_are_structs() {
    for (call, expected) in [
        ("(getResourceCondition \"Ready\" .observed.resources.db).Status", "True"),
        ("(getResourceCondition \"Ready\" (getComposedResource . \"db\")).Reason", "Available"),
        ("(getResourceCondition \"Synced\" .observed.resources.db).Message", "no"),
        ("(getResourceCondition \"Synced\" .observed.resources.db).ObservedGeneration", "4"),
        ("(getResourceCondition \"No\" .observed.resources.db).Status", "Unknown"),
        ("(getResourceCondition \"Ready\" (getComposedResource . \"no\")).Status", "Unknown"),
        ("(getResourceCondition \"Ready\" (dict \"status\" \"odd\")).Status", "Unknown"),
        (
            "(getResourceCondition \"Ready\" .observed.resources.db).LastTransitionTime",
            "2024-05-06 07:08:09 +0000 UTC",
        ),
        ("(getResourceCondition \"Ready\" .observed.resources.db).LastTransitionTime.Year", "2024"),
        ("(getResourceCondition \"Synced\" .observed.resources.db).LastTransitionTime.IsZero", "true"),
        (
            "getResourceCondition \"Synced\" .observed.resources.db",
            "{Synced False 0001-01-01 00:00:00 +0000 UTC  no 4}",
        ),
        (
            "getResourceCondition \"Ready\" .observed.resources.db | toYaml",
            "type: Ready\nstatus: \"True\"\nlasttransitiontime: \"2024-05-06T07:08:09Z\"\nreason: Available\nmessage: \"\"\nobservedgeneration: 0\n",
        ),
        (
            "getResourceCondition \"Ready\" .observed.resources.db | toJson",
            "{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"2024-05-06T07:08:09Z\",\"reason\":\"Available\"}",
        ),
        (
            "getResourceCondition \"Synced\" .observed.resources.db | toJson",
            "{\"type\":\"Synced\",\"status\":\"False\",\"lastTransitionTime\":null,\"reason\":\"\",\"message\":\"no\",\"observedGeneration\":4}",
        ),
    ] {
        assert_eq!(printed(&format!("{{{{ {call} }}}}"), everything), expected, "{call}");
    }
}

/// The only message of a response, without what shows the place.
fn fatal(request: RunFunctionRequest) -> String {
    let response = call(&GoTemplating::default(), request);
    assert_eq!(response.results.len(), 1, "{:?}", response.results);
    response.results[0].message.lines().next().unwrap_or_default().to_owned()
}

fn with_input(input: Value) -> RequestBuilder {
    inline("").input(input)
}

#[test]
fn every_source() {
    let resource = |name: &str| {
        format!(
            "apiVersion: v1\nkind: T\nmetadata:\n  annotations:\n    gotemplating.fn.crossplane.io/composition-resource-name: {name}\n"
        )
    };
    let names = |function: &GoTemplating, request: RunFunctionRequest| -> Vec<String> {
        let response = call(function, request);
        assert!(response.results.is_empty(), "{:?}", response.results);
        response.desired.unwrap_or_default().resources.into_keys().collect()
    };
    let function = GoTemplating::default();
    let several = json!({"source": "Inline", "inline": {"templates": [resource("a"), resource("b")]}});
    assert_eq!(names(&function, with_input(several).build()), ["a", "b"]);
    // One template wins over several.
    let both =
        json!({"source": "Inline", "inline": {"template": resource("c"), "templates": [resource("a")]}});
    assert_eq!(names(&function, with_input(both).build()), ["c"]);
    let environment = with_input(json!({"source": "Environment", "environment": {"key": "tmpl/x"}}))
        .context("apiextensions.crossplane.io/environment", json!({"tmpl/x": resource("e")}));
    assert_eq!(names(&function, environment.build()), ["e"]);

    let folder = tempfile::Builder::new().prefix("templates").tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    write("b/one.yaml", "{{ include \"shared\" \"one\" }}");
    write("b/two", "{{ include \"shared\" \"two\" }}");
    write("a.tmpl", &format!("{{{{ define \"shared\" }}}}{}{{{{ end }}}}", resource("{{ . }}")));
    write(".hidden", "{{ fail \"hidden\" }}");
    write("..data/x", "{{ fail \"hidden\" }}");
    let files =
        |path: &str| with_input(json!({"source": "FileSystem", "fileSystem": {"dirPath": path}})).build();
    let here = folder.path().to_string_lossy().into_owned();
    assert_eq!(names(&function, files(&here)), ["one", "two"]);
    let below = GoTemplating::default().with_files_below(folder.path());
    assert_eq!(names(&below, files("/")), ["one", "two"]);
    assert_eq!(
        names(&below.with_default_source("b/../."), with_input(json!({})).build()),
        Vec::<String>::new()
    );
    let default = GoTemplating::default().with_default_source(here);
    assert_eq!(names(&default, with_input(json!({})).build()), ["one", "two"]);
}

#[test]
fn nothing_outside_of_the_folder_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("in")).expect("a folder");
    std::fs::write(folder.path().join("secret"), "secret").expect("a file");
    std::os::unix::fs::symlink("../../secret", root.join("in/link")).expect("a link");
    let function = GoTemplating::default().with_files_below(&root);
    for path in ["in", "in/link", "../secret", "/../../secret", "in/../../secret"] {
        let input = json!({"source": "FileSystem", "fileSystem": {"dirPath": path}});
        let response = call(&function, with_input(input).build());
        let message = &response.results[0].message;
        let refused =
            message.contains("outside of the folder for templates") || message.contains("no such file");
        assert!(refused, "{path}: {message}");
    }
}

#[test]
fn sources_that_have_nothing() {
    for (input, problem) in [
        (json!({}), "source is required"),
        (json!({"source": "Git"}), "invalid source: Git"),
        (json!({"source": "Inline"}), "inline.template or inline.templates should be provided"),
        (
            json!({"source": "Inline", "inline": {"templates": []}}),
            "inline.template or inline.templates should be provided",
        ),
        (json!({"source": "FileSystem"}), "fileSystem.dirPath should be provided"),
        (
            json!({"source": "FileSystem", "fileSystem": {"dirPath": "/no/such"}}),
            "cannot read tmpl from the folder {/no/such}: open /no/such: no such file or directory",
        ),
        (json!({"source": "Environment", "environment": {}}), "environment.key should be provided"),
        (
            json!({"source": "Environment", "environment": {"key": "k"}}),
            "cannot read tmpl from the environment: apiextensions.crossplane.io/environment key does not exist in context",
        ),
    ] {
        assert_eq!(fatal(with_input(input).build()), format!("invalid function input: {problem}"));
    }
    let environment = |value: Value| {
        with_input(json!({"source": "Environment", "environment": {"key": "k"}}))
            .context("apiextensions.crossplane.io/environment", value)
            .build()
    };
    let cannot = "invalid function input: cannot read tmpl from the environment: key: k";
    assert_eq!(fatal(environment(json!({}))), format!("{cannot} does not exist"));
    assert_eq!(fatal(environment(json!({"k": 1}))), format!("{cannot} value is not a string"));
}

#[test]
fn options_and_delimiters() {
    let options = |options: Value, template: &str| {
        with_input(json!({"source": "Inline", "inline": {"template": template}, "options": options})).build()
    };
    let missing = "cannot execute template: template: manifests:1:3: executing \"manifests\" at <.no>: map has no entry for key \"no\"";
    assert_eq!(fatal(options(json!(["missingkey=zero", "missingkey=error"]), "{{ .no }}")), missing);
    let panic = "cannot apply template options: panic occurred while applying template options";
    assert_eq!(
        fatal(options(json!(["x"]), "")),
        "invalid function input: inline.template or inline.templates should be provided"
    );
    assert_eq!(fatal(options(json!(["x"]), "a")), format!("{panic}: unrecognized option: x"));
    assert_eq!(fatal(options(json!([""]), "a")), format!("{panic}: empty option string"));
    let parse =
        "invalid function input: cannot parse the provided templates: template: manifests:1: unclosed action";
    assert_eq!(fatal(options(json!(["x"]), "{{")), parse);

    let strict = || GoTemplating::default().with_default_options("missingkey=error");
    assert_eq!(call(&strict(), inline("# {{ .no }}").build()).results.len(), 1);
    let none = GoTemplating::default().with_default_options("");
    assert_eq!(call(&none, inline("# {{ .no }}").build()).results, [], "no default options");
    let second = GoTemplating::default().with_default_options("missingkey=zero,missingkey=error");
    assert_eq!(call(&second, inline("# {{ .no }}").build()).results.len(), 1, "the later option counts");
    // An empty list is a choice, too.
    assert_eq!(call(&strict(), options(json!([]), "# {{ .no }}")).results, []);

    let delimited = |delims: Value| {
        let template = "[[ setResourceNameAnnotation \"x\" ]]{{ fail \"x\" }}";
        with_input(json!({"source": "Inline", "inline": {"template": template}, "delims": delims})).build()
    };
    assert!(fatal(delimited(json!({"left": "[[", "right": "]]"}))).starts_with("cannot decode manifest: "));
    assert!(fatal(delimited(json!({"left": "[["}))).contains("error calling fail: x"));
}

fn meta(kind: &str, rest: &Value) -> String {
    let mut document = json!({"apiVersion": "meta.gotemplating.fn.crossplane.io/v1alpha1", "kind": kind});
    document.as_object_mut().expect("an object").extend(rest.as_object().cloned().unwrap_or_default());
    format!("---\n{document}\n")
}

#[test]
fn every_kind_of_document() {
    let template = [
        meta("CompositeConnectionDetails", &json!({"data": {"user": "YWRh", "broken": "YWRhb"}})),
        meta("CompositeConnectionDetails", &json!({"data": {"ignored": "YQ==", "number": 1}})),
        meta(
            "ClaimConditions",
            &json!({"conditions": [
                {"type": "A", "status": "True", "reason": "R", "message": "m", "target": "CompositeAndClaim"},
                {"type": "B", "status": "odd", "target": "Claim"},
            ]}),
        ),
        meta("Context", &json!({"data": {"env": {"a": {"y": 2}, "l": [1]}, "new": null}})),
        meta("Context", &json!({"data": {"env": {"a": {"z": {}}, "s": "t"}}})),
        meta(
            "ExtraResources",
            &json!({"requirements": {
                "named": {"apiVersion": "v1", "kind": "Pod", "matchName": "p", "matchLabels": {"a": "b"}},
                "namespaced": {"apiVersion": "v1", "kind": "Pod", "matchName": "p", "namespace": "ns"},
                "labelled": {"apiVersion": "v1", "kind": "Pod", "matchLabels": {"a": "b"}, "namespace": "ns"},
            }}),
        ),
        meta(
            "RequiredResources",
            &json!({"requirements": {"all": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns"}}}),
        ),
    ];
    let request =
        inline(&template.concat()).context("env", json!({"a": {"x": 1, "z": {"k": 1}}, "l": [2, 3]})).build();
    let response = to_json(&call(&GoTemplating::default(), request));
    assert_eq!(response["results"], json!(null), "{response}");
    assert_eq!(
        response["desired"],
        json!({"composite": {"resource": {}, "connectionDetails": {"user": "YWRh", "broken": "YWRh"}}})
    );
    assert_eq!(
        response["conditions"],
        json!([
            {"type": "A", "status": "STATUS_CONDITION_TRUE", "reason": "R", "message": "m", "target": "TARGET_COMPOSITE_AND_CLAIM"},
            {"type": "B", "status": "STATUS_CONDITION_UNKNOWN", "target": "TARGET_COMPOSITE"},
        ])
    );
    assert_eq!(
        response["context"],
        json!({"env": {"a": {"x": 1, "y": 2, "z": {"k": 1}}, "l": [1], "s": "t"}, "new": null})
    );
    let named = json!({"apiVersion": "v1", "kind": "Pod", "matchName": "p"});
    let namespaced = json!({"apiVersion": "v1", "kind": "Pod", "matchName": "p", "namespace": "ns"});
    let labelled = json!({"apiVersion": "v1", "kind": "Pod", "matchLabels": {"labels": {"a": "b"}}});
    let all = json!({"apiVersion": "v1", "kind": "Pod", "matchLabels": {}, "namespace": "ns"});
    assert_eq!(
        response["requirements"],
        json!({
            "extraResources": {"named": named},
            "resources": {"named": named, "namespaced": namespaced, "labelled": labelled, "all": all},
        })
    );
}

#[test]
fn documents_that_are_refused() {
    let conditions = |list: Value| meta("ClaimConditions", &json!({ "conditions": list }));
    let extra = |required: Value| meta("ExtraResources", &json!({ "requirements": required }));
    let pod = json!({"p": {"apiVersion": "v1", "kind": "Pod", "matchName": "p"}});
    for (template, problem) in [
        (
            conditions(json!([{"type": "Synced"}])),
            "cannot set ClaimCondition type: Synced is a reserved Crossplane Condition",
        ),
        (meta("ClaimConditions", &json!({})), "cannot get Conditions from input: conditions: no such field"),
        (
            conditions(json!("x")),
            "cannot get Conditions from input: cannot unmarshal value from JSON: json: cannot unmarshal string into Go value of type []main.TargetedCondition",
        ),
        (meta("Context", &json!({})), "cannot get Contexts from input: data: no such field"),
        (
            meta("Context", &json!({"data": []})),
            "cannot get Contexts from input: cannot unmarshal value from JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            meta("ExtraResources", &json!({})),
            "cannot get extra resources requirements: requirements: no such field",
        ),
        (format!("{}{}", extra(pod.clone()), extra(pod)), "duplicate extra resource key \"p\""),
        (
            meta("Odd", &json!({})),
            "invalid kind \"Odd\" for apiVersion \"meta.gotemplating.fn.crossplane.io/v1alpha1\" - must be one of CompositeConnectionDetails, Context or ExtraResources",
        ),
        (
            "apiVersion: v1\nkind: T\n".to_owned(),
            "\"T\" template is missing required \"gotemplating.fn.crossplane.io/composition-resource-name\" annotation",
        ),
        (
            "apiVersion: v1\n".to_owned(),
            "cannot decode manifest: error unmarshaling JSON: while decoding JSON: Object 'Kind' is missing in '{\"apiVersion\":\"v1\"}'",
        ),
        (
            "hello".to_owned(),
            "cannot decode manifest: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
        (
            "apiVersion: a/b/v1\nkind: T\n".to_owned(),
            "cannot decode manifest: error unmarshaling JSON: while decoding JSON: Object 'Kind' is missing in '{\"apiVersion\":\"a/b/v1\",\"kind\":\"T\"}'",
        ),
        ("--- hello".to_owned(), "cannot decode manifest: invalid Yaml document separator: hello"),
        (
            "apiVersion: a/v1\nkind: T\nmetadata: {annotations: {x: true}}\n".to_owned(),
            "invalid annotations in resource 'a/v1, Kind=T resource-name=<nil>': .metadata.annotations accessor error: contains non-string value in the map under key \"x\": true is of the type bool, expected string",
        ),
        (
            "apiVersion: v1\nkind: T\nmetadata: {annotations: null}\n".to_owned(),
            "invalid annotations in resource '/v1, Kind=T resource-name=<nil>': .metadata.annotations accessor error: <nil> is of the type <nil>, expected map[string]interface {}",
        ),
        (
            "apiVersion: example.org/v1\nkind: XR\nstatus: 1\n".to_owned(),
            "cannot get templated composite status: cannot unmarshal value from JSON: json: cannot unmarshal number into Go value of type map[string]interface {}",
        ),
    ] {
        assert_eq!(fatal(inline(&template).build()), problem, "{template}");
    }
    let odd = extra(json!({"p": {"matchLabels": {"a": 1}}}));
    assert!(
        fatal(inline(&odd).build())
            .starts_with("cannot get extra resources requirements: cannot unmarshal value from JSON: ")
    );
}

#[test]
fn annotations_name_resources_and_say_whether_they_are_ready() {
    let resource = |name: &str, ready: &str| {
        format!(
            "---\napiVersion: v1\nkind: T\nmetadata:\n  annotations:\n    gotemplating.fn.crossplane.io/composition-resource-name: {name}\n    gotemplating.fn.crossplane.io/ready: \"{ready}\"\n    kept: x\n"
        )
    };
    let template =
        [resource("done", "True"), resource("not", "False"), resource("open", "Unspecified")].concat();
    let mut request = inline(&template)
        .desired("done", json!({"kind": "Earlier"}))
        .desired("other", json!({"kind": "O"}))
        .build();
    request
        .desired
        .as_mut()
        .expect("a state")
        .resources
        .get_mut("other")
        .expect("other")
        .set_ready(Ready::True);
    let response = to_json(&call(&GoTemplating::default(), request));
    let made = json!({"apiVersion": "v1", "kind": "T", "metadata": {"annotations": {"kept": "x"}}});
    assert_eq!(
        response["desired"]["resources"],
        json!({
            "done": {"resource": made, "ready": "READY_TRUE"},
            "not": {"resource": made, "ready": "READY_FALSE"},
            "open": {"resource": made},
            "other": {"resource": {"kind": "O"}, "ready": "READY_TRUE"},
        })
    );
    let problem = "invalid function input: invalid \"gotemplating.fn.crossplane.io/ready\" annotation value \"true\": must be True, False, or Unspecified";
    assert_eq!(fatal(inline(&resource("x", "true")).build()), problem);
}

#[test]
fn of_the_composite_only_status_and_readiness_count() {
    let template = "
apiVersion: example.org/v1
kind: XR
metadata:
  name: ignored
  annotations: {gotemplating.fn.crossplane.io/ready: 'True'}
spec: {ignored: true}
status:
  list: [1]
  object: {b: 2, gone: null}
---
apiVersion: example.org/v1
kind: XR
status: {object: {c: 3, d: {}}}
";
    let mut request = inline(template).build();
    let desired = json!({"status": {"list": [7, 8], "object": {"a": 1, "d": {"e": 4}}, "kept": true}});
    request.desired.as_mut().expect("a state").composite =
        Some(transom_function::Resource::new(desired).expect("a resource").with_ready(Ready::False));
    let response = to_json(&call(&GoTemplating::default(), request));
    assert_eq!(
        response["desired"]["composite"],
        json!({
            "resource": {"status": {
                "list": [1], "kept": true, "object": {"a": 1, "b": 2, "c": 3, "d": {"e": 4}, "gone": null},
            }},
            "ready": "READY_TRUE",
        })
    );
    // With a name it is a composed resource like any other.
    let named = "apiVersion: example.org/v1\nkind: XR\nmetadata: {annotations: {gotemplating.fn.crossplane.io/composition-resource-name: named}}\n";
    let response = to_json(&call(&GoTemplating::default(), inline(named).build()));
    assert_eq!(response["desired"]["resources"]["named"]["resource"]["kind"], "XR");
    assert_eq!(response["desired"]["composite"], json!({"resource": {}}));
}

#[test]
fn required_resources_go_to_later_steps() {
    let mut request =
        inline("# nothing").required("new", [json!({"kind": "N"})]).required("none", []).build();
    request.extra_resources.insert("old".to_owned(), Default::default());
    request.required_resources.get_mut("new").expect("new").items[0]
        .connection_details
        .insert("k".to_owned(), b"v".to_vec());
    let key = "apiextensions.crossplane.io/extra-resources";
    let new = json!({"items": [{"resource": {"kind": "N"}, "connection_details": {"k": "dg=="}}]});
    let fresh = to_json(&call(&GoTemplating::default(), request.clone()));
    assert_eq!(fresh["context"][key], json!({"new": new, "none": {}}));
    request.context =
        Some(transom_function::Struct::try_from(json!({(key): {"kept": 1, "new": 2}})).expect("a struct"));
    let merged = to_json(&call(&GoTemplating::default(), request));
    assert_eq!(merged["context"][key], json!({"new": new, "none": {}, "kept": 1, "old": {}}));
}

#[test]
fn time_to_live() {
    let ttl = |input: Value, annotation: Option<&str>| {
        let mut xr = json!({"apiVersion": "example.org/v1", "kind": "XR"});
        if let Some(annotation) = annotation {
            xr["metadata"] = json!({"annotations": {"gotemplating.fn.crossplane.io/ttl": annotation}});
        }
        let mut fields = json!({"source": "Inline", "inline": {"template": "# nothing"}});
        if !input.is_null() {
            fields["ttl"] = input;
        }
        let request = RequestBuilder::new(xr).input(fields).build();
        to_json(&call(&GoTemplating::default(), request))["meta"]["ttl"].clone()
    };
    assert_eq!(ttl(Value::Null, None), "60s");
    assert_eq!(ttl("20m".into(), None), "1200s");
    assert_eq!(ttl("soon".into(), None), "60s");
    assert_eq!(ttl("20m".into(), Some("1.5s")), "1.500s");
    assert_eq!(ttl("20m".into(), Some("soon")), "0s");
}

#[test]
fn the_text_may_be_json() {
    let resource = |name: &str| json!({"apiVersion": "v1", "kind": "T", "metadata": {"annotations": {"gotemplating.fn.crossplane.io/composition-resource-name": name}}});
    let (a, b) = (resource("a"), resource("b"));
    for text in [
        format!("{a}{b}"),
        format!("  {a}\n{b}\n"),
        format!("{a}\n---\n{b}"),
        format!("---\n{a}\n--- # b\n{b}\n"),
        format!("{a}\n---\n{}", transom_object::yaml::write(&b)),
        format!("{a}\r\n---\r\n{b}\r\n"),
        format!("null\n---\n{a}\n---\n---\n# nothing\n---\n{b}\n---\n"),
    ] {
        let response = call(&GoTemplating::default(), inline(&text).build());
        assert!(response.results.is_empty(), "{text}: {:?}", response.results);
        let names: Vec<_> = response.desired.unwrap_or_default().resources.into_keys().collect();
        assert_eq!(names, ["a", "b"], "{text}");
    }
    // Two objects make it a stream of JSON for good.
    assert_eq!(
        fatal(inline(&format!("{a}{b}\n---\n{a}")).build()),
        "cannot decode manifest: invalid character '-' in numeric literal"
    );
}

#[test]
fn scalars_follow_yaml_1_1() {
    let template = "
apiVersion: v1
kind: T
metadata: {annotations: {gotemplating.fn.crossplane.io/composition-resource-name: t}}
values: [on, 0777, 08, 1_000, 1e3, 2001-01-01, 'no', 1:30, ~, 12345678901234567]
json: {
\"a\": 1,
\"b\": \"x
y\"
}
";
    let response = to_json(&call(&GoTemplating::default(), inline(template).build()));
    let resource = &response["desired"]["resources"]["t"]["resource"];
    let expected =
        json!([true, 511, 8, 1000, 1000, "2001-01-01", "no", "1:30", null, 12_345_678_901_234_568_i64]);
    assert_eq!(resource["values"], expected);
    assert_eq!(resource["json"], json!({"a": 1, "b": "x y"}));
}
