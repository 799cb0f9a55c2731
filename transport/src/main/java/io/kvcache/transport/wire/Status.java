package io.kvcache.transport.wire;

import java.util.Arrays;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/// How a request ended. Of all but [#OK] the reply's body is a text: u16 length, UTF-8.
public enum Status {
    OK(0),
    /// The type of message is not known.
    UNSUPPORTED(1),
    /// The request makes no sense; the text names the value and what is allowed.
    INVALID(2),
    /// The client is not authenticated.
    UNAUTHORIZED(3),
    /// The client has no right to it.
    FORBIDDEN(4),
    /// The lease or reservation is over, or never was.
    GONE(5),
    /// The payload does not have its checksum.
    CORRUPT(6),
    /// Too much is under way already.
    BUSY(7),
    /// The store failed at it.
    FAILED(8);

    private static final Map<Integer, Status> BY_CODE =
            Arrays.stream(values()).collect(Collectors.toMap(Status::code, Function.identity()));

    private final int code;

    Status(int code) {
        this.code = code;
    }

    /// The number on the wire.
    public int code() {
        return code;
    }

    /// The status with this number; one that is not known here is a failure.
    public static Status of(long code) {
        return code < 0 || code > Integer.MAX_VALUE ? FAILED : BY_CODE.getOrDefault((int) code, FAILED);
    }
}
