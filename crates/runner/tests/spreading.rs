//! Calls of a function that runs at several addresses.

use crate::calls::{options, request, step};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use transom_compose::FunctionRunner;
use transom_function::testing::serve;
use transom_function::{Error, Function, RunFunctionRequest, RunFunctionResponse, async_trait};
use transom_runner::{Endpoint, Lookup, Router};

/// Says which one it is.
struct Replica(&'static str);

#[async_trait]
impl Function for Replica {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let mut response = request.start_response();
        response.set_context("replica", self.0);
        Ok(response)
    }
}

#[derive(Clone, Default)]
struct Addresses(Arc<Mutex<Vec<SocketAddr>>>);

#[async_trait]
impl Lookup for Addresses {
    async fn lookup(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(self.0.lock().unwrap().clone())
    }
}

async fn answered_by(functions: &Router) -> String {
    let response = functions.run(step("f"), request("echo")).await.unwrap().response;
    let context = format!("{:?}", response.context);
    ["one", "two"].into_iter().find(|name| context.contains(name)).unwrap_or_default().to_owned()
}

/// Calls until the answers come from exactly these.
async fn until_answered_by(functions: &Router, expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(|name| (*name).to_owned()).collect();
    for _ in 0..2000 {
        let mut answers = BTreeSet::new();
        for _ in 0..32 {
            answers.insert(answered_by(functions).await);
        }
        if answers == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("calls are not answered by {expected:?}");
}

#[tokio::test]
async fn calls_are_spread_over_replicas_as_they_come_and_go() {
    let (one, two) = (serve(Replica("one")).await, serve(Replica("two")).await);
    let addresses = Addresses::default();
    addresses.0.lock().unwrap().push(one);
    let endpoint = Endpoint::plaintext("dns:///function.example:9443").found_by(Arc::new(addresses.clone()));
    let functions = Router::new(options());
    functions.call_at("f", endpoint).unwrap();
    until_answered_by(&functions, &["one"]).await;
    addresses.0.lock().unwrap().push(two);
    until_answered_by(&functions, &["one", "two"]).await;
    addresses.0.lock().unwrap().remove(0);
    until_answered_by(&functions, &["two"]).await;
    // What does not answer for a while is not forgotten.
    addresses.0.lock().unwrap().clear();
    assert_eq!(answered_by(&functions).await, "two");
}

#[tokio::test]
async fn a_name_that_leads_nowhere_fails_calls_at_once() {
    let functions = Router::new(options());
    let endpoint =
        Endpoint::plaintext("dns:///function.invalid:9443").found_by(Arc::new(Addresses::default()));
    functions.call_at("f", endpoint).unwrap();
    let error = functions.run(step("f"), request("echo")).await.unwrap_err().to_string();
    assert!(error.contains('f') && !error.contains("deadline"), "{error}");
}
