package io.kvcache.engines.jlama;

import com.github.tjake.jlama.tensor.AbstractTensor;
import com.github.tjake.jlama.tensor.KvBufferCache.KvBuffer;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.engines.generator.EngineSequence.SequenceBlockCopier;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// The first tokens of one of Jlama's sequences as the pages that they lie in, and how blocks get in and
/// out of them.
///
/// Jlama keeps the rows of one layer's keys (and of its values) for some consecutive tokens adjacent, in
/// a page; so does a block, for as many tokens as it has. What both have of a layer and plane is copied
/// at once: a run, of as many tokens as are left in the page or in the block, whichever ends first.
///
/// **Threads.** Any, as long as no thread writes to the rows that are copied.
final class JlamaKvPages implements SequenceBlockCopier {

    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;

    private final BlockShape shape;
    private final long rowBytes;
    private final int pageTokens;

    /// By layer and plane, each in the order of tokens.
    private final MemorySegment[][] pages;

    /// The pages of the first `tokens` tokens, which are made where they are missing.
    ///
    /// @param tokens at least 1
    /// @throws IllegalStateException when pages are not what this class takes them for
    JlamaKvPages(KvBuffer buffer, BlockShape shape, int tokens) {
        this.shape = shape;
        rowBytes = (long) shape.kvHeads() * shape.headDim() * shape.dtype().bytes();
        pages = new MemorySegment[shape.layers() * shape.planes()][];
        for (int layer = 0; layer < shape.layers(); layer++) {
            for (int plane = 0; plane < shape.planes(); plane++) {
                pages[layer * shape.planes() + plane] = segments(
                        plane == 0
                                ? buffer.getKeyTensorsUptoPosition(layer, tokens - 1)
                                : buffer.getValTensorsUptoPosition(layer, tokens - 1));
            }
        }
        pageTokens = Math.toIntExact(pages[0][0].byteSize() / rowBytes);
        checkPages(buffer);
    }

    private static MemorySegment[] segments(AbstractTensor<?, ?>[] tensors) {
        MemorySegment[] segments = new MemorySegment[tensors.length];
        for (int i = 0; i < tensors.length; i++) {
            segments[i] = tensors[i].getMemorySegment();
        }
        return segments;
    }

    /// A page has to be whole rows, of which the first is the row that Jlama says it is.
    private void checkPages(KvBuffer buffer) {
        AbstractTensor<?, ?> first = buffer.getKeyTensorForPosition(0, 0);
        MemorySegment row = first.getMemorySegment();
        MemorySegment page = pages[0][0];
        boolean sameRow = row.isNative() == page.isNative()
                && row.address() == page.address()
                && row.heapBase().equals(page.heapBase());
        if (!sameRow || row.byteSize() != rowBytes || pageTokens == 0 || page.byteSize() % rowBytes != 0) {
            throw new IllegalStateException(
                    "Jlama's pages are not as this adapter knows them: a row of %s bytes and a page of %s, where a row has %s"
                            .formatted(row.byteSize(), page.byteSize(), rowBytes));
        }
    }

    @Override
    public boolean copyIn(int block, MemorySegment from) {
        return visit(block, (page, inPage, inBlock, bytes) -> {
            MemorySegment.copy(from, inBlock, page, inPage, bytes);
            return true;
        });
    }

    @Override
    public void copyOut(int block, MemorySegment into) {
        visit(block, (page, inPage, inBlock, bytes) -> {
            MemorySegment.copy(page, inPage, into, inBlock, bytes);
            return true;
        });
    }

    @Override
    public boolean matches(int block, SequenceBlockCopier sequence, double tolerance) {
        JlamaKvPages other = (JlamaKvPages) sequence;
        return visit(block, (page, inPage, inBlock, bytes) -> {
            MemorySegment theirs = other.pageAt(inBlock, block);
            return MemorySegment.mismatch(page, inPage, inPage + bytes, theirs, inPage, inPage + bytes) < 0
                    || (tolerance > 0 && isWithinTolerance(page, theirs, inPage, bytes, tolerance));
        });
    }

    /// The page that has the row at an offset of a block.
    private MemorySegment pageAt(long inBlock, int block) {
        long planeBytes = rowBytes * shape.blockTokens();
        int token = block * shape.blockTokens() + (int) (inBlock % planeBytes / rowBytes);
        return pages[(int) (inBlock / planeBytes)][token / pageTokens];
    }

    private boolean isWithinTolerance(MemorySegment one, MemorySegment two, long from, long bytes, double tolerance) {
        int each = shape.dtype().bytes();
        for (long at = from; at < from + bytes; at += each) {
            double a = element(one, at);
            double b = element(two, at);
            if (!(Math.abs(a - b) <= tolerance * (1 + Math.max(Math.abs(a), Math.abs(b))))) {
                return false;
            }
        }
        return true;
    }

    private double element(MemorySegment in, long offset) {
        return shape.dtype() == Dtype.F32
                ? in.get(FLOAT, offset)
                : Float.intBitsToFloat(in.get(SHORT, offset) << Short.SIZE);
    }

    /// Handles a run of rows. Returning false ends the walk.
    @FunctionalInterface
    private interface RowRunVisitor {

        /// Takes `bytes` at `inPage` of the page, which belong at `inBlock` of the block.
        boolean visit(MemorySegment page, long inPage, long inBlock, long bytes);
    }

    private boolean visit(int block, RowRunVisitor rowRunVisitor) {
        long inBlock = 0;
        for (MemorySegment[] plane : pages) {
            int token = block * shape.blockTokens();
            int end = token + shape.blockTokens();
            while (token < end) {
                int within = token % pageTokens;
                int count = Math.min(end - token, pageTokens - within);
                if (!rowRunVisitor.visit(plane[token / pageTokens], within * rowBytes, inBlock, count * rowBytes)) {
                    return false;
                }
                inBlock += count * rowBytes;
                token += count;
            }
        }
        return true;
    }
}
