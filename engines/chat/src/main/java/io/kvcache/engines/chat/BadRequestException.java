package io.kvcache.engines.chat;

/// A request that cannot be answered, and why.
final class BadRequestException extends Exception {

    private static final long serialVersionUID = 1;

    private static final int BAD_REQUEST = 400;

    private final int status;
    private final String code;
    private final String field;

    /// @param status of the answer, 400 or 404
    /// @param code for programs, as OpenAI names it where it has a name
    /// @param field the request's field that is wrong; empty for the request itself
    BadRequestException(int status, String code, String field, String message) {
        super(message);
        this.status = status;
        this.code = code;
        this.field = field;
    }

    /// A field whose value is wrong.
    static BadRequestException invalidValue(String field, String message) {
        return new BadRequestException(BAD_REQUEST, "invalid_value", field, message);
    }

    /// A body that is not what it must be.
    static BadRequestException invalidBody(String message) {
        return new BadRequestException(BAD_REQUEST, "invalid_json", "", message);
    }

    int status() {
        return status;
    }

    /// The error as the protocol has it.
    String json() {
        return CompletionResponses.error("invalid_request_error", code, field, String.valueOf(getMessage()));
    }
}
