//! Spans of time in the few letters that tables have for them.

use crate::sim::store::objects::time;
use jiff::Timestamp;

/// How long ago that was.
pub(super) fn since(at: &str, now: Timestamp) -> String {
    match time(at) {
        Some(at) => span(now.duration_since(at).as_secs()),
        None => "<unknown>".to_owned(),
    }
}

/// A number of seconds, in two units at most, the finer the shorter it is.
fn span(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let two = |big: i64, unit: char, small: i64, of: char| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit}{small}{of}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(days, 'd', hours % 24, 'h'),
        _ if days < 730 => format!("{days}d"),
        _ if days < 2920 => two(years, 'y', days % 365, 'd'),
        _ => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn spans_read_as_those_of_the_server() {
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 60, "3h1m"),
            (8 * 3600 + 60, "8h"),
            (49 * 3600, "2d1h"),
            (9 * 86_400, "9d"),
            (800 * 86_400, "2y70d"),
            (4000 * 86_400, "10y"),
        ];
        for (seconds, words) in cases {
            assert_eq!(span(seconds), words, "{seconds} s");
        }
    }
}
