package io.kvcache.server.resp;

/// What was sent is not the protocol. The connection cannot go on, as nobody knows where the next request begins.
final class RespException extends Exception {

    private static final long serialVersionUID = 1;

    RespException(String message) {
        super(message, null, false, false);
    }
}
