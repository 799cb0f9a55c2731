package io.kvcache.server.resp;

/// A command that is answered by an error; the connection goes on.
final class CommandException extends Exception {

    private static final long serialVersionUID = 1;

    static final String SYNTAX = "ERR syntax error";
    static final String NOT_AN_INTEGER = "ERR value is not an integer or out of range";

    /// For commands whose answer a client takes for the truth: only a read may treat a late value as a miss.
    static final String TIMED_OUT = "TRYAGAIN the value is on disk and did not come in time";

    static final String THROTTLED = "TRYAGAIN too much is being sent; the value was not read, and not changed";

    /// Others were quicker, as often as is tried.
    static final String CONTENDED = "TRYAGAIN other clients change this key all the time";

    static final String OUT_OF_MEMORY = "OOM command not allowed when used memory > 'maxmemory'.";

    /// @param reply the error with its code, `ERR …`
    CommandException(String reply) {
        super(reply, null, false, false);
    }

    String reply() {
        String message = getMessage();
        return message == null ? "ERR" : message;
    }
}
