//! The threads of a plane: one runtime serves requests, another one runs the controllers.
//!
//! Composing thousands of resources keeps a processor busy for seconds, and there may be as many composite resources of
//! that size as there are processors. Requests and probes must not wait for that, so they have threads of their own. The
//! requests of the controllers to the server in this process are computed on the controllers' threads.

use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use transom_console::Failure;

const WORKER_STACK: usize = 4 * 1024 * 1024;

pub(crate) struct Runtimes {
    serving: Runtime,
    working: Runtime,
}

impl Runtimes {
    pub(crate) fn start() -> Result<Self, Failure> {
        let failed = |e| Failure::new(format!("cannot start the runtime: {e}"));
        let serving = builder("serving").build().map_err(failed)?;
        let working = builder("controllers").build().map_err(failed)?;
        Ok(Self { serving, working })
    }

    /// Runs until the future ends, then stops the remaining tasks of both. The future gets the controllers' runtime.
    pub(crate) fn run<T, F: Future<Output = T>>(self, main: impl FnOnce(Handle) -> F) -> T {
        let outcome = self.serving.block_on(main(self.working.handle().clone()));
        // Clients that keep their watches open must not keep the process alive.
        for runtime in [self.working, self.serving] {
            runtime.shutdown_timeout(Duration::from_millis(200));
        }
        outcome
    }
}

fn builder(name: &str) -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.thread_name(name).thread_stack_size(WORKER_STACK).enable_all();
    builder
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn requests_are_served_while_all_controllers_compute() {
        let answer = Runtimes::start().unwrap().run(|working| async move {
            let (mut release, mut held) = (Vec::new(), Vec::new());
            for _ in 0..working.metrics().num_workers() {
                let (sender, receiver) = mpsc::channel::<()>();
                release.push(sender);
                // Never yields, as a template of ten thousand resources does not for a while.
                held.push(working.spawn(async move { receiver.recv().is_ok() }));
            }
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let accepting = tokio::spawn(async move { listener.accept().await.is_ok() });
            let connected = tokio::net::TcpStream::connect(address).await.is_ok();
            let answer = connected && accepting.await.unwrap();
            assert!(held.iter().all(|task| !task.is_finished()), "they still compute");
            drop(release);
            answer
        });
        assert!(answer);
    }
}
