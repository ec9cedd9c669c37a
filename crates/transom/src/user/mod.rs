//! `transom user`: lets people in, with restricted kubeconfigs, and ends their access again.
//!
//! | module | purpose |
//! |---|---|
//! | `objects` | what a user is on the control plane: a service account, roles and bindings; pure |
//! | `kubeconfig` | the file that a user is given; pure |
//!
//! A user is a service account with a token of its own, so that deleting the account ends access at once: the server looks
//! for it on every request. It works the same on a Kubernetes cluster.

mod kubeconfig;
mod objects;

use clap::{Args, Subcommand};
use objects::{Grants, USER_LABEL};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;
use transom_console::control_plane::{ControlPlaneArgs, connect, explain, within};
use transom_console::{Failure, Format, block_on, duration, print, table};
use transom_engine::{Cluster, DeleteOptions};
use transom_object::{GroupVersionKind, meta};

const MANAGER: &str = "transom-user";

/// Give people restricted access to a control plane, and end it.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  transom user add jane --namespace team-a --role edit > jane.kubeconfig
  transom user add ci --namespace team-a --resource databases.example.org > ci.kubeconfig
  transom user list
  transom user revoke jane")]
pub(crate) enum User {
    Add(Add),
    List(List),
    Revoke(Revoke),
}

/// Print a kubeconfig for a new user, who may do what is given here and nothing else
///
/// A user without --role and --resource can only read which kinds there are. Adding a user again gives what is named in
/// addition, and another kubeconfig.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom user add jane --namespace team-a --role edit > jane.kubeconfig
  transom user add ops --role crossplane-view --expires 720h     in all namespaces, for a month
  transom user add ci --namespace team-a --resource databases.example.org --verb get,list,create")]
pub(crate) struct Add {
    /// The name of the user
    name: String,

    /// The namespace to which access is restricted; without it, roles count in all namespaces
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// A ClusterRole, such as view, edit, admin, crossplane-view or crossplane-edit; can be repeated
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,

    /// A resource that may be read and written, such as databases.example.org; can be repeated
    #[arg(long = "resource", value_name = "PLURAL.GROUP")]
    resources: Vec<String>,

    /// What may be done with the resources
    #[arg(
        long,
        value_name = "VERB",
        value_delimiter = ',',
        requires = "resources",
        default_value = "get,list,watch,create,update,patch,delete"
    )]
    verb: Vec<String>,

    /// How long the kubeconfig is valid
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "8760h")]
    expires: Duration,

    #[command(flatten)]
    control_plane: ControlPlaneArgs,
}

/// List the users that were added, with what they may do
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom user list
  transom user list -o json")]
pub(crate) struct List {
    /// How the result is printed
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    output: Format,

    #[command(flatten)]
    control_plane: ControlPlaneArgs,
}

/// End the access of a user: all its kubeconfigs stop working at once
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom user revoke jane")]
pub(crate) struct Revoke {
    /// The name of the user
    name: String,

    #[command(flatten)]
    control_plane: ControlPlaneArgs,
}

pub(crate) fn run(command: User) -> Result<ExitCode, Failure> {
    block_on(async {
        match command {
            User::Add(options) => Box::pin(add(&options)).await,
            User::List(options) => Box::pin(list(&options)).await,
            User::Revoke(options) => Box::pin(revoke(&options)).await,
        }
    })
}

async fn add(options: &Add) -> Result<ExitCode, Failure> {
    let grants = Grants {
        user: &options.name,
        namespace: options.namespace.as_deref(),
        roles: &options.roles,
        resources: &options.resources,
        verbs: &options.verb,
    };
    grants.check()?;
    let config = options.control_plane.config().await?;
    let server = kubeconfig::Server::of(&config);
    let client = connect(&config)?;
    let cluster = Cluster::new(client.clone());
    for role in &options.roles {
        let found = within(role, cluster.get(&objects::rbac("ClusterRole"), "", role)).await?;
        if found.map_err(|e| explain(role, &e))?.is_none() {
            return Err(Failure::new(format!("there is no ClusterRole {role:?}"))
                .remedy("`kubectl get clusterroles` lists them; --resource gives access to single kinds"));
        }
    }
    if let Some(namespace) = &options.namespace {
        let gvk = GroupVersionKind::new("", "v1", "Namespace");
        let found = within(namespace, cluster.get(&gvk, "", namespace)).await?;
        if found.map_err(|e| explain(namespace, &e))?.is_none() {
            return Err(Failure::new(format!("there is no namespace {namespace:?}"))
                .remedy(format!("`kubectl create namespace {namespace}` makes it")));
        }
    }
    for object in grants.objects() {
        let subject = format!("{} {:?}", object["kind"].as_str().unwrap_or_default(), meta::name(&object));
        within(&subject, cluster.apply(&object, MANAGER)).await?.map_err(|e| explain(&subject, &e))?;
    }
    let token = token(&client, &options.name, options.expires).await?;
    let file = kubeconfig::write(&server, &options.name, options.namespace.as_deref(), &token);
    print(file.as_bytes())
}

/// A token of the user's service account.
async fn token(client: &kube::Client, user: &str, expires: Duration) -> Result<String, Failure> {
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/{user}/token", objects::NAMESPACE);
    let body = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": expires.as_secs()},
    });
    let cannot = |e: &dyn std::fmt::Display| Failure::new(format!("cannot get a token for {user:?}: {e}"));
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(body.to_string().into_bytes()).map_err(|e| cannot(&e))?;
    let reply: Value = client.request(request).await.map_err(|e| cannot(&e))?;
    let token = reply["status"]["token"].as_str().map(str::to_owned);
    token.ok_or_else(|| cannot(&"the answer has no token"))
}

fn labels(user: Option<&str>) -> BTreeMap<String, String> {
    let managed = ("app.kubernetes.io/managed-by".to_owned(), MANAGER.to_owned());
    [managed].into_iter().chain(user.map(|user| (USER_LABEL.to_owned(), user.to_owned()))).collect()
}

/// Everything that belongs to users, or to one: kind by kind.
async fn existing(cluster: &Cluster, user: Option<&str>) -> Result<Vec<Value>, Failure> {
    let mut all = Vec::new();
    let account = GroupVersionKind::new("", "v1", "ServiceAccount");
    let kinds = ["RoleBinding", "ClusterRoleBinding", "Role", "ClusterRole"].map(objects::rbac);
    for gvk in [account].into_iter().chain(kinds) {
        let found = within(&gvk.kind, cluster.list(&gvk, "", &labels(user))).await?;
        for mut object in found.map_err(|e| explain(&gvk.kind, &e))? {
            object["apiVersion"] = gvk.api_version().into();
            object["kind"] = gvk.kind.clone().into();
            all.push(object);
        }
    }
    Ok(all)
}

async fn list(options: &List) -> Result<ExitCode, Failure> {
    let cluster = options.control_plane.open().await?;
    let users = objects::summary(&existing(&cluster, None).await?);
    let text = |users: &Value| {
        let mut rows = vec![["NAME", "ACCESS", "SINCE"].map(str::to_owned).to_vec()];
        for user in users.as_array().into_iter().flatten() {
            let access: Vec<&str> =
                user["access"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let cell = |key: &str| user[key].as_str().unwrap_or_default().to_owned();
            let access = if access.is_empty() { "nothing".to_owned() } else { access.join(", ") };
            rows.push(vec![cell("name"), access, cell("since")]);
        }
        table(&rows).iter().fold(String::new(), |out, row| out + row + "\n")
    };
    print(options.output.write(&users, text).as_bytes())
}

async fn revoke(options: &Revoke) -> Result<ExitCode, Failure> {
    let cluster = options.control_plane.open().await?;
    let name = &options.name;
    let objects = existing(&cluster, Some(name)).await?;
    if objects.is_empty() {
        return Err(Failure::new(format!("there is no user {name:?}"))
            .remedy("`transom user list` lists the users that `transom user add` created"));
    }
    // The service account is first: without it no token of the user is valid, whatever happens to the rest.
    for object in &objects {
        let Some(gvk) = meta::gvk(object) else { continue };
        let subject = format!("{} {:?}", gvk.kind, meta::name(object));
        let deleting =
            cluster.delete(&gvk, meta::namespace(object), meta::name(object), DeleteOptions::default());
        within(&subject, deleting).await?.map_err(|e| explain(&subject, &e))?;
    }
    anstream::eprintln!("{name} has no access any more");
    Ok(ExitCode::SUCCESS)
}
