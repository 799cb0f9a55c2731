package io.kvcache.gpu.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.core.SharedBlocks;
import io.kvcache.core.SharedBlocks.Section;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/// Who attends to what in one step of decoding: the blocks of a batch's sequences in pieces of up to 512 tokens, shared
/// ones once for all their sequences. It serves all layers, and is made anew when a sequence takes another block.
///
/// **Threads.** Any.
public final class AttentionPlan {

    /// The most dimensions of a head that kernels take.
    public static final int MAX_HEAD_DIM = 256;

    private static final int PIECE_TOKENS = 512;

    /// As kernels have them.
    private static final int UNIT_QUERIES = 4;

    private static final int UNIT_WORDS = 8;

    private final BlockShape shape;
    private final int queryHeads;
    private final List<Integer> order;
    private final List<Piece> pieces = new ArrayList<>();
    private long partials;
    private int blocks;
    private int units;
    private int listed;

    /// Some tokens of blocks, of the sequences `order[from, to)`.
    ///
    /// @param sequence one of them, in whose table the blocks are
    /// @param firstPartial of their results, `[sequence][query head]`
    record Piece(int sequence, int firstBlock, int tokens, int from, int to, int firstPartial) {

        int blocks(BlockShape shape) {
            return Math.ceilDiv(tokens, shape.blockTokens());
        }
    }

    private AttentionPlan(BlockShape shape, int queryHeads, List<Integer> order) {
        this.shape = shape;
        this.queryHeads = queryHeads;
        this.order = order;
    }

    /// Plans a step.
    ///
    /// @param shape of the blocks: K and V, bf16 or fp8 (e4m3), heads of up to [#MAX_HEAD_DIM]
    /// @param queryHeads a multiple of the heads of the blocks, as many in a row sharing one
    /// @param shared what the sequences have in common
    /// @param tokens of each sequence that its query attends to; those behind the blocks of its chain are in blocks
    ///     of its own
    /// @throws IllegalArgumentException for what kernels do not take, and for a sequence without tokens
    public static AttentionPlan of(BlockShape shape, int queryHeads, SharedBlocks shared, List<Integer> tokens) {
        requireFit(shape, queryHeads);
        require(
                tokens.size() == shared.order().size(),
                "numbers of tokens",
                tokens.size(),
                "one for each of " + shared.order().size() + " sequences");
        AttentionPlan plan = new AttentionPlan(shape, queryHeads, shared.order());
        int[] known = new int[tokens.size()];
        for (Section section : shared.sections()) {
            plan.add(section.firstBlock(), section.blocks() * shape.blockTokens(), section.from(), section.to());
            Arrays.fill(known, section.from(), section.to(), section.endBlock());
        }
        for (int place = 0; place < known.length; place++) {
            int sequence = plan.order.get(place);
            int rest = tokens.get(sequence) - known[place] * shape.blockTokens();
            require(
                    rest >= 0 && tokens.get(sequence) > 0,
                    "tokens of sequence " + sequence,
                    tokens.get(sequence),
                    Math.max(1, known[place] * shape.blockTokens()) + " and up");
            plan.add(known[place], rest, place, place + 1);
        }
        require(plan.partials <= Integer.MAX_VALUE, "results of pieces", plan.partials, "up to 2^31 - 1");
        return plan;
    }

    private static void requireFit(BlockShape shape, int queryHeads) {
        require(shape.planes() == 2, "planes", shape.planes(), "2");
        require(shape.headDim() <= MAX_HEAD_DIM, "headDim", shape.headDim(), "up to " + MAX_HEAD_DIM);
        require(
                shape.dtype() == Dtype.BF16 || shape.dtype() == Dtype.FP8_E4M3,
                "dtype",
                shape.dtype(),
                "BF16 and FP8_E4M3");
        require(
                queryHeads > 0 && queryHeads % shape.kvHeads() == 0,
                "queryHeads",
                queryHeads,
                "multiples of " + shape.kvHeads());
    }

    private void add(int firstBlock, int tokens, int from, int to) {
        int step = Math.max(1, PIECE_TOKENS / shape.blockTokens()) * shape.blockTokens();
        for (int start = 0; start < tokens; start += step) {
            int block = firstBlock + start / shape.blockTokens();
            pieces.add(new Piece(order.get(from), block, Math.min(step, tokens - start), from, to, (int) partials));
            partials += (long) (to - from) * queryHeads;
            blocks += pieces.getLast().blocks(shape);
            units += shape.kvHeads() * Math.ceilDiv((to - from) * sharing(), UNIT_QUERIES);
            listed += to - from;
        }
    }

    private static void require(boolean holds, String what, Object value, String allowed) {
        if (!holds) {
            throw new IllegalArgumentException("%s %s; it takes %s".formatted(what, value, allowed));
        }
    }

    /// Where blocks lie.
    @FunctionalInterface
    public interface BlockAddresses {

        /// Returns the device address of block `block` of a sequence.
        long address(int sequence, int block);
    }

    /// Bytes of the plan on the device.
    public long bytes() {
        return 8L * blocks + 4L * (UNIT_WORDS * (long) units + order.size() + order.size() + 1 + listed);
    }

    /// Bytes on the device for what the pieces give.
    public long scratchBytes() {
        return 4L * partials * (shape.headDim() + 2);
    }

    /// Bytes of the queries, and of the result: `[sequence][query head][dim]` of bf16.
    public long queryBytes() {
        return 2L * order.size() * queryHeads * shape.headDim();
    }

    /// Writes the plan as kernels read it.
    ///
    /// @param target of [#bytes], for a copy to the device
    public void write(MemorySegment target, BlockAddresses addresses) {
        long at = 0;
        for (Piece piece : pieces) {
            for (int block = 0; block < piece.blocks(shape); block++) {
                target.set(JAVA_LONG, at, addresses.address(piece.sequence, piece.firstBlock + block));
                at += 8;
            }
        }
        IntStream words =
                IntStream.concat(IntStream.concat(unitWords(), order.stream().mapToInt(each -> each)), piecesByPlace());
        for (int word : words.toArray()) {
            target.set(JAVA_INT, at, word);
            at += 4;
        }
    }

    private IntStream unitWords() {
        IntStream.Builder words = IntStream.builder();
        int firstBlock = 0;
        for (Piece piece : pieces) {
            int queries = (piece.to - piece.from) * sharing();
            for (int head = 0; head < shape.kvHeads(); head++) {
                for (int query = 0; query < queries; query += UNIT_QUERIES) {
                    words.add(firstBlock)
                            .add(piece.tokens)
                            .add(head)
                            .add(piece.from)
                            .add(query);
                    words.add(Math.min(UNIT_QUERIES, queries - query))
                            .add(piece.firstPartial)
                            .add(0);
                }
            }
            firstBlock += piece.blocks(shape);
        }
        return words.build();
    }

    /// Where in the list the pieces of each place of the order begin, then the list: the first partial result of each.
    private IntStream piecesByPlace() {
        List<List<Integer>> byPlace = order.stream()
                .map(_ -> (List<Integer>) new ArrayList<Integer>())
                .toList();
        for (Piece piece : pieces) {
            for (int place = piece.from; place < piece.to; place++) {
                byPlace.get(place).add(piece.firstPartial + (place - piece.from) * queryHeads);
            }
        }
        int[] from = new int[order.size() + 1];
        for (int place = 0; place < order.size(); place++) {
            from[place + 1] = from[place] + byPlace.get(place).size();
        }
        return IntStream.concat(
                Arrays.stream(from), byPlace.stream().flatMap(List::stream).mapToInt(each -> each));
    }

    BlockShape shape() {
        return shape;
    }

    int queryHeads() {
        return queryHeads;
    }

    /// Query heads that share a head of the blocks.
    int sharing() {
        return queryHeads / shape.kvHeads();
    }

    List<Integer> order() {
        return order;
    }

    List<Piece> pieces() {
        return pieces;
    }

    /// Blocks that it reads, those of several sequences once.
    int blocks() {
        return blocks;
    }

    int units() {
        return units;
    }
}
