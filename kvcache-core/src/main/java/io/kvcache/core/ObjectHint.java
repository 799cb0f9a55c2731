package io.kvcache.core;

/// What only the caller knows of objects: of their future, or of what is in them.
///
/// What [Hint] says of blocks, for values that have names of their own. Objects that are not here
/// are passed over, but for expectations where the policy learns, for times and for sessions: give
/// the hint again once they have been put. A hint that is wrong costs hits,
/// of those alone who share host memory with the namespace, and never correctness. Weights and
/// the classes of labels are for stores whose policy learns; others take neither.
public sealed interface ObjectHint {

    /// They are about to be asked for: they count as used now, and what is on disk alone is
    /// brought in, up to a quarter of host memory. A policy that learns hears of those that are
    /// not here too, once for each request that waits: once put, such an object stays for the rest.
    ///
    /// One that is so far off that it promises fewer uses for its room until then than what would
    /// go for it is not taken: give it again when it is nearer.
    ///
    /// @param inNanos when they are expected, from now; 0 for as soon as possible, never too far
    ///     off
    record Expect(long inNanos) implements ObjectHint {
        public Expect {
            requireNotNegative("inNanos", inNanos);
        }
    }

    /// Keep those that are in host memory there, whatever the policy says.
    ///
    /// They share a quarter of what the namespace's weight gives it with [Hint.Pin], and an hour
    /// at most. A pin ends when its object is dropped or replaced.
    ///
    /// @param forNanos how long from now, longer counts as an hour. Pinning again starts anew, 0
    ///     ends the pin
    record Pin(long forNanos) implements ObjectHint {
        public Pin {
            requireNotNegative("forNanos", forNanos);
        }
    }

    /// They will not be asked for again: next victims, the last of them first, in memory and on
    /// disk. Nothing is removed; what waits to be written to disk is not.
    record Forget() implements ObjectHint {}

    /// They are all objects of a request of which this is known.
    ///
    /// How soon objects are used again is learned for each [reuse class][RequestLabel#reuseClass]
    /// apart, as with [Hint.Label]. When a session's next turn is labelled, those of the turn
    /// before that it does not name are next victims in memory and on disk, also when other
    /// sessions read them; in memory each goes after those that were put behind it.
    /// Sessions of objects and of blocks share one limit, and an object counts as a block.
    ///
    /// @param label with a session and a turn, if they are of one
    record Label(RequestLabel label) implements ObjectHint {}

    /// How much of what is in them matters to who reads them, as [Hint.Weigh] has it.
    ///
    /// @param weight 0 to 1
    record Weigh(float weight) implements ObjectHint {
        public Weigh {
            if (!(weight >= 0 && weight <= 1)) {
                throw new IllegalArgumentException("weight is " + weight + "; it takes 0 to 1");
            }
        }
    }

    /// They are let go first once a time is over, as by [Forget]. Nothing is removed, and a use
    /// makes one an object like others again.
    ///
    /// Up to 65,536 objects and blocks of each share can wait for their time, fewer than eight of
    /// a hint counting as eight; more are not taken. Giving it again with the same last object
    /// starts anew.
    ///
    /// @param afterNanos from now; 30 days at most, longer counts as that
    record Expire(long afterNanos) implements ObjectHint {
        public Expire {
            requireNotNegative("afterNanos", afterNanos);
        }
    }

    private static void requireNotNegative(String name, long value) {
        if (value < 0) {
            throw new IllegalArgumentException(name + " is " + value + "; it takes 0 and up");
        }
    }
}
