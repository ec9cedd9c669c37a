//! Crossplane's protocol of runners, `apiextensions.fn.proto.v1alpha1`: its messages, written by hand because they are few.

/// The method that runs a function.
pub(crate) const PATH: &str =
    "/apiextensions.fn.proto.v1alpha1.ContainerizedFunctionRunnerService/RunFunction";
pub(crate) const SERVICE: &str = "apiextensions.fn.proto.v1alpha1.ContainerizedFunctionRunnerService";

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RunFunctionRequest {
    #[prost(string, tag = "1")]
    pub(crate) image: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) input: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    pub(crate) image_pull_config: Option<ImagePullConfig>,
    #[prost(message, optional, tag = "4")]
    pub(crate) run_function_config: Option<RunFunctionConfig>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ImagePullConfig {
    #[prost(enumeration = "ImagePullPolicy", tag = "1")]
    pub(crate) pull_policy: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) auth: Option<ImagePullAuth>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ImagePullPolicy {
    Unspecified = 0,
    IfNotPresent = 1,
    Always = 2,
    Never = 3,
}

#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct ImagePullAuth {
    #[prost(string, tag = "1")]
    pub(crate) username: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
    #[prost(string, tag = "3")]
    pub(crate) auth: String,
    #[prost(string, tag = "4")]
    pub(crate) identity_token: String,
    #[prost(string, tag = "5")]
    pub(crate) registry_token: String,
}

/// Credentials never reach a log.
impl std::fmt::Debug for ImagePullAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ImagePullAuth { .. }")
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RunFunctionConfig {
    #[prost(message, optional, tag = "1")]
    pub(crate) resources: Option<ResourceConfig>,
    #[prost(message, optional, tag = "2")]
    pub(crate) network: Option<NetworkConfig>,
    #[prost(message, optional, tag = "3")]
    pub(crate) timeout: Option<prost_types::Duration>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResourceConfig {
    #[prost(message, optional, tag = "1")]
    pub(crate) limits: Option<ResourceLimits>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResourceLimits {
    #[prost(string, tag = "1")]
    pub(crate) memory: String,
    #[prost(string, tag = "2")]
    pub(crate) cpu: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NetworkConfig {
    #[prost(enumeration = "NetworkPolicy", tag = "1")]
    pub(crate) policy: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum NetworkPolicy {
    Unspecified = 0,
    Isolated = 1,
    Runner = 2,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RunFunctionResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) output: Vec<u8>,
}
