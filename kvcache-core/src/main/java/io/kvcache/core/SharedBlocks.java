package io.kvcache.core;

import io.kvcache.core.identity.BlockChain;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/// The blocks of a batch that several of its sequences have, each once: what attention in two phases reads (as
/// ChunkAttention and FlashInfer's cascade do). Sequences are put in an order in which those that share blocks are
/// adjacent, so that a section of blocks belongs to a range of that order.
///
/// It is a function of the chains alone, and takes a look at two keys for each halving of a chain's length: make it
/// anew when the batch changes.
///
/// **Threads.** Any.
///
/// @param order the numbers of the sequences, sharers adjacent
/// @param sections each block of each sequence in exactly one, parents before children
public record SharedBlocks(List<Integer> order, List<Section> sections) {

    public SharedBlocks {
        order = List.copyOf(order);
        sections = List.copyOf(sections);
    }

    /// Blocks `[firstBlock, endBlock)` of all the sequences `order[from, to)`, the same for all of them.
    public record Section(int firstBlock, int endBlock, int from, int to) {

        /// Returns how many blocks it has.
        public int blocks() {
            return endBlock - firstBlock;
        }
    }

    /// Finds what the sequences of a batch share.
    ///
    /// @param chains a sequence each, of one block size; sequences of different namespaces share nothing
    public static SharedBlocks of(List<BlockChain> chains) {
        Integer[] order = new Integer[chains.size()];
        Arrays.setAll(order, sequence -> sequence);
        Arrays.sort(order, Comparator.comparing(chains::get, SharedBlocks::compare));
        int[] shared = new int[order.length];
        for (int i = 1; i < order.length; i++) {
            shared[i] = chains.get(order[i - 1]).commonPrefix(chains.get(order[i]));
        }
        List<Section> sections = new ArrayList<>();
        int[] lengths =
                Arrays.stream(order).mapToInt(each -> chains.get(each).length()).toArray();
        addSections(sections, lengths, shared, 0, 0, order.length);
        return new SharedBlocks(Arrays.asList(order), sections);
    }

    /// Blocks that a pass over all sections reads; a pass over each sequence reads the sum of their lengths.
    public int blocksRead() {
        return sections.stream().mapToInt(Section::blocks).sum();
    }

    /// Adds what the sequences `[from, to)` have from block `depth` on, before which they have the same.
    ///
    /// @param shared blocks that each has in common with the one before it
    private static void addSections(List<Section> sections, int[] lengths, int[] shared, int depth, int from, int to) {
        if (from == to) {
            return;
        }
        int least = lengths[from];
        for (int i = from + 1; i < to; i++) {
            least = Math.min(least, shared[i]);
        }
        if (least > depth) {
            sections.add(new Section(depth, least, from, to));
        }
        if (to - from == 1) {
            return;
        }
        int start = from;
        for (int i = from + 1; i <= to; i++) {
            if (i == to || shared[i] == least) {
                addSections(sections, lengths, shared, least, start, i);
                start = i;
            }
        }
    }

    private static int compare(BlockChain one, BlockChain other) {
        int common = one.commonPrefix(other);
        if (common == Math.min(one.length(), other.length())) {
            return Integer.compare(one.length(), other.length());
        }
        int high = Long.compareUnsigned(one.keyHi(common), other.keyHi(common));
        return high != 0 ? high : Long.compareUnsigned(one.keyLo(common), other.keyLo(common));
    }
}
