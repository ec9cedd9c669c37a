//! The socket between this process and the second process of a container. Over it come connections that were made inside of
//! the container's network namespace, so that none of their bytes pass through a third process.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, Shutdown,
};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixDatagram};
use tokio::sync::oneshot;

/// The longest message, in bytes.
const MESSAGE_BYTES_MAX: usize = 8 << 10;
/// How long a connection may take to be made. It does not leave the machine.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// What this process asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// A connection to the container's port. Each is followed by one [`Report::Connecting`] or
    /// [`Report::CannotConnect`], in order.
    Connect,
    /// The container is to end.
    Terminate,
    /// With this message comes the standard input of a container that runs once. It is the first message.
    Input,
}

/// What the container's process reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// With this message comes a socket that is connected or about to be.
    Connecting,
    /// There is no socket.
    CannotConnect(String),
    /// The container's program ended with this code.
    Exited(i32),
    /// The container's program was ended by this signal.
    Signalled(i32),
    /// The container cannot be started.
    Failed(String),
    /// The container's directory for temporary files is full.
    Full,
}

/// Sends a message, with a descriptor if there is one.
pub(crate) fn send<M: Serialize>(
    socket: impl AsFd,
    message: &M,
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message, with a descriptor if there is one; nothing when the other side is gone.
pub(crate) fn receive<M: for<'de> Deserialize<'de>>(
    socket: impl AsFd,
) -> io::Result<Option<(M, Option<OwnedFd>)>> {
    let mut bytes = [0; MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut bytes)];
    let received = rustix::net::recvmsg(socket, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut descriptor = None;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            descriptor = descriptors.last().or(descriptor);
        }
    }
    let message = bytes.get(..received.bytes).unwrap_or_default();
    Ok(Some((serde_json::from_slice(message)?, descriptor)))
}

type Waiting = VecDeque<oneshot::Sender<Result<OwnedFd, String>>>;

/// This process' side of the socket.
pub(crate) struct Control {
    /// A socket of packets: tokio's type for datagrams waits for it as well.
    socket: UnixDatagram,
    /// Who asked for a connection, in the order of the requests.
    waiting: Mutex<Waiting>,
}

impl Control {
    /// The socket must not block.
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        let socket = UnixDatagram::from_std(socket.into())?;
        Ok(Self { socket, waiting: Mutex::default() })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection to the container's port.
    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let too_late = || io::Error::new(io::ErrorKind::TimedOut, "the container does not respond");
        tokio::time::timeout(CONNECT_WITHIN, self.try_connect()).await.map_err(|_| too_late())?
    }

    async fn try_connect(&self) -> io::Result<TcpStream> {
        let gone = || io::Error::new(io::ErrorKind::NotConnected, "the container has ended");
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = self.waiting();
            send(&self.socket, &Request::Connect, None)?;
            waiting.push_back(sender);
        }
        let socket = receiver.await.map_err(|_| gone())?.map_err(io::Error::other)?;
        let stream = std::net::TcpStream::from(socket);
        stream.set_nonblocking(true)?;
        let stream = TcpStream::from_std(stream)?;
        stream.writable().await?;
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Requests the end of the container, unless it has ended.
    pub(crate) fn terminate(&self) {
        if let Err(error) = send(&self.socket, &Request::Terminate, None) {
            tracing::debug!(%error, "the request to end cannot be sent to a container");
        }
    }

    /// Ends the container at once: its process sees that the other side is gone.
    pub(crate) fn kill(&self) {
        if let Err(error) = rustix::net::shutdown(&self.socket, Shutdown::Both) {
            tracing::debug!(%error, "a container has ended already");
        }
    }

    /// Hands out connections until the container has ended, and returns the last that was reported.
    pub(crate) async fn run(&self) -> Option<Report> {
        self.run_noticing(|| ()).await
    }

    /// As [`run`](Self::run); `full` is called when the container's directory for temporary files is full.
    pub(crate) async fn run_noticing(&self, full: impl Fn()) -> Option<Report> {
        let mut last = None;
        loop {
            match self.next().await {
                Ok(Some((Report::Connecting, Some(socket)))) => self.answer(Ok(socket)),
                Ok(Some((Report::Connecting, None))) => self.answer(Err("no socket was passed".to_owned())),
                Ok(Some((Report::CannotConnect(problem), _))) => self.answer(Err(problem)),
                Ok(Some((Report::Full, _))) => full(),
                Ok(Some((report, _))) => last = Some(report),
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%error, "the control socket of a container failed");
                    break;
                }
            }
        }
        // No request is answered any more.
        self.waiting().clear();
        last
    }

    fn answer(&self, result: Result<OwnedFd, String>) {
        if let Some(sender) = self.waiting().pop_front() {
            // Who asked may have given up.
            let _ = sender.send(result);
        }
    }

    async fn next(&self) -> io::Result<Option<(Report, Option<OwnedFd>)>> {
        loop {
            self.socket.readable().await?;
            match self.socket.try_io(Interest::READABLE, || receive(&self.socket)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[tokio::test]
    async fn connections_come_over_the_socket_in_order() {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let control = std::sync::Arc::new(Control::new(ours).unwrap());
        let running = tokio::spawn({
            let control = control.clone();
            async move { control.run().await }
        });
        let theirs = UnixDatagram::from_std(theirs.into()).unwrap();
        let answering = async {
            let mut requests = 0;
            while requests < 2 {
                theirs.readable().await.unwrap();
                let received = theirs.try_io(Interest::READABLE, || receive::<Request>(&theirs));
                let Ok(received) = received else { continue };
                assert_eq!(received.unwrap().0, Request::Connect);
                if requests == 0 {
                    let connection = std::net::TcpStream::connect(address).unwrap();
                    send(&theirs, &Report::Connecting, Some(connection.as_fd())).unwrap();
                } else {
                    send(&theirs, &Report::CannotConnect("no".into()), None).unwrap();
                }
                requests += 1;
            }
            send(&theirs, &Report::Exited(3), None).unwrap();
        };
        let asking = async {
            let stream = control.connect().await.unwrap();
            assert_eq!(stream.peer_addr().unwrap(), address);
            assert_eq!(control.connect().await.unwrap_err().to_string(), "no");
        };
        tokio::join!(answering, asking);
        drop(theirs);
        assert_eq!(running.await.unwrap(), Some(Report::Exited(3)));
        assert!(control.connect().await.is_err(), "the other side is gone");
    }
}
