package io.kvcache.core;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// What only the caller knows of a chain: of its future, or of what is in it.
///
/// Labels, weights and pins are for blocks in host memory; [Expect] and what says that blocks are
/// over are also for those on disk. Give hints once the blocks have been put. A hint that is wrong
/// costs hits, of those alone who share host memory with the namespace, and never correctness.
/// Weights and the classes of labels are for stores whose policy learns; others take neither.
public sealed interface Hint {

    /// The chain that is spoken of.
    BlockChain chain();

    /// A request for this chain is queued or expected: its blocks count as used now, and what is on disk
    /// alone is brought in.
    ///
    /// One that is so far off that its blocks promise fewer uses for the room that they take until then
    /// than what would go for them is not taken: give it again when it is nearer.
    ///
    /// @param inNanos when it is expected, from now; 0 for as soon as possible, which is never too far off
    record Expect(BlockChain chain, long inNanos) implements Hint {
        public Expect {
            requireNotNegative("inNanos", inNanos);
        }
    }

    /// Keep the resident blocks of this chain, whatever the policy says.
    ///
    /// Pins of this kind may hold a quarter of what the namespace's weight gives it of host memory,
    /// together with those of all that share it; more is not taken, and a pin that was there stays as it
    /// was. A pin ends when a block of it is dropped.
    ///
    /// @param forNanos how long from now, an hour at most: longer counts as an hour. Pinning again starts
    ///     anew, 0 ends the pin
    record Pin(BlockChain chain, long forNanos) implements Hint {

        /// An hour.
        public static final long MAX_NANOS = TimeUnit.HOURS.toNanos(1);

        public Pin {
            requireNotNegative("forNanos", forNanos);
        }

        /// By what a pin is known: the key of the chain's last block, which is all that ending it takes.
        ///
        /// @throws IndexOutOfBoundsException when the chain is empty
        public BlockKey key() {
            return chain.key(chain.length() - 1);
        }
    }

    /// The tail of this chain will not come back: from block `from` on, its blocks are the next
    /// victims, in memory and on disk. What waits to be written to disk is not; a use makes a block
    /// one like others again. Blocks that others have gone on from stay on disk as they were.
    record Forget(BlockChain chain, int from) implements Hint {
        public Forget {
            requireNotNegative("from", from);
        }
    }

    /// The blocks of this chain from `from` on are of a request of which this is known.
    ///
    /// How soon blocks are used again is learned for each [reuse class][RequestLabel#reuseClass]
    /// apart, so that of blocks that look alike those stay whose class returns. It is learned from
    /// what happens: a label promises nothing, and one that lies is found out. A block is of the
    /// class that was said of it last, also when it has left memory and returns.
    ///
    /// When a session's next turn is labelled, whatever of the blocks of the turn before is no part
    /// of it is a next victim, but for what others have gone on from: what has been stripped from a
    /// conversation will not come back. The sessions labelled last are known, up to 65,536 blocks
    /// of each share together; fewer than eight count as eight.
    record Label(BlockChain chain, int from, RequestLabel label) implements Hint {
        public Label {
            requireNotNegative("from", from);
        }
    }

    /// How much of what blocks hold matters to who reads them, as an engine knows it from its
    /// attention.
    ///
    /// What a block is worth to the policy is multiplied by its weight, to the nearest power of two
    /// and by an eighth at least: among blocks of like reuse those that matter more stay. Nothing
    /// is worth more than without a weight, so nobody gains by it what others lose. Where blocks
    /// are written to disk by value it counts for that too, and in a GPU that the policy has a say
    /// in. It is forgotten when a block returns to host memory, and counts for nothing there while
    /// the policy orders by last use alone.
    ///
    /// @param from the block of the first weight
    /// @param weights 0 to 1, of this block and those behind it
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

    /// The blocks of this chain from `from` on are let go first once a time is over.
    ///
    /// Nothing is removed: what is in host memory or on disk then becomes the next victim, and what
    /// waits to be written is not; a use makes it a block like others again. Blocks that others
    /// have gone on from stay as they are, and those before them, so a chain that grows has the
    /// time of its latest hint. Up to 65,536 blocks of each share can wait for their time, fewer
    /// than eight of a hint counting as eight; more are not taken.
    ///
    /// @param afterNanos from now; 30 days at most, longer counts as that. Giving it again for the
    ///     same last block starts anew
    record Expire(BlockChain chain, int from, long afterNanos) implements Hint {
        public Expire {
            requireNotNegative("from", from);
            requireNotNegative("afterNanos", afterNanos);
        }
    }

    private static void requireNotNegative(String name, long value) {
        if (value < 0) {
            throw new IllegalArgumentException(name + " is " + value + "; it takes 0 and up");
        }
    }
}
