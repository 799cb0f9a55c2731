package io.kvcache.core;

import io.kvcache.core.time.Timeouts;
import java.time.Duration;

/// Knowledge of objects that only the caller has: their future, or the importance of their content.
///
/// The same as [Hint] for values with names of their own. Hints skip unknown objects, but for three cases: a
/// policy that learns remembers [Expect] for them, and [Expire] and the session of a [Label] must be given again
/// once the objects were put. A wrong hint costs hits, and only in namespaces that share host memory with the
/// objects'; it never costs correctness. Weights and the classes of labels need a policy that learns; other
/// policies ignore them.
public sealed interface ObjectHint {

    /// A request for these objects is queued or expected: they count as used now, and objects on disk are loaded,
    /// up to a quarter of host memory.
    ///
    /// A policy that learns remembers unknown objects too, once for each waiting request: after its put such an
    /// object stays for the remaining requests. The hint is rejected when the request is too far off: when the
    /// objects that would have to be evicted promise more uses until then. Give it again when the request is
    /// nearer.
    ///
    /// @param delay when the request is expected, from now; zero for as soon as possible, which is never too far
    ///     off
    record Expect(Duration delay) implements ObjectHint {
        public Expect {
            Timeouts.toNanos("delay", delay);
        }
    }

    /// Keep resident objects in host memory, whatever the policy decides.
    ///
    /// Pinned objects share their quota with [Hint.Pin]: a quarter of what the namespace's weight grants. A pin
    /// ends when its object is dropped or replaced.
    ///
    /// @param time how long from now, at most one hour; a longer time counts as one hour. Pinning again restarts
    ///     the time; zero ends the pin
    record Pin(Duration time) implements ObjectHint {
        public Pin {
            Timeouts.toNanos("time", time);
        }
    }

    /// The objects will not be requested again: they are evicted next, the last of them first, in memory and on
    /// disk.
    ///
    /// Nothing is removed at once. Objects that wait to be written to disk are no longer written.
    record Forget() implements ObjectHint {}

    /// The objects are all those of a request with this label.
    ///
    /// The policy learns how soon objects are used again separately for each
    /// [reuse class][RequestLabel#reuseClass], as with [Hint.Label]. When a session's next turn is labelled,
    /// objects of the previous turn that it does not name are evicted next in memory and on disk, also when other
    /// sessions read them. In memory each goes after those that were put behind it. Sessions of objects and of
    /// blocks share one limit, and an object counts as a block.
    ///
    /// @param label with a session and a turn, if the request has them
    record Label(RequestLabel label) implements ObjectHint {}

    /// How important the objects' content is to their readers, as in [Hint.Weigh].
    ///
    /// @param weight 0 to 1
    record Weigh(float weight) implements ObjectHint {
        public Weigh {
            if (!(weight >= 0 && weight <= 1)) {
                throw new IllegalArgumentException("weight is " + weight + "; it takes 0 to 1");
            }
        }
    }

    /// The objects are evicted first once a time has passed, as by [Forget]. A use makes an object ordinary again.
    ///
    /// Up to 65,536 objects and blocks of each memory share can wait for their time, and fewer than eight count as
    /// eight; hints beyond that are rejected. A new hint with the same last object restarts the time.
    ///
    /// @param delay from now, at most 30 days; a longer delay counts as 30 days
    record Expire(Duration delay) implements ObjectHint {
        public Expire {
            Timeouts.toNanos("delay", delay);
        }
    }
}
