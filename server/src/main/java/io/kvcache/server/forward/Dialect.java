package io.kvcache.server.forward;

/// The protocols whose requests are passed on, and their numbers in EXECUTE.
public enum Dialect {
    /// Redis' protocol, version 2.
    RESP2(2),
    /// Redis' protocol, version 3.
    RESP3(3),
    /// Redis' protocol, version 2. The slot of a key is that of all its bytes, as clients of Redis Cluster compute it.
    RESP_CLUSTER(4),
    /// `lm://`.
    LM(18),
    /// HTTP/1.1, a request about an object.
    HTTP(32),
    /// The same, a HEAD: its reply says how long the body is that it has not.
    HTTP_HEAD(33);

    private final int code;

    Dialect(int code) {
        this.code = code;
    }

    int code() {
        return code;
    }

    /// @throws IllegalArgumentException for a number that no dialect has
    static Dialect of(int code) {
        for (Dialect each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new IllegalArgumentException("dialect = " + code + "; allowed: 2, 3, 4, 18, 32 and 33");
    }
}
