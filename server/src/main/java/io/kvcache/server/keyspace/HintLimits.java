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

    /// A number that hints and prefixes take.
    public enum HintNumber {
        /// In how long keys are expected or expire.
        DELAY_MILLIS("milliseconds", 0, MAX_MILLIS),
        /// How long keys stay.
        PIN_MILLIS("milliseconds", 1, MAX_MILLIS),
        /// How long the keys of a prefix stay.
        PREFIX_MILLIS("milliseconds", 0, MAX_PREFIX_MILLIS),
        /// The number of a session among the tenant's.
        SESSION("session", 1, Long.MAX_VALUE),
        /// Which request of its session it is.
        TURN("turn", 1, Integer.MAX_VALUE);

        private final String label;
        private final long min;
        private final long max;

        HintNumber(String label, long min, long max) {
            this.label = label;
            this.min = min;
            this.max = max;
        }

        private long require(long value) {
            if (value < min || value > max) {
                throw outOfRange(Long.toString(value));
            }
            return value;
        }

        private Duration requireMillis(long millis) {
            return Duration.ofMillis(require(millis));
        }

        /// Returns the error for a value that is out of range, or that is not an integer.
        public IllegalArgumentException outOfRange(String value) {
            return new IllegalArgumentException(label + " is " + value + "; it takes " + min + " to " + max);
        }
    }

    /// They are expected in so many milliseconds.
    public static ObjectHint expect(long millis) {
        return new ObjectHint.Expect(HintNumber.DELAY_MILLIS.requireMillis(millis));
    }

    /// They are to stay for so many milliseconds.
    public static ObjectHint pin(long millis) {
        return new ObjectHint.Pin(HintNumber.PIN_MILLIS.requireMillis(millis));
    }

    /// The keys of a prefix that are found are to stay for so many milliseconds.
    public static Duration prefixPin(long millis) {
        return HintNumber.PREFIX_MILLIS.requireMillis(millis);
    }

    /// They need not stay any longer.
    public static ObjectHint unpin() {
        return new ObjectHint.Pin(Duration.ZERO);
    }

    /// They go first from so many milliseconds on, or from 30 days on when that is sooner.
    public static ObjectHint expire(long millis) {
        return new ObjectHint.Expire(HintNumber.DELAY_MILLIS.requireMillis(millis));
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
        HintNumber.SESSION.require(session);
        HintNumber.TURN.require(turn);
        return new ObjectHint.Label(new RequestLabel(known, session, (int) turn, last));
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
}
