package io.kvcache.tiers;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.HintApplier;
import io.kvcache.core.store.NamespaceEntry;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// What a session has come to with one of its turns.
sealed interface SessionTurn {

    /// Blocks or objects of a turn that are kept for the next one.
    int MAX_KEPT = 1024;

    Namespace namespace();

    /// Blocks or objects.
    int size();

    /// The end of it, with no memory shared with what it was made of.
    SessionTurn copyOfEnd();

    /// Lets go what an earlier turn had and this one has not; of blocks, but for what others have
    /// gone on from.
    ///
    /// @return of how many blocks or objects
    int releaseDropped(SessionTurn before);

    /// A chain of blocks.
    ///
    /// @param first the block of the session's chain that this one begins with
    record Blocks(HintApplier hintApplier, BlockChain chain, int first) implements SessionTurn {

        @Override
        public Namespace namespace() {
            return chain.namespace();
        }

        @Override
        public int size() {
            return chain.length();
        }

        @Override
        public SessionTurn copyOfEnd() {
            int from = Math.max(0, chain.length() - MAX_KEPT);
            return new Blocks(hintApplier, ChainSuffixes.of(chain, from), first + from);
        }

        @Override
        public int releaseDropped(SessionTurn before) {
            return before instanceof Blocks blocks ? hintApplier.release(blocks.chain, blocks.keptBy(this)) : 0;
        }

        /// Leading blocks that another one has too.
        private int keptBy(Blocks later) {
            int end = Math.min(chain.length(), later.chain.length() - first);
            int index = 0;
            while (index < end && chain.key(index).equals(later.chain.key(first + index))) {
                index++;
            }
            return index;
        }
    }

    /// Objects, in the order in which they are read.
    record Objects(HintApplier forecast, NamespaceEntry entry, List<BlockKey> keys) implements SessionTurn {

        @Override
        public Namespace namespace() {
            return entry.namespace();
        }

        @Override
        public int size() {
            return keys.size();
        }

        @Override
        public SessionTurn copyOfEnd() {
            int from = Math.max(0, keys.size() - MAX_KEPT);
            return new Objects(forecast, entry, List.copyOf(keys.subList(from, keys.size())));
        }

        @Override
        public int releaseDropped(SessionTurn before) {
            if (!(before instanceof Objects objects)) {
                return 0;
            }
            Set<BlockKey> kept = new HashSet<>(keys);
            return forecast.demote(
                    entry,
                    objects.keys.stream().filter(key -> !kept.contains(key)).toList());
        }
    }
}
