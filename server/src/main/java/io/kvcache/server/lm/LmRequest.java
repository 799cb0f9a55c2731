package io.kvcache.server.lm;

import io.kvcache.server.keyspace.TensorMetadata;

/// A request's header.
///
/// @param command 1 to 5, or wrong
/// @param length of the body that follows a PUT
/// @param key without padding; may be empty
@SuppressWarnings("ArrayRecordComponent") // read once and thrown away, never compared
record LmRequest(int command, int length, TensorMetadata note, byte[] key) {

    static final int PUT = 1;
    static final int GET = 2;
    static final int EXIST = 3;
    static final int LIST = 4;
    static final int HEALTH = 5;

    /// What the request is counted as.
    String label() {
        return switch (command) {
            case PUT -> "put";
            case GET -> "get";
            case EXIST -> "exist";
            case LIST -> "list";
            case HEALTH -> "health";
            default -> "unknown";
        };
    }
}
