package io.kvcache.core;

import io.kvcache.core.identity.BlockChain;

/// What only the caller knows of the future of a chain.
public sealed interface Hint {

    /// The chain that is spoken of.
    BlockChain chain();

    /// A request for this chain is queued or expected: its blocks count as used now.
    ///
    /// @param inNanos when it is expected, from now; 0 for as soon as possible
    record Expect(BlockChain chain, long inNanos) implements Hint {
        public Expect {
            requireNotNegative("inNanos", inNanos);
        }
    }

    /// Keep the resident blocks of this chain, whatever the policy says.
    ///
    /// Pins of this kind may hold a quarter of host memory together; more is not taken.
    ///
    /// @param forNanos how long from now; pinning again starts anew, 0 ends the pin
    record Pin(BlockChain chain, long forNanos) implements Hint {
        public Pin {
            requireNotNegative("forNanos", forNanos);
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
