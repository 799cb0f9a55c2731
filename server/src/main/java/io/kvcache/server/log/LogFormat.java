package io.kvcache.server.log;

/// How an event is written: one line in each case.
public enum LogFormat {
    /// `time=… level=… logger=… msg="…"`.
    KEY_VALUE,
    /// An object with the same names.
    JSON
}
