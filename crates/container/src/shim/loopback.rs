//! Starts the loopback interface of a new network namespace, by a message to the kernel.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::io;

const RTM_NEWLINK: u16 = 16;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const IFF_UP: u32 = 1;
/// The index of the loopback interface in every network namespace.
const LOOPBACK_INDEX: i32 = 1;
/// The length of a header, and of the header with the description of an interface.
const HEADER_BYTES: usize = 16;
const MESSAGE_BYTES: u32 = 32;

pub(super) fn up() -> io::Result<()> {
    let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
    // Without a protocol it is NETLINK_ROUTE, whose number is 0.
    let socket = socket_with(AddressFamily::NETLINK, kind, flags, None)?;
    send(&socket, &request(), SendFlags::empty())?;
    let mut answer = [0; 1024];
    let (_, length) = recv(&socket, &mut answer, RecvFlags::empty())?;
    outcome(answer.get(..length).unwrap_or_default())
}

/// `struct nlmsghdr`, then `struct ifinfomsg`.
fn request() -> Vec<u8> {
    let mut message = Vec::new();
    message.extend(MESSAGE_BYTES.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend((NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    message.extend(1u32.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend([0; 4]);
    message.extend(LOOPBACK_INDEX.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message
}

/// `struct nlmsghdr`, then a number: 0, or the negative number of an error.
fn outcome(answer: &[u8]) -> io::Result<()> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is malformed");
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let code = answer.get(HEADER_BYTES..HEADER_BYTES + 4);
    let code = code.and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, code) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(code)) => Err(io::Error::from_raw_os_error(-code)),
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_answer_is_read() {
        let answer = |code: i32| {
            let mut bytes = vec![36, 0, 0, 0];
            bytes.extend(NLMSG_ERROR.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend(code.to_ne_bytes());
            bytes
        };
        assert_eq!(request().len(), MESSAGE_BYTES as usize);
        assert!(outcome(&answer(0)).is_ok());
        assert_eq!(outcome(&answer(-1)).unwrap_err().raw_os_error(), Some(1));
        assert!(outcome(&[1, 2, 3]).is_err());
    }
}
