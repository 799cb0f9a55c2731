package io.kvcache.server.console;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.kvcache.server.miss.MissLog.Reason;
import java.util.Map;
import java.util.function.ToLongFunction;

/// How many look-ups found nothing, or ended early, by reason. One word each, as the history keeps thousands of these.
record MissCounts(
        @JsonProperty("never_seen") long neverSeen,
        @JsonProperty("evicted") long evicted,
        @JsonProperty("quota") long quota,
        @JsonProperty("expired") long expired,
        @JsonProperty("deleted") long deleted,
        @JsonProperty("outdated") long outdated,
        @JsonProperty("busy") long busy,
        @JsonProperty("late") long late,
        @JsonProperty("computed_sooner") long computedSooner,
        @JsonProperty("other_half") long otherHalf) {

    /// The increase between two counts.
    static MissCounts between(Map<Reason, Long> before, Map<Reason, Long> now) {
        return of(reason -> now.getOrDefault(reason, 0L) - before.getOrDefault(reason, 0L));
    }

    /// Counts by reason.
    static MissCounts of(ToLongFunction<Reason> count) {
        return new MissCounts(
                count.applyAsLong(Reason.NEVER_SEEN),
                count.applyAsLong(Reason.EVICTED),
                count.applyAsLong(Reason.QUOTA),
                count.applyAsLong(Reason.EXPIRED),
                count.applyAsLong(Reason.DELETED),
                count.applyAsLong(Reason.OUTDATED),
                count.applyAsLong(Reason.BUSY),
                count.applyAsLong(Reason.LATE),
                count.applyAsLong(Reason.COMPUTED_SOONER),
                count.applyAsLong(Reason.OTHER_HALF));
    }
}
