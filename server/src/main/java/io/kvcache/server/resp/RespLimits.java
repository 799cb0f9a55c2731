package io.kvcache.server.resp;

/// What a request may take of the heap; values do not count, as they go straight to their slots,
/// but where they wait for EXEC.
///
/// @param arguments of one request
/// @param argumentBytes of one argument: keys have at most 4 KiB, and only ECHO and PING take more
/// @param requestBytes of all arguments of one request together
/// @param queuedCommands of one transaction
/// @param queuedBytes of one transaction's words and values together
/// @param bulkBytes highest length that is believed; more ends the connection, as with Redis
record RespLimits(
        int arguments, int argumentBytes, int requestBytes, int queuedCommands, long queuedBytes, long bulkBytes) {

    static RespLimits defaults() {
        return new RespLimits(1 << 16, 1 << 16, 4 << 20, 1 << 16, 64L << 20, 512L << 20);
    }
}
