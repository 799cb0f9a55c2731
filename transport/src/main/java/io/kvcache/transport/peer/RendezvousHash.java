package io.kvcache.transport.peer;

import io.kvcache.core.identity.BlockKey;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/// Assigns groups to the peers with the highest hash of peer and key (Thaler and Ravishankar, 1998). All stores
/// that list the same names choose alike. When a name is removed, only its own groups move.
final class RendezvousHash {

    private final long[] names;

    /// @param names of the peers, as every store calls them
    RendezvousHash(List<String> names) {
        this.names = names.stream().mapToLong(RendezvousHash::hash).toArray();
    }

    /// FNV-1a. The hash of a name must stay the same in all processes and releases.
    private static long hash(String name) {
        long hash = 0xcbf29ce484222325L;
        for (byte each : name.getBytes(StandardCharsets.UTF_8)) {
            hash = (hash ^ (each & 0xff)) * 0x100000001b3L;
        }
        return hash;
    }

    /// Returns the indexes of all peers, the best one first.
    int[] rankedPeers(BlockKey key) {
        long[] weights = Arrays.stream(names).map(name -> weight(name, key)).toArray();
        return IntStream.range(0, names.length)
                .boxed()
                .sorted(Comparator.<Integer>comparingLong(peer -> weights[peer]).reversed())
                .mapToInt(Integer::intValue)
                .toArray();
    }

    /// Returns the finalizer of SplitMix64 over the name and the key.
    private static long weight(long name, BlockKey key) {
        long mixed = name ^ key.hi() ^ Long.rotateLeft(key.lo(), 32);
        mixed = (mixed ^ (mixed >>> 30)) * 0xbf58476d1ce4e5b9L;
        mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
        return mixed ^ (mixed >>> 31);
    }
}
