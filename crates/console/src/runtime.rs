//! Commands that wait for the network.

use crate::Failure;

/// Runs a command to its end, on a runtime of its own.
pub fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(format!("cannot start the runtime: {e}")))?;
    let result = runtime.block_on(command);
    // A thread that still waits for a name server must not delay the end of the command.
    runtime.shutdown_background();
    result
}
