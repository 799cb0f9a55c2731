package io.kvcache.server;

/// What became of a server's requests and values when it went down.
///
/// @param requestsCompleted whether all requests that had begun were answered
/// @param valuesFlushed whether all values are on disk; true when there is no disk
/// @param unsavedBytes of values that are not
public record ShutdownResult(boolean requestsCompleted, boolean valuesFlushed, long unsavedBytes) {}
