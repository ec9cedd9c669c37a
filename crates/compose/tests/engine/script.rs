//! Test doubles: a runner with scripted responses that records requests, and a composite resource to compose.

use serde_json::{Value, json};
use std::sync::Mutex;
use transom_compose::{
    Answer, Decision, Failure, FunctionRunner, GrpcCode, Inputs, Layout, Objects, Observed, ObservedResource,
    Options, Requirements, RunError, Spare, StepRef, compose,
};
use transom_function::{Resource, RunFunctionRequest, RunFunctionResponse, async_trait};
use transom_object::time::{self, Timestamp};
use transom_xapi::CompositionSpec;

type Scripted = Box<dyn Fn(&RunFunctionRequest) -> Result<RunFunctionResponse, RunError> + Send + Sync>;

/// Answers each call with the next answer; the last one answers all that follow.
#[derive(Default)]
pub(crate) struct Script {
    answers: Vec<Scripted>,
    pub calls: Mutex<Vec<Call>>,
}

/// A call that was made.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub step: String,
    pub function: String,
    /// Which revision it wants.
    pub revision: String,
    pub index: usize,
    pub iteration: usize,
    pub request: RunFunctionRequest,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn then(
        mut self,
        answer: impl Fn(&RunFunctionRequest) -> RunFunctionResponse + Send + Sync + 'static,
    ) -> Self {
        self.answers.push(Box::new(move |request| Ok(answer(request))));
        self
    }

    pub(crate) fn then_fail(mut self, message: &'static str) -> Self {
        self.answers.push(Box::new(move |_| {
            let (function, code) = ("f".to_owned(), GrpcCode::Unavailable);
            Err(RunError::Failed { function, code, message: message.to_owned() })
        }));
        self
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("no test panicked").clone()
    }
}

#[async_trait]
impl FunctionRunner for Script {
    async fn run(&self, step: StepRef<'_>, request: RunFunctionRequest) -> Result<Answer, RunError> {
        let made = {
            let mut calls = self.calls.lock().expect("no test panicked");
            calls.push(Call {
                step: step.name.to_owned(),
                function: step.function.to_owned(),
                revision: format!("{:?}", step.revision),
                index: step.index,
                iteration: step.iteration,
                request: request.clone(),
            });
            calls.len() - 1
        };
        let answer = self.answers.get(made).or(self.answers.last()).expect("the script has an answer");
        answer(&request).map(Answer::from)
    }
}

/// Something to compose, to be changed by each test.
pub(crate) struct Case {
    pub xr: Value,
    pub layout: Layout,
    pub composition: CompositionSpec,
    pub observed: Observed,
    pub spare: Vec<Spare>,
    pub before: Requirements,
    pub world: Objects,
    pub options: Options,
}

impl Case {
    /// A namespaced composite resource and a pipeline of so many steps named a, b, c, …
    pub(crate) fn steps(count: u8) -> Self {
        let steps: Vec<Value> = (b'a'..b'a' + count)
            .map(|step| json!({"step": char::from(step).to_string(), "functionRef": {"name": "function"}}))
            .collect();
        Self::new(&json!({"pipeline": steps}))
    }

    pub(crate) fn new(composition: &Value) -> Self {
        let xr = json!({
            "apiVersion": "example.org/v1", "kind": "XThing",
            "metadata": {
                "name": "thing", "namespace": "team", "uid": "uid-123", "generation": 4,
                "labels": {"crossplane.io/composite": "thing"},
            },
            "spec": {"size": 3},
        });
        Self {
            xr,
            layout: Layout::Modern,
            composition: serde_json::from_value(composition.clone()).expect("a composition"),
            observed: Observed::new(),
            spare: Vec::new(),
            before: Requirements::new(),
            world: Objects::new(),
            options: Options::default(),
        }
    }

    /// Makes the composite resource a legacy one, which is cluster-scoped.
    pub(crate) fn legacy(mut self) -> Self {
        self.layout = Layout::Legacy;
        self.cluster()
    }

    pub(crate) fn cluster(mut self) -> Self {
        transom_object::meta::set_namespace(&mut self.xr, "");
        self
    }

    pub(crate) fn observe(mut self, name: &str, object: Value) -> Self {
        self.observed.insert(
            name.to_owned(),
            ObservedResource { object: object.into(), ..ObservedResource::default() },
        );
        self
    }

    /// Refers to an object that is none of the composed resources, or has the name of another one.
    pub(crate) fn spare(mut self, name: Option<&str>, object: Value) -> Self {
        self.spare.push(Spare { name: name.map(str::to_owned), object });
        self
    }

    pub(crate) async fn run(&self, script: &Script) -> Result<Decision, Failure> {
        let inputs = Inputs {
            xr: &self.xr,
            visible_xr: None,
            layout: self.layout,
            connection_details: Default::default(),
            composition: &self.composition,
            observed: &self.observed,
            spare: &self.spare,
            required_before: &self.before,
            context: Default::default(),
            now: now(),
            options: self.options,
        };
        compose(inputs, script, &self.world).await
    }
}

pub(crate) fn now() -> Timestamp {
    time::parse("2024-01-01T00:00:00Z").expect("a time")
}

/// An object, controlled by the composite resource of [`Case`] when `controlled`.
pub(crate) fn object(kind: &str, name: &str, controlled: bool) -> Value {
    let mut object = json!({
        "apiVersion": "example.org/v1", "kind": kind,
        "metadata": {
            "name": name, "namespace": "team", "uid": format!("uid-of-{name}"),
            "labels": {"crossplane.io/composite": "thing", "own": "label"},
            "annotations": {"crossplane.io/composition-resource-name": name},
        },
    });
    if controlled {
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "example.org/v1", "kind": "XThing", "name": "thing", "uid": "uid-123", "controller": true,
        }]);
    }
    object
}

/// A desired resource of a kind, with nothing else.
pub(crate) fn resource(kind: &str) -> Resource {
    Resource::new(json!({"apiVersion": "example.org/v1", "kind": kind})).expect("an object")
}

/// An answer that wants one more resource.
pub(crate) fn wanting(request: &RunFunctionRequest, name: &str, kind: &str) -> RunFunctionResponse {
    let mut response = request.copy_response();
    response.set_composed(name, resource(kind));
    response
}
