package io.kvcache.server.resp;

/// A command that is answered by an error; the connection goes on.
final class CommandException extends Exception {

    private static final long serialVersionUID = 1;

    static final String SYNTAX = "ERR syntax error";
    static final String NOT_AN_INTEGER = "ERR value is not an integer or out of range";

    /// For commands whose answer a client takes for the truth: only a read may treat a late value as a miss.
    static final String TIMED_OUT = "TRYAGAIN the value is on disk and did not come in time";

    /// @param reply the error with its code, `ERR …`
    CommandException(String reply) {
        super(reply, null, false, false);
    }

    String reply() {
        String message = getMessage();
        return message == null ? "ERR" : message;
    }
}
