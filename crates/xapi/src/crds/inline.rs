//! Inline functions: `spec.functions` of a Composition, and `inline` of a step.

use super::schema::{anything, choice, list, list_by, name_reference, object, ruled, text, with};
use crate::inline::{
    DEFAULT_CPU, DEFAULT_MEMORY, DEFAULT_TIMEOUT, IO_FUNCTION_IO, IO_RESOURCE_LIST, TYPE_CHROOT,
    TYPE_CONTAINER, TYPE_WEBHOOK,
};
use serde_json::{Value, json};

/// A timeout in the format of Go. Some texts that match are not valid, such as too long ones: the call of the function
/// then reports the error.
const DURATION: &str = "^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$";

/// `spec.functions`.
pub(super) fn functions(limited: bool) -> Value {
    let config = with(
        anything("The configuration of the function: an object with apiVersion and kind."),
        json!({"x-kubernetes-embedded-resource": true}),
    );
    let mut fields = fields();
    fields["name"] = text("Name of the function; no two functions of a Composition have the same.");
    fields["config"] = config;
    let entry = object("A function that is run after the resources.", &["name", "type"], fields);
    let functions = list_by(
        "name",
        list(
            "Functions that are run after the resources, in this order, in Resources mode. Every template of the resources then \
             needs a name.",
            ruled(entry, RULES),
        ),
    );
    if limited { with(functions, json!({"maxItems": 99})) } else { functions }
}

/// `inline` of a step.
pub(super) fn function() -> Value {
    let inline = object(
        "Instead of functionRef: a function that needs no Function object. The step's input is its configuration.",
        &["type"],
        fields(),
    );
    ruled(inline, RULES)
}

const RULES: &[(&str, &str)] = &[
    ("self.type == 'Webhook' || has(self.container)", "types Container and Chroot need the field container"),
    ("self.type != 'Webhook' || has(self.webhook)", "type Webhook needs the field webhook"),
];

fn fields() -> Value {
    let kind = choice(
        "Container runs the program of an image in a container for every call, Chroot in namespaces without an OCI \
         runtime and without cgroup limits. Webhook sends the document to a web server.",
        &[TYPE_CONTAINER, TYPE_WEBHOOK, TYPE_CHROOT],
    );
    let io = choice(
        "The document that the function reads and writes: FunctionIO (the default), or ResourceList.",
        &[IO_FUNCTION_IO, IO_RESOURCE_LIST],
    );
    json!({
        "type": with(kind, json!({"default": TYPE_CONTAINER})),
        "io": with(io, json!({"default": IO_FUNCTION_IO})),
        "container": container(),
        "webhook": webhook(),
    })
}

fn timeout() -> Value {
    let schema = text("How long one call may take.");
    with(schema, json!({"default": DEFAULT_TIMEOUT, "maxLength": 32, "pattern": DURATION}))
}

fn container() -> Value {
    let policy = choice(
        "When the image is pulled: Always, Never, or IfNotPresent (the default), which sends no request to a registry if the image is cached.",
        &["IfNotPresent", "Always", "Never"],
    );
    let network = choice(
        "Isolated (the default): only the loopback interface. Runner: the network of the process that runs the container.",
        &["Isolated", "Runner"],
    );
    let quantity = |description: &str, default: &str| {
        let schema = json!({
            "description": description,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": true,
        });
        with(schema, json!({"default": default}))
    };
    let limits = object(
        "Limits of the function.",
        &[],
        json!({
            "cpu": quantity("Processors, as a quantity such as 100m.", DEFAULT_CPU),
            "memory": quantity("Memory, as a quantity such as 128Mi.", DEFAULT_MEMORY),
        }),
    );
    let secrets = "Secrets in the namespace of the control plane that the image is pulled with.";
    object(
        "The program of an image.",
        &["image"],
        json!({
            "image": with(text("The image."), json!({"minLength": 1})),
            "imagePullPolicy": with(policy, json!({"default": "IfNotPresent"})),
            "imagePullSecrets": list(secrets, name_reference("A Secret.", "Secret")),
            "timeout": timeout(),
            "network": object("Network access of the program.", &[], json!({"policy": network})),
            "resources": object("Resources of the program.", &[], json!({"limits": limits})),
            "runner": object(
                "The runner of the image; by default the control plane.",
                &[],
                json!({
                    "endpoint": text(
                        "Address of a runner such as transom xfn start: HOST:PORT, unix:PATH or unix-abstract:NAME. \
                         unix-abstract:crossplane/fn/default.sock, Crossplane's default, means the control plane.",
                    ),
                }),
            ),
        }),
    )
}

fn webhook() -> Value {
    object(
        "A web server that receives the document in a POST request and responds with one.",
        &["url"],
        json!({
            "url": with(text("The address, http:// or https://."), json!({"pattern": "^https?://.+"})),
            "timeout": timeout(),
            "caBundle": with(
                text("Authorities that the server's certificate is verified with: PEM in Base64. Without it, those of the system."),
                json!({"format": "byte"}),
            ),
            "tlsSecretRef": name_reference(
                "The client's certificate: a Secret in the namespace of the control plane with tls.crt, tls.key and, for the \
                 server's authorities, ca.crt.",
                "Secret",
            ),
        }),
    )
}
