package io.kvcache.core;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.ByteRange;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Arguments of [KvCache#getRange], checked: the same bytes of several blocks of a chain.
///
/// @param chain ends with the last block that is wanted
/// @param from first block wanted
/// @param range the bytes of each block
/// @param into one target for each block, and perhaps more
public record RangeQuery(BlockChain chain, int from, ByteRange range, List<MemorySegment> into) {

    /// @param chain may have more blocks than there are targets, or fewer
    /// @throws IndexOutOfBoundsException when `from` is no place of the chain, blocks have no such
    ///     bytes, or a target is too small
    public RangeQuery {
        if (from < 0 || from > chain.length()) {
            throw new IndexOutOfBoundsException("from is " + from + "; this chain takes 0 to " + chain.length());
        }
        long blockBytes = chain.namespace().blockBytes();
        if (range.end() > blockBytes) {
            throw new IndexOutOfBoundsException(
                    "bytes " + range.offset() + " to " + range.end() + " of a block; allowed: 0 to " + blockBytes);
        }
        for (int i = 0; i < into.size(); i++) {
            if (into.get(i).byteSize() < range.bytes()) {
                throw new IndexOutOfBoundsException("room of " + into.get(i).byteSize()
                        + " bytes for a range; allowed: " + range.bytes() + " and up");
            }
        }
        chain = chain.prefix((int) Math.min(chain.length(), (long) from + into.size()));
    }

    /// Block after the last one that is wanted.
    public int end() {
        return chain.length();
    }

    /// Returns the rest of the query, from a later block on.
    public RangeQuery startingAt(int block) {
        return new RangeQuery(chain, block, range, into.subList(block - from, into.size()));
    }

    /// Copies the range out of a block.
    ///
    /// @param index of the block in the chain
    /// @param block its bytes
    public void copy(int index, MemorySegment block) {
        MemorySegment.copy(block, range.offset(), into.get(index - from), 0, range.bytes());
    }

    /// Copies the range out of all blocks of a table that are ready.
    ///
    /// @param table that begins with a block of this query, and ends with one
    /// @return the number of blocks copied; 0 when the table's blocks have changed meanwhile
    public int copyReady(BlockTable table) {
        int end = table.readyEnd();
        for (int index = table.firstBlock(); index < end; index++) {
            copy(index, table.segment(index));
        }
        return table.isValid() ? end - table.firstBlock() : 0;
    }
}
