//! Definitions whose schemas, patterns and rules cost more than they look.

use super::{DEFINITIONS, Target, shorten};
use http::Method;
use serde_json::{Value, json};

fn definition(plural: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.hostile.example.com")},
        "spec": {
            "group": "hostile.example.com", "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural.trim_end_matches('s'), "kind": kind(plural), "listKind": format!("{}List", kind(plural))},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": spec},
            }}}],
        },
    })
}

fn kind(plural: &str) -> String {
    format!("K{}", plural.trim_end_matches('s'))
}

/// Defines a kind and, where that was allowed, makes an object of it. Returns both codes.
async fn define_and_use(target: &Target, plural: &str, schema: &Value, spec: &Value) -> (u16, Option<u16>) {
    let body = definition(plural, schema).to_string().into_bytes();
    let defined = target.try_send(plural, Method::POST, DEFINITIONS, "application/json", body).await;
    if defined.status != 201 {
        return (defined.status, None);
    }
    let object = json!({
        "apiVersion": "hostile.example.com/v1", "kind": kind(plural), "metadata": {"name": "x"}, "spec": spec,
    });
    let path = format!("/apis/hostile.example.com/v1/namespaces/default/{plural}");
    let body = object.to_string().into_bytes();
    let used = target.try_send(plural, Method::POST, &path, "application/json", body).await;
    (201, Some(used.status))
}

#[tokio::test]
async fn expensive_patterns_cost_little() {
    let target = Target::start().await;
    let near_miss = format!("{}!", "a".repeat(100_000));
    for (plural, pattern) in [
        ("nesteds", "^(a+)+$"),
        ("alternates", "^(a|aa)+$"),
        ("optionals", "^(a?){50}a{50}$"),
        ("counteds", "^((a{1,100}){1,100}){1,100}$"),
        ("hugecounts", "^(((a{1000}){1000}){1000}){1000}$"),
        ("classes", r"^(\p{L}{500}|\p{N}{500}|\w{500}){500}$"),
        ("unbounds", "^a{1,1000000000}$"),
        ("brokens", "^(((("),
        ("lookarounds", "(?=a)(?!b)\\1"),
    ] {
        let schema = json!({"type": "string", "pattern": pattern});
        let (defined, used) = define_and_use(&target, plural, &schema, &json!(near_miss)).await;
        match used {
            Some(code) => assert_eq!(code, 422, "{pattern}"),
            None => assert_eq!(defined, 422, "{pattern}"),
        }
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn rules_that_burn_their_budget_are_refused() {
    let target = Target::start().await;
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let with_rule = |rule: &str| json!({"type": "object", "properties": {"l": list, "s": {"type": "string"}}, "x-kubernetes-validations": [{"rule": rule}]});
    let numbers: Vec<u32> = (0..20_000).collect();
    let spec = json!({"l": numbers, "s": "a".repeat(50_000)});
    for (plural, rule) in [
        ("squares", "self.l.all(a, self.l.all(b, a + b >= 0))"),
        ("cubes", "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))"),
        ("maps", "self.l.map(a, self.l.map(b, a * b)).size() > 0"),
        ("matches", "self.l.all(a, self.s.matches('^(a+)+$'))"),
        ("joins", "self.l.all(a, (self.s + self.s + self.s + self.s).contains('b'))"),
    ] {
        let (defined, used) = define_and_use(&target, plural, &with_rule(rule), &spec).await;
        assert_eq!(used.unwrap_or(defined), 422, "{rule}");
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn rules_that_are_none_are_refused() {
    let target = Target::start().await;
    let deep = format!("{}1 == 1{}", "(".repeat(10_000), ")".repeat(10_000));
    let nots = format!("{}true", "!".repeat(20_000));
    let sums = format!("{} > 0", vec!["1"; 20_000].join(" + "));
    let calls = format!("self.s{} == ''", ".trim()".repeat(5_000));
    let ternaries = format!("{}true{}", "true ? ".repeat(5_000), " : false".repeat(5_000));
    let lists = format!("{}{} == []", "[".repeat(10_000), "]".repeat(10_000));
    for (i, rule) in [
        "",
        "((((",
        "self.",
        "self.nothing == 1",
        "self.s == 1",
        "'\\ud800' == self.s",
        "self.s.matches('((((')",
        "nothing(self)",
        "self.s",
        "\u{0}",
        "self.s == \"\"\"",
        "1 / 0 == 1 ||",
        &deep,
        &nots,
        &lists,
        &calls,
        &sums,
        &ternaries,
    ]
    .into_iter()
    .enumerate()
    {
        let plural = format!("rule{i}s");
        let schema = json!({
            "type": "object", "properties": {"s": {"type": "string"}}, "x-kubernetes-validations": [{"rule": rule}],
        });
        let (defined, _) = define_and_use(&target, &plural, &schema, &json!({"s": "x"})).await;
        // The long ones may be lawful; what matters is that they are answered.
        assert!(defined == 422 || rule.len() > 1_000, "{}: {defined}", shorten(rule));
    }
    target.assert_intact().await;
}

#[tokio::test]
async fn schemas_that_are_none_are_refused() {
    let target = Target::start().await;
    let mut deep = json!({"type": "string"});
    for _ in 0..60 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let mut defaults = json!("x");
    for _ in 0..40 {
        defaults = json!({"a": defaults});
    }
    let wide: serde_json::Map<String, Value> =
        (0..5_000).map(|i| (format!("p{i}"), json!({"type": "string", "default": "x"}))).collect();
    for (i, schema) in [
        json!({"type": "nonsense"}),
        json!({"type": "object", "properties": {"a": {}}}),
        json!({"$ref": "#/definitions/x"}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
        json!({"type": "string", "default": 7}),
        json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}),
        json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["no"]}),
        json!({"type": "object", "default": defaults}),
    ]
    .into_iter()
    .enumerate()
    {
        let body = definition(&format!("schema{i}s"), &schema).to_string().into_bytes();
        let what = shorten(&schema.to_string());
        let reply = target.try_send(&what, Method::POST, DEFINITIONS, "application/json", body).await;
        assert!(reply.status == 422 || reply.status == 400 || i == 8, "{what}: {}", shorten(&reply.text()));
    }
    let wide = json!({"type": "object", "properties": wide});
    assert_eq!(define_and_use(&target, "wides", &wide, &json!({})).await, (201, Some(201)));
    let (defined, _) =
        define_and_use(&target, "zeros", &json!({"type": "integer", "multipleOf": 0}), &json!(7)).await;
    assert!(defined < 500);
    let (defined, _) = define_and_use(&target, "deeps", &deep, &json!({})).await;
    assert!(defined < 500);
    target.assert_intact().await;
}

#[tokio::test]
async fn printer_columns_cannot_hang_a_table() {
    let target = Target::start().await;
    let mut crd =
        definition("columns", &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let columns =
        [".spec..a", ".spec[*][*][*][*]", "..", ".spec[?(@.a==@.b)]", "{range", ".spec[::0]", "[", ".."]
            .iter()
            .enumerate()
            .map(|(i, p)| json!({"name": format!("c{i}"), "type": "string", "jsonPath": p}));
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = columns.collect();
    let body = crd.to_string().into_bytes();
    let defined = target.try_send("columns", Method::POST, DEFINITIONS, "application/json", body).await;
    assert!(defined.status == 201 || defined.status == 422, "{}", defined.text());
    if defined.status == 201 {
        let mut nested = json!(1);
        for _ in 0..100 {
            nested = json!({"a": nested, "b": [1, 2, 3]});
        }
        let object = json!({
            "apiVersion": "hostile.example.com/v1", "kind": kind("columns"), "metadata": {"name": "x"}, "spec": nested,
        });
        let path = "/apis/hostile.example.com/v1/namespaces/default/columns";
        let body = object.to_string().into_bytes();
        let created = target.try_send("a nested object", Method::POST, path, "application/json", body).await;
        assert_eq!(created.status, 201, "{}", shorten(&created.text()));
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let request = target.client.request(Method::GET, path).header("accept", table);
        let reply = target.client.send(request, "").await.unwrap();
        assert_eq!(reply.status, 200, "{}", shorten(&reply.text()));
    }
    target.assert_intact().await;
}

/// What is stored must be readable by everyone in every form, or it could not even be deleted.
#[tokio::test]
async fn whatever_is_accepted_can_be_read_changed_and_deleted() {
    let target = Target::start().await;
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let body = definition("frees", &free).to_string().into_bytes();
    let defined = target.try_send("frees", Method::POST, DEFINITIONS, "application/json", body).await;
    assert_eq!(defined.status, 201, "{}", defined.text());
    let collection = "/apis/hostile.example.com/v1/namespaces/default/frees";
    let mut accepted = 0;
    for levels in [1, 50, 100, 110, 115, 118, 119, 120, 121, 125, 127, 128, 129, 200, 250] {
        let mut nested = json!(1);
        for _ in 0..levels {
            nested = json!({"a": nested});
        }
        let name = format!("n{levels}");
        let object = json!({
            "apiVersion": "hostile.example.com/v1", "kind": kind("frees"), "metadata": {"name": name}, "spec": nested,
        });
        let body = object.to_string().into_bytes();
        let created = target.try_send(&name, Method::POST, collection, "application/json", body).await;
        if created.status != 201 {
            continue;
        }
        accepted += 1;
        let path = format!("{collection}/{name}");
        for accept in ["application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"]
        {
            for path in [&path, collection] {
                let request = target.client.request(Method::GET, path).header("accept", accept);
                let reply = target.client.send(request, "").await.unwrap();
                assert_eq!(reply.status, 200, "{name} as {accept}: {}", shorten(&reply.text()));
            }
        }
        let listed = target.client.get(collection).await.unwrap();
        assert!(!listed.json().is_null(), "a list with {name} is not readable by a common JSON reader");
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        assert_eq!(target.client.merge(&path, &label).await.unwrap().status, 200, "{name} is not changed");
        assert_eq!(target.client.delete(&path).await.unwrap().status, 200, "{name} is not deleted");
    }
    assert!((3..15).contains(&accepted), "{accepted} were accepted");
    target.assert_intact().await;
}
