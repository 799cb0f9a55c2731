package io.kvcache.engines.chat;

/// A request that cannot be answered, and why.
final class BadRequest extends Exception {

    private static final long serialVersionUID = 1;

    private final String field;

    /// @param field the request's field that is wrong; empty for the request itself
    BadRequest(String field, String message) {
        super(message);
        this.field = field;
    }

    String field() {
        return field;
    }
}
