package io.kvcache.transport.wire;

import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Type of a frame. A reply has the type of its request and [FrameHeader#REPLY] set.
public enum MessageType {
    /// Why the connection is about to be closed; the last frame on it.
    ERROR(0),
    HELLO(1),
    AUTH(2),
    PING(3),
    RENEW(4),
    SHARE(5),
    FABRIC(6),
    STAGE(7),

    REGISTER(8),
    DROP_NAMESPACE(9),
    REGION(12),
    DROP_REGION(13),
    VIEW(14),
    EXECUTE(15),

    CHAIN(16),
    MATCH(17),
    ACQUIRE(18),
    PROGRESS(19),
    READ(20),
    DATA(21),
    RELEASE(22),
    DROP_CHAIN(23),
    HINT(24),
    PLACES(25),
    TOUCH(26),
    COPY(27),
    READ_RANGE(28),

    RESERVE(32),
    FILL(33),
    ABANDON(34),
    PUT(35),
    FILL_STAGED(36),
    PUT_STAGED(37),

    RESERVE_OBJECT(40),
    GET_OBJECT(41),
    CONTAINS_OBJECT(42),
    DROP_OBJECT(43),
    PUT_OBJECT(44),
    PUT_OBJECT_STAGED(45),
    HINT_OBJECTS(46),
    MATCH_OBJECTS(47),

    STATS(48),
    EVENTS(49),
    SNAPSHOT(50),
    FLUSH(51),

    LIST_OBJECTS(52),
    DROP_OBJECTS(53);

    private static final Map<Integer, MessageType> BY_CODE =
            Arrays.stream(values()).collect(Collectors.toMap(MessageType::code, Function.identity()));

    private final int code;
    private final String label = name().toLowerCase(Locale.ROOT);

    MessageType(int code) {
        this.code = code;
    }

    /// The name in metrics.
    public String label() {
        return label;
    }

    /// The number on the wire.
    public int code() {
        return code;
    }

    /// The type with this number, or null of one that is not known here.
    public static @Nullable MessageType of(int code) {
        return BY_CODE.get(code);
    }
}
