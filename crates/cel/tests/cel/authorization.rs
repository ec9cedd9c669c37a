//! The authorizer library: which questions expressions ask, what they see of the answers, and what it costs.

use std::sync::{Arc, Mutex};
use transom_cel::{
    AccessDecider, AccessDecision, AccessQuestion, Bindings, Env, PER_CALL_LIMIT, Program, Type, Value,
};

/// Remembers what it was asked, and allows the verb `get`.
#[derive(Default)]
struct Recorder(Mutex<Vec<AccessQuestion>>);

impl AccessDecider for Recorder {
    fn decide(&self, question: &AccessQuestion) -> AccessDecision {
        self.0.lock().unwrap().push(question.clone());
        AccessDecision {
            allowed: question.verb == "get",
            reason: format!("because of {}", question.verb),
            error: (question.verb == "fail").then(|| "no answer".to_owned()),
        }
    }
}

fn env() -> Env {
    Env::new()
        .with("authorizer", Type::AUTHORIZER)
        .with("authorizer.requestResource", Type::RESOURCE_CHECK)
        .with("any", Type::Dyn)
}

/// The value, the questions and the cost of an expression.
fn run(source: &str) -> (Result<Value<'static>, String>, Vec<AccessQuestion>, u64) {
    let recorder = Arc::new(Recorder::default());
    let decider: Arc<dyn AccessDecider> = recorder.clone();
    let requested = AccessQuestion {
        group: "example.org".into(),
        resource: "things".into(),
        name: "x".into(),
        ..AccessQuestion::default()
    };
    let bindings = Bindings::new()
        .with("authorizer", Value::authorizer(&decider))
        .with("authorizer.requestResource", Value::resource_check(&decider, requested))
        .with("any", Value::authorizer(&decider));
    let program = match Program::compile(source, &env()) {
        Ok(program) => program,
        Err(error) => return (Err(error.to_string()), Vec::new(), 0),
    };
    let (value, cost) = program.eval_metered(&bindings, PER_CALL_LIMIT);
    let questions = recorder.0.lock().unwrap().clone();
    (value.map_err(|e| e.to_string()), questions, cost)
}

fn question(change: impl FnOnce(&mut AccessQuestion)) -> AccessQuestion {
    let mut question = AccessQuestion { verb: "get".into(), ..AccessQuestion::default() };
    change(&mut question);
    question
}

#[test]
fn questions_are_put_together_by_the_chain_of_calls() {
    let text = str::to_owned;
    for (source, expected) in [
        ("authorizer.path('/healthz')", question(|q| q.path = Some(text("/healthz")))),
        ("authorizer.group('').resource('pods')", question(|q| q.resource = text("pods"))),
        (
            "authorizer.group('apps').resource('deployments').subresource('scale').namespace('n').name('d')",
            question(|q| {
                (q.group, q.resource) = (text("apps"), text("deployments"));
                (q.subresource, q.namespace, q.name) = (text("scale"), text("n"), text("d"));
            }),
        ),
        (
            "authorizer.serviceAccount('n', 'a').group('').resource('pods').fieldSelector('a=b').labelSelector('c')",
            question(|q| {
                q.service_account = Some((text("n"), text("a")));
                (q.resource, q.field_selector, q.label_selector) = (text("pods"), text("a=b"), text("c"));
            }),
        ),
        (
            "authorizer.requestResource",
            question(|q| {
                (q.group, q.resource, q.name) = (text("example.org"), text("things"), text("x"));
            }),
        ),
        (
            "authorizer.requestResource.name('y')",
            question(|q| {
                (q.group, q.resource, q.name) = (text("example.org"), text("things"), text("y"));
            }),
        ),
        ("any.path('/x')", question(|q| q.path = Some(text("/x")))),
    ] {
        let (value, questions, _) = run(&format!("{source}.check('get').allowed()"));
        assert!(matches!(value, Ok(Value::Bool(true))), "{source}: {value:?}");
        assert_eq!(questions, [expected], "{source}");
    }
}

#[test]
fn decisions_say_whether_and_why() {
    for source in [
        "!authorizer.path('/x').check('put').allowed()",
        "authorizer.path('/x').check('put').reason() == 'because of put'",
        "authorizer.path('/x').check('fail').errored() && authorizer.path('/x').check('fail').error() == 'no answer'",
        "!authorizer.path('/x').check('get').errored() && authorizer.path('/x').check('get').error() == ''",
        "type(authorizer.path('/x').check('get')) == kubernetes.authorization.Decision",
    ] {
        let (value, ..) = run(source);
        assert!(matches!(value, Ok(Value::Bool(true))), "{source}: {value:?}");
    }
}

#[test]
fn wrong_questions_are_refused() {
    for (source, why) in [
        ("authorizer.path(' ').check('get').allowed()", "path must not be empty"),
        ("authorizer.group('').resource('').check('get').allowed()", "resource must not be empty"),
        (
            "authorizer.serviceAccount('n', 'A b').path('/x').check('get').allowed()",
            "Invalid service account name",
        ),
        (
            "authorizer.serviceAccount('n.m', 'a').path('/x').check('get').allowed()",
            "Invalid service account namespace",
        ),
        ("authorizer.check('get').allowed()", "found no matching overload for 'check'"),
        ("authorizer.group('').check('get').allowed()", "found no matching overload for 'check'"),
        ("authorizer.path('/x').allowed()", "found no matching overload for 'allowed'"),
        ("authorizer.path('/x').name('n')", "found no matching overload for 'name'"),
        ("any.check('get').allowed()", "no such overload"),
        ("authorizer.path('/x') == authorizer.path('/x')", "no such overload"),
        ("authorizer.path('/x').check('get') == authorizer.path('/x').check('get')", "no such overload"),
    ] {
        let (value, ..) = run(source);
        let refusal = value.expect_err(source);
        assert!(refusal.contains(why), "{source}: {refusal}");
    }
}

#[test]
fn checks_cost_as_much_as_in_kubernetes() {
    let cost = |source: &str| run(source).2;
    let check = "authorizer.path('/x').check('get').allowed()";
    // The variable, three calls, one of them a check.
    assert_eq!(cost(check), 350_000 + 3);
    let selector = "authorizer.group('').resource('p').labelSelector('a=b,c').check('get').allowed()";
    // Five characters: 10 for the list, 1 to read it, 50 for each of three requirements.
    assert_eq!(cost(selector), 350_000 + 4 + 10 + 1 + 150);
    let (value, questions, _) = run(&[check; 3].join(" && "));
    assert!(value.unwrap_err().contains("cost limit exceeded"));
    assert!(questions.len() <= 3, "the third is the last: {questions:?}");
    let estimate = Program::compile(check, &env()).unwrap().estimated_cost();
    assert!(estimate.min >= 350_000 && estimate.max < 351_000, "{estimate:?}");
}

#[test]
fn only_hosts_have_an_authorizer() {
    let error = Program::compile("authorizer.path('/x').check('get').allowed()", &Env::new()).unwrap_err();
    assert!(error.to_string().contains("undeclared reference to 'authorizer'"), "{error}");
}
