package io.kvcache.core.check;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Rejects arguments that only a bug can pass, with the messages of the embedded cache.
public final class Preconditions {

    private Preconditions() {}

    public static void checkFrom(BlockChain chain, int from) {
        if (from < 0 || from > chain.length()) {
            throw new IndexOutOfBoundsException("from is " + from + "; this chain takes 0 to " + chain.length());
        }
    }

    public static void checkIndex(BlockChain chain, int index) {
        if (index < 0 || index >= chain.length()) {
            throw new IndexOutOfBoundsException(
                    "block " + index + " of a chain of " + chain.length() + "; full blocks only");
        }
    }

    public static void checkPart(BlockChain chain, int part) {
        int parts = chain.namespace().parts().size();
        if (part < 0 || part >= parts) {
            throw new IllegalArgumentException(
                    "part is " + part + "; " + chain.namespace() + " takes 0 to " + (parts - 1));
        }
    }

    public static void checkRange(BlockChain chain, int from, int count) {
        if (from < 0 || from > chain.length() - count) {
            throw new IndexOutOfBoundsException(count + " blocks from " + from + "; the chain has " + chain.length());
        }
    }

    public static void checkTargets(BlockChain chain, List<MemorySegment> into) {
        long blockBytes = chain.namespace().blockBytes();
        for (int i = 0; i < into.size(); i++) {
            if (into.get(i).byteSize() < blockBytes) {
                throw new IndexOutOfBoundsException(
                        "room of " + into.get(i).byteSize() + " bytes for a block; allowed: " + blockBytes + " and up");
            }
        }
    }

    public static void checkKey(byte[] key) {
        if (key.length < 1 || key.length > KvCache.MAX_OBJECT_KEY_BYTES) {
            throw new IllegalArgumentException(
                    "the key has " + key.length + " bytes; allowed: 1 to " + KvCache.MAX_OBJECT_KEY_BYTES);
        }
    }

    public static void checkSize(long bytes) {
        if (bytes < 1 || bytes > KvCache.MAX_OBJECT_BYTES) {
            throw new IllegalArgumentException(
                    "the object has " + bytes + " bytes; allowed: 1 to " + KvCache.MAX_OBJECT_BYTES);
        }
    }

    public static void checkSource(long found, long wanted, String of) {
        if (found != wanted) {
            throw new IllegalArgumentException("the source has " + found + " bytes; " + of + " has " + wanted);
        }
    }
}
