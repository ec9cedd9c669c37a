//! Server-side apply through its entry points: merging, ownership, conflicts and the managedFields around them.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_schema::own::{self, ApplyError, Context, Path, Set};
use transom_schema::{Additional, ListType, Schema, Type};

const NOW: &str = "2030-01-02T03:04:05Z";

fn of(ty: Type) -> Schema {
    Schema { ty, ..Schema::default() }
}

fn object(fields: Vec<(&str, Schema)>) -> Schema {
    let properties: BTreeMap<_, _> = fields.into_iter().map(|(n, s)| (n.to_owned(), Arc::new(s))).collect();
    Schema { properties, ..of(Type::Object) }
}

/// A kind with a scalar, a granular map, an atomic list, a set and a list keyed by port and protocol.
fn widget() -> Schema {
    let port = object(vec![
        ("port", of(Type::Integer)),
        ("protocol", Schema { default: Some(json!("TCP")), ..of(Type::String) }),
        ("name", of(Type::String)),
    ]);
    let list = |list_type, items| Schema { list_type, items: Some(Arc::new(items)), ..of(Type::Array) };
    let texts = Schema { additional: Additional::Schema(Arc::new(of(Type::String))), ..of(Type::Object) };
    let spec = object(vec![
        ("replicas", of(Type::Integer)),
        ("color", of(Type::String)),
        ("selector", texts),
        ("args", list(None, of(Type::String))),
        ("zones", list(Some(ListType::Set), of(Type::String))),
        ("ports", list(Some(ListType::Map(vec!["port".into(), "protocol".into()])), port)),
    ]);
    object(vec![("spec", spec), ("status", Schema::any())])
}

struct Server {
    schema: Arc<Schema>,
    now: String,
    subresource: &'static str,
    reset: Option<Arc<Set>>,
}

impl Server {
    fn new() -> Self {
        Self { schema: Arc::new(widget()), now: NOW.to_owned(), subresource: "", reset: None }
    }

    fn at(mut self, now: &str) -> Self {
        self.now = now.to_owned();
        self
    }

    fn with<T>(&self, work: impl FnOnce(&Context<'_>) -> T) -> T {
        let schema = |version: &str| (version == "example.org/v1").then(|| self.schema.clone());
        let convert = |_: &Value, _: &str| None;
        let reset_fields = |_: &str| self.reset.clone();
        work(&Context {
            api_version: "example.org/v1",
            subresource: self.subresource,
            schema: &schema,
            convert: &convert,
            reset_fields: &reset_fields,
            blank: None,
            now: &self.now,
        })
    }

    fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value, ApplyError> {
        self.with(|ctx| own::apply(ctx, live, config, manager, force))
    }

    fn update(&self, live: Option<&Value>, mut new: Value, manager: &str) -> Value {
        self.with(|ctx| own::update(ctx, live, &mut new, manager));
        new
    }
}

fn config(spec: &Value) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

/// As the server would have stored it.
fn stored(mut object: Value) -> Value {
    object["metadata"]["uid"] = "1".into();
    object
}

fn owned(object: &Value, manager: &str, operation: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let entry = entries.into_iter().find(|e| e["manager"] == manager && e["operation"] == operation);
    entry.map_or(Value::Null, |e| e["fieldsV1"].clone())
}

#[test]
fn apply_creates_and_owns_what_it_sets() {
    let made = Server::new()
        .apply(None, &config(&json!({"replicas": 1, "ports": [{"port": 80}]})), "a", false)
        .unwrap();
    assert_eq!(made["spec"], json!({"replicas": 1, "ports": [{"port": 80}]}));
    assert_eq!(
        made["metadata"]["managedFields"],
        json!([{"manager": "a", "operation": "Apply", "apiVersion": "example.org/v1", "time": NOW,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {
                "f:replicas": {},
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}}}])
    );
}

#[test]
fn applying_again_changes_nothing() {
    let server = Server::new();
    let c = config(&json!({"replicas": 1, "zones": ["a"]}));
    let live = stored(server.apply(None, &c, "a", false).unwrap());
    let later = Server::new().at("2031-01-01T00:00:00Z");
    assert_eq!(later.with(|ctx| own::apply_change(ctx, Some(&live), &c, "a", false)).unwrap(), None);
    assert_eq!(later.apply(Some(&live), &c, "a", false).unwrap(), live);
}

#[test]
fn what_is_applied_no_more_vanishes_unless_owned_by_others() {
    let server = Server::new();
    let live =
        server.apply(None, &config(&json!({"replicas": 1, "color": "red", "zones": ["a", "b"]})), "a", false);
    let live = stored(live.unwrap());
    let live = server.apply(Some(&live), &config(&json!({"zones": ["b"]})), "b", false).unwrap();
    let live = server.apply(Some(&live), &config(&json!({"replicas": 1})), "a", false).unwrap();
    assert_eq!(live["spec"], json!({"replicas": 1, "zones": ["b"]}));
    assert_eq!(owned(&live, "b", "Apply"), json!({"f:spec": {"f:zones": {"v:\"b\"": {}}}}));
}

#[test]
fn conflicts_are_refused_unless_forced() {
    let server = Server::new();
    let live =
        stored(server.apply(None, &config(&json!({"replicas": 1, "args": ["x"]})), "a", false).unwrap());
    let other = config(&json!({"replicas": 2, "args": ["y"]}));
    let error = server.apply(Some(&live), &other, "b", false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.args\n- .spec.replicas"
    );
    let forced = server.apply(Some(&live), &other, "b", true).unwrap();
    assert_eq!(forced["spec"]["replicas"], 2);
    assert_eq!(owned(&forced, "a", "Apply"), Value::Null);
}

#[test]
fn sharing_a_value_is_not_a_conflict() {
    let server = Server::new();
    let c = config(&json!({"replicas": 1}));
    let live = stored(server.apply(None, &c, "a", false).unwrap());
    let both = server.apply(Some(&live), &c, "b", false).unwrap();
    assert_eq!(owned(&both, "a", "Apply"), owned(&both, "b", "Apply"));
}

#[test]
fn updates_own_what_they_change() {
    let server = Server::new();
    let live =
        stored(server.apply(None, &config(&json!({"replicas": 1, "color": "red"})), "a", false).unwrap());
    let mut new = live.clone();
    new["spec"]["replicas"] = 5.into();
    new["metadata"]["labels"] = json!({"l": "v"});
    let live = server.update(Some(&live), new, "hpa");
    assert_eq!(owned(&live, "a", "Apply"), json!({"f:spec": {"f:color": {}}}));
    assert_eq!(
        owned(&live, "hpa", "Update"),
        json!({"f:spec": {"f:replicas": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}})
    );
    let error = server.apply(Some(&live), &config(&json!({"replicas": 1})), "a", false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"hpa\" using example.org/v1: .spec.replicas"
    );
}

#[test]
fn creation_by_update_is_tracked_and_untracked_objects_stay_so() {
    let server = Server::new();
    let made = server.update(None, config(&json!({"replicas": 1})), "");
    assert_eq!(owned(&made, "unknown", "Update"), json!({"f:spec": {".": {}, "f:replicas": {}}}));
    let live = stored(config(&json!({"replicas": 1})));
    let mut new = live.clone();
    new["spec"]["replicas"] = 2.into();
    assert_eq!(server.update(Some(&live), new.clone(), "m"), new);
}

#[test]
fn the_first_apply_attributes_what_was_there() {
    let server = Server::new();
    let live = stored(config(&json!({"replicas": 1, "color": "red"})));
    let error = server.apply(Some(&live), &config(&json!({"replicas": 2})), "a", false).unwrap_err();
    assert!(error.to_string().contains("\"before-first-apply\" using example.org/v1"), "{error}");
    let live = server.apply(Some(&live), &config(&json!({"replicas": 2})), "a", true).unwrap();
    assert_eq!(owned(&live, "before-first-apply", "Update"), json!({"f:spec": {".": {}, "f:color": {}}}));
}

#[test]
fn managed_fields_can_be_reset_and_not_lost_by_accident() {
    let server = Server::new();
    let live = stored(server.apply(None, &config(&json!({"replicas": 1})), "a", false).unwrap());
    for reset in [json!([]), json!([{}])] {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = reset;
        assert_eq!(server.update(Some(&live), new, "m")["metadata"].get("managedFields"), None);
    }
    for accident in [Value::Null, json!("garbage"), json!([{"manager": "x"}])] {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = accident;
        assert_eq!(server.update(Some(&live), new, "m"), live);
    }
}

#[test]
fn endpoints_do_not_own_reset_fields() {
    let mut server = Server::new();
    server.reset = Some(Arc::new(Set::from_iter([Path::of(&["spec"]), Path::of(&["metadata"])])));
    server.subresource = "status";
    let live = stored(config(&json!({"replicas": 1})));
    let mut c = config(&json!({"replicas": 7}));
    c["status"] = json!({"ready": true});
    let live = server.apply(Some(&live), &c, "s", true).unwrap();
    let entry = &live["metadata"]["managedFields"][0];
    assert_eq!(
        (&entry["subresource"], &entry["fieldsV1"]),
        (&json!("status"), &json!({"f:status": {"f:ready": {}}}))
    );
}

#[test]
fn configurations_that_do_not_fit_are_refused() {
    let server = Server::new();
    let fail = |c: &Value| server.apply(None, c, "a", false).unwrap_err().to_status();
    let mut c = config(&json!({}));
    c["metadata"]["managedFields"] = json!([{"manager": "x"}]);
    assert_eq!((fail(&c).code, fail(&c).message.as_str()), (400, "metadata.managedFields must be nil"));
    c["apiVersion"] = "example.org/v2".into();
    assert_eq!(
        (fail(&c).code, fail(&c).message.as_str()),
        (400, "invalid object type: example.org/v2, Kind=Widget")
    );
    let unknown = fail(&config(&json!({"unknown": 1})));
    assert_eq!(
        (unknown.code, unknown.message.as_str()),
        (
            500,
            "failed to create typed patch object (/w; example.org/v1, Kind=Widget): .spec.unknown: field not declared in schema"
        )
    );
    let duplicate = fail(&config(&json!({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]})));
    assert!(
        duplicate.message.ends_with(".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]"),
        "{duplicate}"
    );
}

#[test]
fn kubectl_is_forgiven_for_what_it_applied_on_its_own_side() {
    const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let server = Server::new();
    let mut made = config(&json!({"replicas": 1, "color": "red"}));
    made["metadata"]["annotations"] = json!({ANNOTATION: config(&json!({"replicas": 1})).to_string()});
    let live = stored(server.update(None, made, "kubectl-client-side-apply"));
    let live_2 = server.apply(Some(&live), &config(&json!({"replicas": 2})), "kubectl", false).unwrap();
    assert_eq!(live_2["spec"]["replicas"], 2);
    assert_eq!(
        live_2["metadata"]["annotations"][ANNOTATION],
        "{\"apiVersion\":\"example.org/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"w\"},\"spec\":{\"replicas\":2}}\n"
    );
    let error = server
        .apply(Some(&live), &config(&json!({"replicas": 2, "color": "blue"})), "kubectl", false)
        .unwrap_err();
    assert!(
        matches!(&error, ApplyError::Conflicts(c) if c.len() == 1 && c[0].path.to_string() == ".spec.color"),
        "{error}"
    );
    assert!(server.apply(Some(&live), &config(&json!({"replicas": 2})), "other", false).is_err());
}

#[test]
fn timestamps_alone_do_not_count_as_a_change() {
    let server = Server::new();
    let live = stored(server.apply(None, &config(&json!({"replicas": 1})), "a", false).unwrap());
    let mut new = live.clone();
    new["metadata"]["managedFields"][0]["time"] = "2031-01-01T00:00:00Z".into();
    let mut changed = new.clone();
    assert!(own::keep_timestamps(&live, &mut new));
    assert_eq!(new, live);
    changed["spec"]["replicas"] = 2.into();
    assert!(!own::keep_timestamps(&live, &mut changed));
    assert_eq!(changed["metadata"]["managedFields"][0]["time"], "2031-01-01T00:00:00Z");
}

#[test]
fn hostile_managed_fields_never_panic() {
    let server = Server::new();
    let hostile = [
        json!(1),
        json!("x"),
        json!([[]]),
        json!([null]),
        json!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": []}]),
        json!([{"operation": "Apply", "apiVersion": "example.org/v1", "fieldsType": "FieldsV1", "time": "never",
                "fieldsV1": {"f:spec": {"v:1": {"k:{}": {"i:-9": {}}}}, "f:": {}, ".": 3, "q:": 4}}]),
        json!([{"operation": "Update", "apiVersion": "gone/v9", "fieldsType": "FieldsV1", "fieldsV1": null}]),
    ];
    for fields in hostile {
        let mut live = stored(config(&json!({"replicas": 1})));
        live["metadata"]["managedFields"] = fields.clone();
        let _ = server.apply(Some(&live), &config(&json!({"replicas": 2})), "a", true);
        let mut new = live.clone();
        new["spec"]["replicas"] = 3.into();
        server.update(Some(&live), new, "m");
    }
}

/// Two versions that name one field differently, and a third that is gone.
fn versions(live: Option<&Value>, config: &Value, manager: &str, force: bool) -> Result<Value, ApplyError> {
    let spec = |field: &str| {
        Arc::new(object(vec![("spec", object(vec![(field, of(Type::Integer)), ("same", of(Type::String))]))]))
    };
    let schema = |version: &str| match version {
        "example.org/v1" => Some(spec("old")),
        "example.org/v2" => Some(spec("new")),
        _ => None,
    };
    let convert = |value: &Value, version: &str| {
        let mut value = value.clone();
        let (from, to) = if version.ends_with('1') { ("new", "old") } else { ("old", "new") };
        if let Some(field) = value["spec"].as_object_mut().and_then(|s| s.remove(from)) {
            value["spec"][to] = field;
        }
        value["apiVersion"] = version.into();
        Some(value)
    };
    let reset_fields = |_: &str| None;
    let api_version = config["apiVersion"].as_str().unwrap_or_default();
    own::apply(
        &Context {
            api_version,
            subresource: "",
            schema: &schema,
            convert: &convert,
            reset_fields: &reset_fields,
            blank: None,
            now: NOW,
        },
        live,
        config,
        manager,
        force,
    )
}

#[test]
fn ownership_crosses_versions() {
    let at = |version: &str, spec: &Value| {
        let mut c = config(spec);
        c["apiVersion"] = format!("example.org/{version}").into();
        c
    };
    let live = stored(versions(None, &at("v1", &json!({"old": 1, "same": "a"})), "a", false).unwrap());
    let error = versions(Some(&live), &at("v2", &json!({"new": 2})), "b", false).unwrap_err();
    assert!(
        matches!(&error, ApplyError::Conflicts(c) if c.len() == 1 && c[0].path.to_string() == ".spec.old"),
        "{error}"
    );
    // The same applier at another version: what it applies no more vanishes.
    let moved = versions(Some(&live), &at("v2", &json!({"new": 1})), "a", false).unwrap();
    assert_eq!((&moved["apiVersion"], &moved["spec"]), (&json!("example.org/v2"), &json!({"new": 1})));
    assert_eq!(owned(&moved, "a", "Apply"), json!({"f:spec": {"f:new": {}}}));
    // Fields of a version that is no longer served have no owner.
    let mut orphan = live;
    orphan["metadata"]["managedFields"][0]["apiVersion"] = "example.org/v0".into();
    let taken = versions(Some(&orphan), &at("v1", &json!({"old": 7})), "b", false).unwrap();
    assert_eq!(owned(&taken, "a", "Apply"), Value::Null);
}

#[test]
fn scale_sees_and_returns_the_owners_of_replicas() {
    let paths = BTreeMap::from([("apps/v1".to_owned(), Some(Path::of(&["spec", "count"])))]);
    let entry = |manager: &str, operation: &str, version: &str, fields: &Value| json!({"manager": manager, "operation": operation, "apiVersion": version, "fieldsType": "FieldsV1", "fieldsV1": fields});
    let parent = json!([
        entry("a", "Apply", "apps/v1", &json!({"f:spec": {"f:count": {}, "f:x": {}}})),
        entry("b", "Apply", "apps/v1", &json!({"f:spec": {"f:y": {}}}))
    ]);
    let replicas = json!({"f:spec": {"f:replicas": {}}});
    let scale = own::scale::to_scale(Some(&parent), &paths).unwrap();
    assert_eq!(scale, Some(json!([entry("a", "Apply", "autoscaling/v1", &replicas)])));
    let stolen = json!([entry("hpa", "Update", "autoscaling/v1", &replicas)]);
    let back = own::scale::to_parent(Some(&parent), Some(&stolen), "apps/v1", &paths).unwrap();
    assert_eq!(
        back,
        Some(json!([
            entry("a", "Apply", "apps/v1", &json!({"f:spec": {"f:x": {}}})),
            entry("b", "Apply", "apps/v1", &json!({"f:spec": {"f:y": {}}})),
            entry("hpa", "Update", "apps/v1", &json!({"f:spec": {"f:count": {}}}))
        ]))
    );
    assert_eq!(
        own::scale::to_parent(Some(&parent), scale.as_ref(), "apps/v1", &paths).unwrap(),
        Some(parent)
    );
}
