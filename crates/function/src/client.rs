//! Calling a function over gRPC: version 1 first, and version 1beta1 for a function that does not serve it.

use crate::{RunFunctionRequest, RunFunctionResponse};
use bytes::{BufMut, Bytes};
use http::uri::PathAndQuery;
use prost::Message;
use tonic::codec::{Codec, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_prost::ProstDecoder;

/// The default limit for responses, in bytes: 64 MiB.
pub const DEFAULT_MAX_MESSAGE_SIZE: usize = 64 << 20;

const V1: &str = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";
const V1BETA1: &str = "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction";

/// A function behind a channel. Cheap to clone; calls run concurrently.
#[derive(Clone, Debug)]
pub struct FunctionClient {
    channel: Channel,
    max_message_size: usize,
}

impl FunctionClient {
    /// A client over a channel.
    pub fn new(channel: Channel) -> Self {
        Self { channel, max_message_size: DEFAULT_MAX_MESSAGE_SIZE }
    }

    /// The same client with another limit for responses, in bytes.
    #[must_use]
    pub fn with_max_message_size(mut self, bytes: usize) -> Self {
        self.max_message_size = bytes;
        self
    }

    /// Calls the function. The request is encoded once, whichever version is called.
    pub async fn run(&self, request: &RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let encoded = Bytes::from(request.encode_to_vec());
        match self.call(V1, encoded.clone()).await {
            Err(status) if status.code() == Code::Unimplemented => self.call(V1BETA1, encoded).await,
            answer => answer,
        }
    }

    async fn call(&self, path: &'static str, request: Bytes) -> Result<RunFunctionResponse, Status> {
        let mut grpc =
            tonic::client::Grpc::new(self.channel.clone()).max_decoding_message_size(self.max_message_size);
        grpc.ready()
            .await
            .map_err(|e| Status::unavailable(format!("the function cannot be reached: {e}")))?;
        let mut request = tonic::Request::new(request);
        // The function's own spans belong to the one that it is called in.
        if let Some(parent) = transom_telemetry::traceparent().and_then(|parent| parent.parse().ok()) {
            request.metadata_mut().insert("traceparent", parent);
        }
        Ok(grpc.unary(request, PathAndQuery::from_static(path), Encoded).await?.into_inner())
    }
}

/// Sends a request's encoded bytes and reads a response.
struct Encoded;

impl Codec for Encoded {
    type Encode = Bytes;
    type Decode = RunFunctionResponse;
    type Encoder = Self;
    type Decoder = ProstDecoder<RunFunctionResponse>;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstDecoder::default()
    }
}

impl Encoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, request: Bytes, buf: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buf.put(request);
        Ok(())
    }
}
