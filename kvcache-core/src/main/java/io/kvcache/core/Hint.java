package io.kvcache.core;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;

/// What only the caller knows of the future of a chain.
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

    /// The tail of this chain will not come back: from block `from` on, its blocks are the next victims.
    record Forget(BlockChain chain, int from) implements Hint {
        public Forget {
            requireNotNegative("from", from);
        }
    }

    private static void requireNotNegative(String name, long value) {
        if (value < 0) {
            throw new IllegalArgumentException(name + " is " + value + "; it takes 0 and up");
        }
    }
}
