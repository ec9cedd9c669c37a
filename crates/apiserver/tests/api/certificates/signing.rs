//! What upkeep does with requests: signatures of approved ones, failures, and removal.

use super::*;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use transom_apiserver::{
    Admission, CertificateOrder, CertificateSigner, CertificateSignerError, Endpoint, Environment, Operation,
    Phase, Review, Verdict, async_trait,
};

/// Signs everything, and remembers what.
#[derive(Default)]
struct Recorder(Mutex<Vec<CertificateOrder>>);

impl CertificateSigner for Recorder {
    fn sign(&self, order: &CertificateOrder) -> Result<String, CertificateSignerError> {
        self.0.lock().unwrap().push(order.clone());
        Ok(certificate())
    }
}

/// A clock that a test sets.
struct Clock(Arc<Mutex<i64>>);

impl Environment for Clock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(*self.0.lock().unwrap()).unwrap()
    }

    fn random(&self) -> u128 {
        transom_apiserver::SystemEnvironment.random()
    }
}

async fn signing() -> (Client, Arc<Recorder>, Arc<Mutex<i64>>) {
    let signer = Arc::new(Recorder::default());
    let (client, now) = signing_by(signer.clone(), Options::default()).await;
    (client, signer, now)
}

async fn signing_by(signer: Arc<dyn CertificateSigner>, options: Options) -> (Client, Arc<Mutex<i64>>) {
    let now = Arc::new(Mutex::new(1_000_000_000));
    let options = Options {
        rbac: true,
        certificate_signer: Some(signer),
        environment: Box::new(Clock(now.clone())),
        ..options
    };
    let client = Client::with(&Store::in_step(transom_store::Options::default()), options).await;
    let server = client.server.clone();
    tokio::spawn(async move { server.run_upkeep().await });
    (client, now)
}

/// The request, once upkeep has nothing left to do.
async fn after_upkeep(client: &Client, name: &str) -> Value {
    while client.server.upkeep_idle_at().is_none() {
        tokio::task::yield_now().await;
    }
    client.get(&format!("{REQUESTS}/{name}")).await.json()
}

#[tokio::test]
async fn approved_requests_for_clients_are_signed_and_no_others() {
    let (admin, signer, _) = signing().await;
    let mut wanted = request("a", CLIENTS);
    // Without a field that has an owner, an object has no managedFields: the spec has none.
    wanted["metadata"]["labels"] = json!({"a": "b"});
    wanted["spec"]["expirationSeconds"] = json!(3600);
    wanted["spec"]["usages"] = json!(["digital signature", "client auth"]);
    admin.post(REQUESTS, &wanted).await.expect(201);
    for (name, signer) in [("other", OTHERS), ("denied", CLIENTS), ("waiting", CLIENTS)] {
        admin.post(REQUESTS, &request(name, signer)).await.expect(201);
    }
    assert!(
        after_upkeep(&admin, "a").await["status"].get("certificate").is_none(),
        "not before it is approved"
    );
    decide(&admin, "denied", "Denied").await.expect(200);
    decide(&admin, "other", "Approved").await.expect(200);
    decide(&admin, "a", "Approved").await.expect(200);
    let signed = after_upkeep(&admin, "a").await;
    assert!(signed["status"]["certificate"].is_string(), "{signed}");
    let managers: Vec<&str> = signed["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["manager"].as_str().unwrap())
        .collect();
    assert!(managers.contains(&"kube-controller-manager"), "{managers:?}");
    for name in ["other", "denied", "waiting"] {
        assert!(after_upkeep(&admin, name).await["status"].get("certificate").is_none(), "{name}");
    }
    let orders = signer.0.lock().unwrap();
    assert_eq!(orders.len(), 1);
    assert_eq!(orders[0].request.common_names, ["jane"]);
    assert_eq!(orders[0].request.organizations, ["developers"]);
    assert_eq!(orders[0].lifetime, Some(std::time::Duration::from_secs(3600)));
    assert!(orders[0].signs && !orders[0].enciphers);
}

#[tokio::test]
async fn what_cannot_be_signed_fails_for_good() {
    let (admin, signer, _) = signing().await;
    // A second common name, under the number that the first has.
    let second = DnType::CustomDnType(vec![2, 5, 4, 3]);
    let bmp = |name: &str| DnValue::BmpString(name.try_into().unwrap());
    let subjects = [
        ("two-faced", with_subject([(DnType::CommonName, "jane".into()), (second.clone(), "root".into())])),
        ("half-read", with_subject([(DnType::CommonName, "root".into()), (second, bmp("jane"))])),
        (
            "groups-unread",
            with_subject([
                (DnType::CommonName, "jane".into()),
                (DnType::OrganizationName, bmp("developers")),
            ]),
        ),
    ];
    let unread = "a common name or organization of the subject is neither a UTF8String, PrintableString, IA5String nor \
                  NumericString: request it again with UTF8Strings";
    for (name, usages, why) in [
        ("two-faced", json!(["client auth"]), "the subject has more than one common name"),
        ("half-read", json!(["client auth"]), unread),
        ("groups-unread", json!(["client auth"]), unread),
        (
            "serving",
            json!(["client auth", "server auth"]),
            "invalid usage for client certificate: server auth",
        ),
        (
            "nothing",
            json!(["digital signature"]),
            "missing required usage for client certificate: client auth",
        ),
    ] {
        let mut wrong = request(name, CLIENTS);
        wrong["spec"]["usages"] = usages;
        if let Some((_, pkcs10)) = subjects.iter().find(|(of, _)| *of == name) {
            wrong["spec"]["request"] = json!(base64(pkcs10));
        }
        admin.post(REQUESTS, &wrong).await.expect(201);
        decide(&admin, name, "Approved").await.expect(200);
        let failed = after_upkeep(&admin, name).await;
        let condition = &failed["status"]["conditions"][1];
        assert_eq!(
            (&condition["type"], &condition["status"], &condition["reason"], &condition["message"]),
            (&json!("Failed"), &json!("True"), &json!("SignerValidationFailure"), &json!(why))
        );
        let removed = json!({"status": {"conditions": [condition_of(&failed, "Approved")]}});
        admin.merge(&format!("{REQUESTS}/{name}/status"), &removed).await.expect(422);
    }
    assert_eq!(signer.0.lock().unwrap().len(), 0);
}

/// Fails for these reasons, from the last to the first, and then signs.
struct Failing(Mutex<Vec<CertificateSignerError>>);

impl CertificateSigner for Failing {
    fn sign(&self, _: &CertificateOrder) -> Result<String, CertificateSignerError> {
        self.0.lock().unwrap().pop().map_or_else(|| Ok(certificate()), Err)
    }
}

#[tokio::test]
async fn a_failure_of_the_signer_is_recorded_unless_it_may_pass() {
    let asked = |failure| async move {
        let signer = Failing(Mutex::new(vec![failure]));
        let (admin, _) = signing_by(Arc::new(signer), Options::default()).await;
        admin.post(REQUESTS, &request("a", CLIENTS)).await.expect(201);
        decide(&admin, "a", "Approved").await.expect(200);
        after_upkeep(&admin, "a").await["status"].clone()
    };
    let failed = asked(CertificateSignerError::Request("a name is not ASCII".into())).await;
    assert!(failed.get("certificate").is_none(), "{failed}");
    let condition = &failed["conditions"][1];
    assert_eq!(condition["type"], "Failed");
    assert_eq!(condition["message"], "cannot sign a certificate for this request: a name is not ASCII");
    let signed = asked(CertificateSignerError::Unavailable("the authority has expired".into())).await;
    assert!(signed["certificate"].is_string() && signed["conditions"].get(1).is_none(), "{signed}");
}

fn condition_of(request: &Value, kind: &str) -> Value {
    let conditions = request["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|c| c["type"] == kind).unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn old_requests_are_removed() {
    let (admin, _, now) = signing().await;
    for (name, signer) in [("issued", CLIENTS), ("denied", OTHERS), ("pending", OTHERS), ("approved", OTHERS)]
    {
        admin.post(REQUESTS, &request(name, signer)).await.expect(201);
    }
    decide(&admin, "issued", "Approved").await.expect(200);
    decide(&admin, "denied", "Denied").await.expect(200);
    decide(&admin, "approved", "Approved").await.expect(200);
    after_upkeep(&admin, "issued").await;
    let left = async |seconds: i64, expected: &[&str]| {
        *now.lock().unwrap() = 1_000_000_000 + seconds;
        // Longer than the interval of cleaning, in the time of the test.
        tokio::time::sleep(std::time::Duration::from_secs(301)).await;
        let mut names = Vec::new();
        for _ in 0..10_000 {
            let list = admin.get(REQUESTS).await.json();
            let items = list["items"].as_array().unwrap().iter();
            names = items.map(|i| i["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
            if names == expected {
                return;
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(names, expected, "after {seconds} s");
    };
    left(3600, &["approved", "denied", "issued", "pending"]).await;
    left(3601, &["approved", "pending"]).await;
    left(86_400, &["approved", "pending"]).await;
    left(86_401, &[]).await;
}

/// Reviews of deletions wait until the test lets them go.
struct Gate {
    /// One for each review that has begun.
    begun: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

#[async_trait]
impl Admission for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn wants(&self, phase: Phase, operation: Operation, _: &Endpoint<'_>) -> bool {
        phase == Phase::Validate && operation == Operation::Delete
    }

    async fn review(&self, _: &Review<'_>) -> Verdict {
        self.begun.add_permits(1);
        let _open = self.open.acquire().await;
        Verdict::allow()
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_signed_while_old_ones_are_removed() {
    let (begun, open) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let gate = Gate { begun: begun.clone(), open: open.clone() };
    let options = Options { admission: vec![Box::new(gate)], ..Options::default() };
    let (admin, now) = signing_by(Arc::new(Recorder::default()), options).await;
    admin.post(REQUESTS, &request("old", OTHERS)).await.expect(201);
    *now.lock().unwrap() += 86_401;
    begun.acquire().await.unwrap().forget();
    admin.post(REQUESTS, &request("new", CLIENTS)).await.expect(201);
    decide(&admin, "new", "Approved").await.expect(200);
    let until = async |wanted: &dyn Fn(&[Value]) -> bool| {
        let mut items = Vec::new();
        for _ in 0..10_000 {
            items = admin.get(REQUESTS).await.json()["items"].as_array().unwrap().clone();
            if wanted(&items) {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{items:?}");
    };
    until(&|items| items[0]["status"]["certificate"].is_string() && items.len() == 2).await;
    open.add_permits(1);
    until(&|items| items.len() == 1).await;
}
