//! What became of a request that got no answer.

use crate::core::wire::Reply;
use std::error::Error;
use std::io::ErrorKind;

/// Reads a transport's error as a reply: a time-out, or a connection that broke, before or after anything was sent.
/// What is not known to have stayed here counts as sent.
pub fn lost(error: &(dyn Error + 'static)) -> Reply {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(reply) = known(error) {
            return reply;
        }
        // An io::Error hides the error that it wraps from its own chain.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = wrapped.map_or_else(|| error.source(), |inner| Some(inner));
    }
    Reply::Reset { sent: true }
}

/// What is at the bottom of a transport's error, in words.
pub fn cause(error: &(dyn Error + 'static)) -> String {
    let (mut words, mut next) = (String::new(), Some(error));
    while let Some(error) = next {
        words = error.to_string();
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = wrapped.map_or_else(|| error.source(), |inner| Some(inner));
    }
    words
}

fn known(error: &(dyn Error + 'static)) -> Option<Reply> {
    if error.is::<tower::timeout::error::Elapsed>() || error.is::<tokio::time::error::Elapsed>() {
        return Some(Reply::TimedOut);
    }
    if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
        return error.is_connect().then_some(Reply::Reset { sent: false });
    }
    if let Some(kube::Error::Auth(_)) = error.downcast_ref::<kube::Error>() {
        return Some(Reply::Reset { sent: false });
    }
    match error.downcast_ref::<std::io::Error>()?.kind() {
        ErrorKind::TimedOut => Some(Reply::TimedOut),
        ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            Some(Reply::Reset { sent: false })
        }
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            Some(Reply::Reset { sent: true })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(kind: ErrorKind) -> std::io::Error {
        std::io::Error::new(kind, "as if")
    }

    #[test]
    fn only_a_connection_that_was_never_made_has_sent_nothing() {
        assert_eq!(lost(&io(ErrorKind::ConnectionRefused)), Reply::Reset { sent: false });
        for kind in [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe, ErrorKind::UnexpectedEof, ErrorKind::Other] {
            assert_eq!(lost(&io(kind)), Reply::Reset { sent: true }, "{kind:?}");
        }
        assert_eq!(lost(&io(ErrorKind::TimedOut)), Reply::TimedOut);
    }

    #[test]
    fn the_cause_is_looked_for_below() {
        let wrapped = kube::Error::Service(Box::new(std::io::Error::other(io(ErrorKind::TimedOut))));
        assert_eq!(lost(&wrapped), Reply::TimedOut);
    }
}
