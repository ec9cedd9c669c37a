//! A pseudo-terminal: programs write other things to a terminal than to a file.

use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

/// What moves to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// A terminal for the output of one program.
pub struct Terminal {
    /// The side of the person who looks at it.
    outside: File,
    /// The side of the program.
    inside: OwnedFd,
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

impl Terminal {
    /// A terminal that nothing is written to yet. It controls no process.
    pub fn new() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let outside = openpt(flags).expect("a pseudo-terminal");
        grantpt(&outside).expect("the terminal can be used");
        unlockpt(&outside).expect("the terminal can be opened");
        let inside = ioctl_tiocgptpeer(&outside, flags).expect("the side of the program");
        Self { outside: outside.into(), inside }
    }

    /// Types a line, for a program whose input is this terminal. It is shown.
    pub fn type_line(&mut self, line: &str) {
        writeln!(self.outside, "{line}").expect("the terminal is open");
    }

    /// The terminal as an output of a program, or as its input.
    pub fn output(&self) -> Stdio {
        self.inside.try_clone().expect("the side of the program").into()
    }

    /// Waits for a program whose outputs are here. Returns its exit code, and all that was written. The command that
    /// started it must be gone: it holds the terminal open.
    pub fn read(mut self, mut program: Child) -> (Option<i32>, String) {
        drop(self.inside);
        let (mut written, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            match self.outside.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => written.extend_from_slice(&piece[..length]),
                // What Linux says when no program has the terminal open any more.
                Err(e) if e.raw_os_error() == Some(Errno::IO.raw_os_error()) => break,
                Err(e) => panic!("cannot read the terminal: {e}"),
            }
        }
        let ended = program.wait().expect("the program ends");
        (ended.code(), String::from_utf8(written).expect("text"))
    }
}

/// The lines that are left on the screen of a terminal, without those that were cleared.
pub fn screen(written: &str) -> Vec<String> {
    let left = |line: &str| line.rsplit(CLEAR).next().unwrap_or_default().to_owned();
    let mut lines: Vec<String> = written.split("\r\n").map(left).collect();
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_program_writes_to_a_terminal() {
        let terminal = Terminal::new();
        let script = r"test -t 1 && printf 'half\r\033[Kwhole\nmore\n'; exit 3";
        let program = Command::new("sh").args(["-c", script]).stdout(terminal.output()).spawn().unwrap();
        let (code, written) = terminal.read(program);
        assert_eq!((code, written.as_str()), (Some(3), "half\r\x1b[Kwhole\r\nmore\r\n"));
        assert_eq!(screen(&written), ["whole", "more"]);

        let mut terminal = Terminal::new();
        terminal.type_line("yes");
        let mut command = Command::new("sh");
        command.args(["-c", "read line; echo $line"]).stdin(terminal.output()).stdout(terminal.output());
        let program = command.spawn().unwrap();
        drop(command);
        assert_eq!(screen(&terminal.read(program).1), ["yes", "yes"]);
    }
}
