//! The wish to stop, seen by everybody.

use tokio::sync::watch;

/// Wishes for the end.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// Sees the wish.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// Both ends. A stopper that is dropped has wished for the end.
pub fn shutdown() -> (Stopper, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Shutdown(receiver))
}

impl Stopper {
    /// Stop.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Waits for the wish.
    pub async fn wanted(&mut self) {
        // An error says that nobody is left to wish: that is the end, too.
        let _ = self.0.wait_for(|wanted| *wanted).await;
    }
    /// True once it was wished.
    pub fn is_wanted(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }
}
