package io.kvcache.server.net;

/// Is told how long each request took.
///
/// **Threads.** Any.
public interface RequestTimer {

    /// Takes no notice.
    RequestTimer NONE = (_, _, _) -> {};

    /// A request was answered.
    ///
    /// @param verb what it asked for, one of few
    /// @param nanos from its first byte until its reply was handed to the network; so the time that the
    ///     client took to send a value is in it, the time it takes to read one is not
    void recordRequest(ProtocolKind protocol, String verb, long nanos);
}
