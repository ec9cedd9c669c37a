//! Whether the author of a definition may use the service account that the definition names, asked before it is stored.
//!
//! Nothing can find that out later: who wrote an object is not part of it. So the definition is refused when the question cannot be
//! answered.

use serde_json::{Value, json};
use transom_engine::{Cluster, Result};
use transom_object::meta;
use transom_xapi::account::{self, AccountReference};
use transom_xapi::constants::owner;

/// Why a definition must not be written by a user, if there is a reason. The user is described as in a review of admission; the
/// cluster is asked for the rights of the user. `own` are the accounts of the control plane, which no definition may name.
pub async fn borrowed_account(
    cluster: &Cluster,
    own: &[AccountReference],
    user: &Value,
    definition: &Value,
    before: Option<&Value>,
) -> Option<String> {
    let account = account::newly_named(definition, before)?;
    if let Some(why) = account.own_problem(own) {
        return Some(why);
    }
    match may_use(cluster, &account, user).await {
        Ok(true) => None,
        Ok(false) => Some(account.not_allowed(user)),
        Err(e) => Some(format!(
            "spec.serviceAccountRef: cannot find out whether user {:?} may use the service account: {}; try again",
            user["username"].as_str().unwrap_or_default(),
            e.chain()
        )),
    }
}

async fn may_use(cluster: &Cluster, account: &AccountReference, user: &Value) -> Result<bool> {
    let answer = cluster.create(&account.access_review(user), owner::DEFAULT).await?;
    Ok(answer["status"]["allowed"] == true)
}

/// The response to an `AdmissionReview` of a definition.
pub async fn review_account(cluster: &Cluster, own: &[AccountReference], review: &Value) -> Value {
    let request = &review["request"];
    let (object, before) = (&request["object"], request.get("oldObject").filter(|before| before.is_object()));
    let response = match borrowed_account(cluster, own, &request["userInfo"], object, before).await {
        None => json!({"uid": request["uid"], "allowed": true}),
        Some(why) => {
            let message = format!("{} {:?} is forbidden: {why}", meta::kind(object), meta::name(object));
            let status = json!({"metadata": {}, "reason": "Forbidden", "message": message, "code": 403});
            json!({"uid": request["uid"], "allowed": false, "status": status})
        }
    };
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::client::Body;
    use tower::service_fn;

    /// A server that allows `jane` to use accounts and `controllers` to act as them, and fails for `nobody`.
    fn cluster() -> Cluster {
        let service = service_fn(|request: http::Request<Body>| async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect_bytes().await.unwrap();
            let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
            let (user, verb) = (&asked["spec"]["user"], &asked["spec"]["resourceAttributes"]["verb"]);
            let (code, answer) = match (path.as_str(), user.as_str()) {
                (_, Some("nobody")) => (500, json!({"message": "broken"})),
                ("/apis/authorization.k8s.io/v1", _) => (
                    200,
                    json!({"resources": [{"name": "subjectaccessreviews", "kind": "SubjectAccessReview"}]}),
                ),
                _ => {
                    let allowed =
                        user == "jane" && verb == "use" || user == "controllers" && verb == "impersonate";
                    (201, json!({"status": {"allowed": allowed}}))
                }
            };
            let response =
                http::Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, std::convert::Infallible>(response.unwrap())
        });
        Cluster::new(kube::Client::new(service, "default"))
    }

    fn review(user: &str, account: &Value) -> Value {
        let object = json!({
            "kind": "CompositeResourceDefinition", "metadata": {"name": "xs.e"}, "spec": {"serviceAccountRef": account},
        });
        json!({"request": {"uid": "u", "object": object, "oldObject": null, "userInfo": {"username": user}}})
    }

    #[tokio::test]
    async fn an_account_can_be_named_by_users_with_the_right_to_use_it() {
        let account = json!({"name": "composer", "namespace": "shop"});
        let answer = async |user: &str, account: &Value| {
            let own = [AccountReference { namespace: "system".to_owned(), name: "crossplane".to_owned() }];
            review_account(&cluster(), &own, &review(user, account)).await["response"].clone()
        };
        assert_eq!(answer("jane", &account).await, json!({"uid": "u", "allowed": true}));
        assert_eq!(answer("joe", &Value::Null).await["allowed"], true);
        let refused = answer("joe", &account).await;
        assert_eq!((&refused["allowed"], &refused["status"]["code"]), (&json!(false), &json!(403)));
        let message = refused["status"]["message"].as_str().unwrap();
        assert!(message.contains("user \"joe\" may not use service account \"shop/composer\""), "{message}");
        let acting = answer("controllers", &account).await;
        assert_eq!(acting["allowed"], false, "who may act as an account may not lend it");
        let own = answer("jane", &json!({"name": "crossplane", "namespace": "system"})).await;
        let message = own["status"]["message"].as_str().unwrap();
        assert!(message.contains("\"system/crossplane\" is the control plane itself"), "{message}");
        let unknown = answer("nobody", &account).await;
        let message = unknown["status"]["message"].as_str().unwrap();
        assert!(message.contains("cannot find out") && message.contains("broken"), "{message}");
    }
}
