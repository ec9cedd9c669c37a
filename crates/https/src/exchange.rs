//! One request and its response, over a connection that is used for nothing else.

use bytes::Bytes;
use http::request::Builder;
use http::{Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use std::pin::pin;
use tokio::io::{AsyncRead, AsyncWrite};

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The request was not sent as a whole, or no response began.
    #[error("the request failed")]
    Request(#[from] hyper::Error),
    /// The response ended early, or is too large.
    #[error("the response cannot be read")]
    Response(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A POST request to the path of this address. The header for the host is set.
pub fn post(url: &Uri) -> Builder {
    let authority = url.authority().map(ToString::to_string).unwrap_or_default();
    let path = url.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    Request::post(path).header(header::HOST, authority)
}

/// Sends a request, and returns the response with all of its body, which has at most this many bytes. Cancel it by dropping
/// it: no task is started.
pub async fn exchange<S>(
    stream: S,
    request: Request<Full<Bytes>>,
    response_bytes_max: usize,
) -> Result<Response<Bytes>, ExchangeError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let responded = async {
        let (parts, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, response_bytes_max).collect().await;
        Ok(Response::from_parts(parts, body.map_err(ExchangeError::Response)?.to_bytes()))
    };
    let mut responded = pin!(responded);
    // The connection makes progress only while it is polled. Servers may end it without the closing message of TLS as soon as
    // the response is sent: whether the response is whole, its reader finds out.
    tokio::select! {
        biased;
        result = &mut responded => return result,
        _ = connection => {}
    }
    responded.await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Exchanges a request with a server that responds with this text, and returns what it received.
    async fn with_server(text: &'static str, max: usize) -> (String, Result<Response<Bytes>, ExchangeError>) {
        let (client, mut server) = tokio::io::duplex(1 << 16);
        let request = post(&"https://h.example:8443/a?b=c".parse().unwrap());
        let exchanged = exchange(client, request.body(Full::new("body".into())).unwrap(), max);
        let served = async {
            let mut received = Vec::new();
            while !received.ends_with(b"body") {
                assert_ne!(server.read_buf(&mut received).await.unwrap(), 0);
            }
            server.write_all(text.as_bytes()).await.unwrap();
            drop(server);
            String::from_utf8(received).unwrap()
        };
        let (result, received) = tokio::join!(exchanged, served);
        (received, result)
    }

    #[tokio::test]
    async fn a_response_is_read_although_the_connection_ends() {
        let (received, response) =
            with_server("HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno", 10).await;
        assert!(received.starts_with("POST /a?b=c HTTP/1.1\r\n"), "{received}");
        assert!(received.contains("host: h.example:8443\r\n"), "{received}");
        let response = response.unwrap();
        assert_eq!((response.status().as_u16(), response.body().as_ref()), (404, b"no".as_ref()));
    }

    #[tokio::test]
    async fn a_response_that_is_cut_off_or_too_large_is_an_error() {
        let whole = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlong";
        let (_, too_large) = with_server(whole, 3).await;
        assert!(matches!(too_large, Err(ExchangeError::Response(_))), "{too_large:?}");
        let (_, cut_off) = with_server("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlo", 10).await;
        assert!(matches!(cut_off, Err(ExchangeError::Response(_))), "{cut_off:?}");
        let (_, none) = with_server("", 10).await;
        assert!(matches!(none, Err(ExchangeError::Request(_))), "{none:?}");
    }
}
