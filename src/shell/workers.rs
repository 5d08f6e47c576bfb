//! N workers draw keys and run one pass each. A panic ends its pass and nothing else (decision R5).

use super::{Shell, Shutdown, reconcile};
use crate::core::control::wake::Key;
use futures::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;

/// Works until the operator shuts down; what is under way then is finished.
pub async fn work(shell: &Shell, mut shutdown: Shutdown) {
    loop {
        let key = tokio::select! {
            biased;
            () = shutdown.wanted() => return,
            key = next(shell) => key,
        };
        run(shell, &key).await;
    }
}

async fn next(shell: &Shell) -> Key {
    if let Some(pace) = &shell.pace {
        pace.next_pass().await;
    }
    shell.state.next().await
}

async fn run(shell: &Shell, key: &Key) {
    let began = shell.clock.since_start();
    shell.metrics.pass_begins();
    // Unwind safe: what a pass shares lies behind locks that forgive poisoning, and its own state dies with it.
    let result = match AssertUnwindSafe(reconcile::pass(shell, key)).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => reconcile::panicked(shell, key, &words(panic.as_ref())),
    };
    shell.metrics.pass_ends(result, shell.clock.since_start().saturating_sub(began));
    shell.metrics.queue(&shell.state.stats(), &shell.state.take_spans());
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}
