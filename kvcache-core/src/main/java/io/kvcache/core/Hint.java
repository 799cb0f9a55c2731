package io.kvcache.core;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.time.Timeouts;
import java.time.Duration;
import java.util.List;

/// Knowledge of a chain that only the caller has: its future, or the importance of its content.
///
/// Give a hint after the blocks were put. A wrong hint costs hits, and only in namespaces that share host memory
/// with the chain's; it never costs correctness. Labels, weights and pins concern blocks in host memory. [Expect],
/// [Forget] and [Expire] also concern blocks on disk. Weights and the classes of labels need a policy that learns;
/// other policies ignore them.
public sealed interface Hint {

    /// The chain that the hint is about.
    BlockChain chain();

    /// A request for this chain is queued or expected: its blocks count as used now, and blocks on disk are loaded.
    ///
    /// The hint is rejected when the request is too far off: when the blocks that would have to be evicted promise
    /// more uses until then. Give it again when the request is nearer.
    ///
    /// @param delay when the request is expected, from now; zero for as soon as possible, which is never too far
    ///     off
    record Expect(BlockChain chain, Duration delay) implements Hint {
        public Expect {
            Timeouts.toNanos("delay", delay);
        }
    }

    /// Keep the resident blocks of this chain in host memory, whatever the policy decides.
    ///
    /// Pins may hold a quarter of the host memory that the namespace's weight grants, together with the pins of all
    /// namespaces that share it. A pin beyond that is rejected, and an earlier pin of the chain stays as it was. A
    /// pin ends when one of its blocks is dropped.
    ///
    /// @param time how long from now, at most one hour; a longer time counts as one hour. Pinning again restarts
    ///     the time; zero ends the pin
    record Pin(BlockChain chain, Duration time) implements Hint {

        /// The longest pin.
        public static final Duration MAX_TIME = Duration.ofHours(1);

        public Pin {
            Timeouts.toNanos("time", time);
        }

        /// The key that identifies the pin: that of the chain's last block, which is all that ending a pin
        /// takes.
        ///
        /// @throws IndexOutOfBoundsException when the chain is empty
        public BlockKey key() {
            return chain.key(chain.length() - 1);
        }
    }

    /// The tail of this chain will not return: its blocks from `from` on are evicted next, in memory and on disk.
    ///
    /// Blocks that wait to be written to disk are no longer written. A use makes a block ordinary again. Blocks on
    /// disk with continuations of other requests stay as they are.
    record Forget(BlockChain chain, int from) implements Hint {
        public Forget {
            requireNotNegative("from", from);
        }
    }

    /// The blocks of this chain from `from` on belong to a request with this label.
    ///
    /// The policy learns how soon blocks are used again separately for each [reuse class][RequestLabel#reuseClass].
    /// Among blocks that look alike, those stay whose class returns. The policy learns from what happens, so a
    /// wrong label gains nothing. A block has the class of its latest label, also after it left memory and
    /// returned.
    ///
    /// When a session's next turn is labelled, blocks of the previous turn that are not part of it are evicted
    /// next, except those that other requests continued from. The latest sessions are remembered: up to 65,536
    /// blocks for each memory share, and fewer than eight blocks count as eight.
    record Label(BlockChain chain, int from, RequestLabel label) implements Hint {
        public Label {
            requireNotNegative("from", from);
        }
    }

    /// How important the content of blocks is to their readers, as an engine knows from its attention.
    ///
    /// The policy multiplies a block's score by its weight, rounded to a power of two and at least one eighth.
    /// Among blocks of equal reuse the more important stay. A weight never raises a score, so no caller gains what
    /// others lose. It also counts where blocks are written to disk by value, and in a GPU tier ranked by the
    /// policy. A block loses its weight when it returns to host memory. In host memory weights have no effect while
    /// the policy follows LRU.
    ///
    /// @param from the block of the first weight
    /// @param weights 0 to 1, for this block and those behind it
    record Weigh(BlockChain chain, int from, List<Float> weights) implements Hint {
        public Weigh {
            weights = List.copyOf(weights);
            requireNotNegative("from", from);
            if (weights.size() > chain.length() - from) {
                throw new IllegalArgumentException(weights.size() + " weights from block " + from
                        + " on; the chain has " + chain.length() + " blocks");
            }
            for (int i = 0; i < weights.size(); i++) {
                float weight = weights.get(i);
                if (!(weight >= 0 && weight <= 1)) {
                    throw new IllegalArgumentException("weight " + i + " is " + weight + "; it takes 0 to 1");
                }
            }
        }
    }

    /// The blocks of this chain from `from` on are evicted first once a time has passed.
    ///
    /// Nothing is removed at that moment. Blocks in host memory or on disk are evicted next from then on, and
    /// blocks that wait to be written are not written. A use makes a block ordinary again. Blocks with
    /// continuations of other requests stay as they are, and so do the blocks before them: of a growing chain the
    /// latest hint applies. Up to 65,536 blocks of each memory share can wait for their time, and fewer than
    /// eight count as eight; hints beyond that are rejected.
    ///
    /// @param delay from now, at most 30 days; a longer delay counts as 30 days. A new hint with the same last
    ///     block restarts the time
    record Expire(BlockChain chain, int from, Duration delay) implements Hint {
        public Expire {
            requireNotNegative("from", from);
            Timeouts.toNanos("delay", delay);
        }
    }

    private static void requireNotNegative(String name, int value) {
        if (value < 0) {
            throw new IllegalArgumentException(name + " is " + value + "; it takes 0 and up");
        }
    }
}
