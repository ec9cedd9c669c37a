//! Inline functions, behind the router of functions.

use crate::document::{Io, decode, encode};
use crate::host::WantedImage;
use crate::local::Programs;
use crate::settings::RunSettings;
use crate::{remote, webhook};
use std::sync::Arc;
use tonic::{Code, Status};
use transom_function::{RunFunctionRequest, RunFunctionResponse, async_trait};
use transom_object::error_chain::chain;
use transom_runner::{InlineCall, InlineRunner};
use transom_xapi::InlineFunction;
use transom_xapi::inline::{ContainerFunction, WebhookFunction};

/// Runs inline functions.
pub struct InlineFunctions {
    programs: Arc<Programs>,
}

impl InlineFunctions {
    /// Runs programs of images with these.
    pub fn new(programs: Arc<Programs>) -> Self {
        Self { programs }
    }

    /// What a function writes for an input.
    async fn output(&self, function: &InlineFunction, input: Vec<u8>) -> Result<Vec<u8>, String> {
        if function.is_webhook() {
            let webhook = function.webhook.as_ref().ok_or("type Webhook needs the field webhook")?;
            return self.post(webhook, input).await;
        }
        let container = function.container.as_ref().ok_or("it needs the field container")?;
        self.run(container, function.is_chroot(), input).await
    }

    async fn run(
        &self,
        function: &ContainerFunction,
        is_chroot: bool,
        input: Vec<u8>,
    ) -> Result<Vec<u8>, String> {
        let settings = RunSettings::of(function).map_err(|error| error.to_string())?;
        let secrets: Vec<String> =
            function.image_pull_secrets.iter().map(|secret| secret.name.clone()).collect();
        let host = self.programs.host();
        let credentials = host.credentials(&function.image, &secrets).await;
        let credentials = credentials.map_err(|error| chain(&error))?;
        let (reference, policy) = (function.image.clone(), settings.policy);
        let image = WantedImage { reference, policy, credentials };
        match function.other_runner() {
            Some(endpoint) => remote::run(endpoint, &image, &settings, input).await,
            None => {
                let output = self.programs.run(&image, &settings, is_chroot, input).await;
                output.map_err(|error| chain(&error))
            }
        }
    }

    async fn post(&self, function: &WebhookFunction, input: Vec<u8>) -> Result<Vec<u8>, String> {
        let secret = match &function.tls_secret_ref {
            Some(secret) => {
                let read = self.programs.host().secret(&secret.name).await;
                read.map_err(|error| chain(&error))?
            }
            None => Default::default(),
        };
        webhook::post(function, &secret, input).await
    }
}

#[async_trait]
impl InlineRunner for InlineFunctions {
    async fn call(
        &self,
        call: InlineCall<'_>,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, Status> {
        let io = Io::of(call.function);
        let input = encode(io, &request).into_bytes();
        let output = self.output(call.function, input).await;
        let response = output.and_then(|output| decode(io, &request, &output).map_err(|error| chain(&error)));
        response.map_err(|problem| Status::new(Code::Internal, problem))
    }
}
