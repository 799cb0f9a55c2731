package io.kvcache.server.keyspace;

import io.kvcache.core.Hint;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/// Limits of the hints that clients may give for keys, and of requests for a prefix, the same in every protocol.
///
/// Each method throws an `IllegalArgumentException` that names what was said and what may be.
public final class HintLimits {

    /// Keys of one request: those of half a million tokens in chunks of 64.
    public static final int MAX_KEYS = 8192;

    /// Kinds of requests, for messages.
    public static final String KINDS = "chat, agent, batch, other";

    /// Stages of a session, for messages.
    public static final String TURNS = "first, later, last";

    /// A year: what is further away is a mistake.
    private static final long MAX_MILLIS = TimeUnit.DAYS.toMillis(365);

    /// As long as the store keeps a pin: a longer one would end unnoticed.
    private static final long MAX_PREFIX_MILLIS = Hint.Pin.MAX_TIME.toMillis();

    private HintLimits() {}

    /// They are expected in so many milliseconds.
    public static ObjectHint expect(long millis) {
        return new ObjectHint.Expect(Duration.ofNanos(nanos(millis, 0, MAX_MILLIS)));
    }

    /// They are to stay for so many milliseconds.
    public static ObjectHint pin(long millis) {
        return new ObjectHint.Pin(Duration.ofNanos(nanos(millis, 1, MAX_MILLIS)));
    }

    /// The keys of a prefix that are found are to stay for so many milliseconds.
    public static Duration prefixPin(long millis) {
        return Duration.ofNanos(nanos(millis, 0, MAX_PREFIX_MILLIS));
    }

    /// They need not stay any longer.
    public static ObjectHint unpin() {
        return new ObjectHint.Pin(Duration.ZERO);
    }

    /// They go first from so many milliseconds on, or from 30 days on when that is sooner.
    public static ObjectHint expire(long millis) {
        return new ObjectHint.Expire(Duration.ofNanos(nanos(millis, 0, MAX_MILLIS)));
    }

    /// So much of them matters.
    public static ObjectHint weigh(double weight) {
        return new ObjectHint.Weigh((float) weight);
    }

    /// They are all of a request of this kind that is a turn of a session: what the turn before had
    /// and this one has not is let go.
    ///
    /// @param kind chat, agent, batch or other
    /// @param session its number among the tenant's, 1 and up
    /// @param turn which request of the session it is, 1 and up
    /// @param last whether the session is over with it
    public static ObjectHint session(String kind, long session, long turn, boolean last) {
        RequestKind known = kind(kind);
        requirePositive("session", session, Long.MAX_VALUE);
        requirePositive("turn", turn, Integer.MAX_VALUE);
        return new ObjectHint.Label(new RequestLabel(known, session, (int) turn, last));
    }

    private static void requirePositive(String name, long value, long max) {
        if (value < 1 || value > max) {
            throw new IllegalArgumentException(name + " is " + value + "; it takes 1 to " + max);
        }
    }

    private static RequestKind kind(String kind) {
        return switch (kind.toLowerCase(Locale.ROOT)) {
            case "chat" -> RequestKind.CHAT;
            case "agent" -> RequestKind.AGENT;
            case "batch" -> RequestKind.BATCH;
            case "other" -> RequestKind.OTHER;
            default -> throw new IllegalArgumentException("kind is " + kind + "; it takes " + KINDS);
        };
    }

    /// They are of a request of this kind and stage.
    ///
    /// @param kind chat, agent, batch or other
    /// @param turn first, later or last
    public static ObjectHint label(String kind, String turn) {
        RequestKind known = kind(kind);
        return switch (turn.toLowerCase(Locale.ROOT)) {
            case "first" -> new ObjectHint.Label(new RequestLabel(known, 0, 1, false));
            case "later" -> new ObjectHint.Label(new RequestLabel(known, 0, 2, false));
            case "last" -> new ObjectHint.Label(new RequestLabel(known, 0, 0, true));
            default -> throw new IllegalArgumentException("turn is " + turn + "; it takes " + TURNS);
        };
    }

    /// A hint may be of so many keys.
    public static void requireKeys(int count) {
        requireKeys(count, "hint");
    }

    /// A prefix may be of so many keys.
    public static void requirePrefixKeys(int count) {
        requireKeys(count, "prefix");
    }

    private static void requireKeys(int count, String request) {
        if (count < 1 || count > MAX_KEYS) {
            throw new IllegalArgumentException(count + " keys; a " + request + " takes 1 to " + MAX_KEYS);
        }
    }

    /// A key may be so long.
    public static void requireKey(byte[] key) {
        if (!Keyspace.isValidKey(key)) {
            throw new IllegalArgumentException(
                    "key of " + key.length + " bytes; it takes 1 to " + Keyspace.MAX_KEY_BYTES);
        }
    }

    private static long nanos(long millis, long min, long max) {
        if (millis < min || millis > max) {
            throw new IllegalArgumentException("milliseconds is " + millis + "; it takes " + min + " to " + max);
        }
        return TimeUnit.MILLISECONDS.toNanos(millis);
    }
}
