package io.kvcache.gpu.paging;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceSpan;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;

/// Layout of an engine's pool. A page has the KV of `pageTokens` consecutive tokens of one sequence.
///
/// A *piece* is the part of a page for one layer and one side. A side is the keys, the values, or the latent if
/// the engine has one in place of both (MLA). The order within a piece, such as `[token][kvHead][dim]`, is up to
/// the engine: its bytes go into a block and come out again unchanged. Piece `(layer, side, page)` begins at
/// `layers[layer] + side · sideStride + page · pageStride`.
///
/// A *block* has the pieces of `pagesPerBlock` pages in the order `[layer][side][page][pieceBytes]`, so
/// that the share of a layer is one run.
///
/// The `add` methods put together the copies between pages and blocks, one layer at a time. They check pages before
/// they add anything to a batch, so no copy leaves the pool. A batch takes several blocks as long as no page gets two
/// of them.
///
/// @param layers the memory of each layer, all of one size
/// @param sides 2 for keys and values, 1 for a latent
/// @param sideStride bytes from a page's keys to its values; of any value where there is one side
/// @param pages of the pool
/// @param pageStride bytes from a page's piece to that of the next page
/// @param pieceBytes of one page, layer and side
/// @param pagesPerBlock how many pages of the engine's are one block of the store's
public record PagedLayout(
        List<DeviceSpan> layers,
        int sides,
        long sideStride,
        int pages,
        long pageStride,
        long pieceBytes,
        int pagesPerBlock) {

    /// More than any device has; sums of a few of these are still numbers.
    private static final long MAX_BYTES = 1L << 60;

    /// Checks that every piece lies in the memory of its layer, and none over another of that layer.
    public PagedLayout {
        layers = List.copyOf(layers);
        require(!layers.isEmpty(), "layers", layers.size(), "1 and up");
        require(sides == 1 || sides == 2, "sides", sides, "1 or 2");
        require(pages >= 1, "pages", pages, "1 and up");
        require(pieceBytes >= 1, "pieceBytes", pieceBytes, "1 and up");
        require(pagesPerBlock >= 1, "pagesPerBlock", pagesPerBlock, "1 and up");
        require(pages == 1 || pageStride >= pieceBytes, "pageStride", pageStride, "pieceBytes and up");
        long ofOneSide = requireLimit("bytes of a side", pages == 1 ? 0 : pages - 1, pageStride) + pieceBytes;
        boolean apart = sides == 1
                || sideStride >= ofOneSide
                || (sideStride >= pieceBytes && (pages == 1 || sideStride + pieceBytes <= pageStride));
        require(apart, "sideStride", sideStride, "what keeps keys and values apart");
        requireLimit(
                "bytes of a block",
                (long) layers.size() * sides,
                requireLimit("pages of a block", pagesPerBlock, pieceBytes));
        long needed = (sides == 1 ? 0 : requireLimit("sideStride", 1, sideStride)) + ofOneSide;
        for (DeviceSpan layer : layers) {
            require(layer.bytes() >= needed, "bytes of a layer", layer.bytes(), needed + " and up");
        }
    }

    /// A product that leaves room for a few more of its kind; an engine may describe any layout.
    private static long requireLimit(String what, long count, long bytes) {
        long high = Math.multiplyHigh(count, bytes);
        long product = count * bytes;
        require(high == 0 && product >= 0 && product < MAX_BYTES, what, product, "less than 2^60");
        return product;
    }

    private static void require(boolean holds, String what, long value, String range) {
        if (!holds) {
            throw new IllegalArgumentException("a paged layout with " + what + " " + value + "; it takes " + range);
        }
    }

    /// Each layer by itself, `[sides][pages][piece]`: keys of all pages, then values.
    public static PagedLayout sideFirst(
            List<DeviceSpan> layers, int sides, int pages, long pieceBytes, int pagesPerBlock) {
        return new PagedLayout(layers, sides, pages * pieceBytes, pages, pieceBytes, pieceBytes, pagesPerBlock);
    }

    /// Each layer by itself, `[pages][sides][piece]`: keys and values of a page beside each other.
    public static PagedLayout pageFirst(
            List<DeviceSpan> layers, int sides, int pages, long pieceBytes, int pagesPerBlock) {
        return new PagedLayout(layers, sides, pieceBytes, pages, sides * pieceBytes, pieceBytes, pagesPerBlock);
    }

    /// All layers together, `[pages][layers][sides][piece]`: a page is one run.
    ///
    /// @param pool all of it
    public static PagedLayout blockFirst(
            DeviceSpan pool, int layers, int sides, int pages, long pieceBytes, int pagesPerBlock) {
        long share = sides * pieceBytes;
        long stride = layers * share;
        List<DeviceSpan> spans = IntStream.range(0, layers)
                .mapToObj(layer -> pool.slice(layer * share, (pages - 1) * stride + share))
                .toList();
        return new PagedLayout(spans, sides, pieceBytes, pages, stride, pieceBytes, pagesPerBlock);
    }

    /// The same pool as far as some layers go. A block of it is the share of these layers, one run of a whole block.
    ///
    /// @param fromLayer the first
    /// @param toLayer behind the last
    public PagedLayout ofLayers(int fromLayer, int toLayer) {
        return new PagedLayout(
                layers.subList(fromLayer, toLayer), sides, sideStride, pages, pageStride, pieceBytes, pagesPerBlock);
    }

    /// Bytes of a block.
    public long blockBytes() {
        return layers.size() * layerBytes();
    }

    /// Bytes that a block has of one layer.
    public long layerBytes() {
        return (long) sides * pagesPerBlock * pieceBytes;
    }

    /// Returns the offset of a piece in a block.
    ///
    /// @param ordinal of the page within the block, `0 <= ordinal < pagesPerBlock`
    public long offsetInBlock(int layer, int side, int ordinal) {
        return ((long) (layer * sides + side) * pagesPerBlock + ordinal) * pieceBytes;
    }

    /// Returns the address of a piece in the pool.
    ///
    /// @throws IndexOutOfBoundsException for a page that the pool does not have
    public DeviceAddress pieceAddress(int layer, int side, int page) {
        Objects.checkIndex(side, sides);
        Objects.checkIndex(page, pages);
        return layers.get(layer).address().plus(side * sideStride + page * pageStride);
    }

    /// Returns whether every piece begins and ends at a multiple of this unit.
    boolean isAlignedTo(int unitBytes) {
        long all = pieceBytes | (pages == 1 ? 0 : pageStride) | (sides == 1 ? 0 : sideStride);
        for (DeviceSpan layer : layers) {
            all |= layer.address().value();
        }
        return all % unitBytes == 0;
    }

    /// Refuses a pool whose pieces overlap: what is loaded into one would be lost to another. Also refuses layouts that
    /// no engine has, as where layers take turns at other than whole pages.
    ///
    /// @throws IllegalArgumentException then
    public void requireDisjoint() {
        if (!isDisjoint()) {
            throw new IllegalArgumentException("layers or sides of the pool overlap; they take "
                    + "places of their own, or take turns within each page");
        }
    }

    private boolean isDisjoint() {
        long[] starts = layers.stream()
                .mapToLong(layer -> layer.address().value())
                .flatMap(start -> IntStream.range(0, sides).mapToLong(side -> start + side * sideStride))
                .sorted()
                .toArray();
        long stride = pages == 1 ? pieceBytes : pageStride;
        long first = starts[0];
        for (int i = 1; i < starts.length; i++) {
            boolean besides = starts[i] - first + pieceBytes <= stride; // the same page of another layer or side
            long least = starts[i - 1] + pieceBytes + (besides ? 0 : (pages - 1) * stride);
            if (starts[i] < least) {
                return false;
            }
            first = besides ? first : starts[i];
        }
        return stride >= pieceBytes;
    }

    /// Returns how many copies the pieces of these pages take, where adjacent pages of a block are copied together.
    ///
    /// @param blocks pages of each
    long runs(List<int[]> blocks) {
        long runs = 0;
        for (int[] block : blocks) {
            runs++;
            for (int i = 1; i < block.length; i++) {
                runs += pageStride == pieceBytes && block[i] == block[i - 1] + 1 ? 0 : 1;
            }
        }
        return runs * layers.size() * sides;
    }

    /// Checks the number of a page.
    ///
    /// @throws IllegalArgumentException unless it is a page of the pool
    public void requirePage(int page) {
        if (page < 0 || page >= pages) {
            throw new IllegalArgumentException("page " + page + "; the pool has 0 to " + (pages - 1));
        }
    }

    /// Refuses pages that a block cannot be copied from or to.
    ///
    /// @throws IllegalArgumentException for another number of pages than a block has, a page that the
    ///     pool does not have, or one that comes twice
    public void requirePages(int... of) {
        if (of.length != pagesPerBlock) {
            throw new IllegalArgumentException(of.length + " pages for a block; it takes " + pagesPerBlock);
        }
        for (int i = 0; i < of.length; i++) {
            requirePage(of[i]);
            for (int j = 0; j < i; j++) {
                require(of[i] != of[j], "a block with page", of[i], "each page once");
            }
        }
    }

    /// Adds to a batch for host memory what a block takes of its pages.
    ///
    /// @param block native memory of [#blockBytes]
    public void addOffload(int[] blockPages, MemorySegment block, int layer, CopyBatch toHost) {
        requireBlock(blockPages, block.byteSize());
        forEachPiece(
                blockPages,
                layer,
                (offset, side, page) -> toHost.add(block.asSlice(offset, pieceBytes), pieceAddress(layer, side, page)));
    }

    /// Adds to a batch for the device what pages take of their block.
    ///
    /// @param block native memory of [#blockBytes]
    public void addOnboard(MemorySegment block, int[] blockPages, int layer, CopyBatch toDevice) {
        requireBlock(blockPages, block.byteSize());
        forEachPiece(
                blockPages,
                layer,
                (offset, side, page) ->
                        toDevice.add(block.asSlice(offset, pieceBytes), pieceAddress(layer, side, page)));
    }

    /// Adds to a batch within the device what a block there takes of its pages.
    public void addGather(int[] blockPages, DeviceSpan block, int layer, CopyBatch within) {
        requireBlock(blockPages, block.bytes());
        forEachPiece(
                blockPages,
                layer,
                (offset, side, page) -> within.add(
                        pieceAddress(layer, side, page), block.address().plus(offset), pieceBytes));
    }

    /// Adds to a batch within the device what pages take of a block there.
    public void addScatter(DeviceSpan block, int[] blockPages, int layer, CopyBatch within) {
        requireBlock(blockPages, block.bytes());
        forEachPiece(
                blockPages,
                layer,
                (offset, side, page) ->
                        within.add(block.address().plus(offset), pieceAddress(layer, side, page), pieceBytes));
    }

    private void requireBlock(int[] blockPages, long bytes) {
        requirePages(blockPages);
        if (bytes != blockBytes()) {
            throw new IllegalArgumentException("a block of " + bytes + " bytes; this pool's have " + blockBytes());
        }
    }

    private interface PieceAction {

        void use(long offsetInBlock, int side, int page);
    }

    private void forEachPiece(int[] blockPages, int layer, PieceAction action) {
        for (int side = 0; side < sides; side++) {
            for (int ordinal = 0; ordinal < blockPages.length; ordinal++) {
                action.use(offsetInBlock(layer, side, ordinal), side, blockPages[ordinal]);
            }
        }
    }
}
