package io.kvcache.core.identity;

/// The array that one part of a block is: how many layers, planes, heads, tokens and dimensions, of which type,
/// in which order.
///
/// An element's place follows from [#order], outermost axis first; there is no padding inside a block. `planes`
/// is 2 where K and V are stored apart and 1 where a layer stores one latent row per token (multi-head latent
/// attention). The byte ranges below are relative to the block's first byte.
///
/// @param layers layers stored, 1 to 1,024
/// @param planes 2 for K and V, 1 for a latent
/// @param kvHeads K/V heads stored of each layer (of this rank), 1 to 4,096
/// @param headDim elements of one head's row, 1 to 65,536
/// @param blockTokens consecutive tokens a block holds, 1 to 65,536
/// @param dtype the type of an element
/// @param order the order of the axes
public record BlockShape(
        int layers, int planes, int kvHeads, int headDim, int blockTokens, Dtype dtype, AxisOrder order) {

    /// The largest block, or entry of a window or state: 256 MiB, eight of the largest slabs. [Part] checks it.
    public static final long MAX_BYTES = 256L << 20;

    private static final ValueRange LAYERS = new ValueRange("layers", 1, 1024);
    private static final ValueRange PLANES = new ValueRange("planes", 1, 2);
    private static final ValueRange KV_HEADS = new ValueRange("kvHeads", 1, 4096);
    private static final ValueRange HEAD_DIM = new ValueRange("headDim", 1, 65_536);
    private static final ValueRange BLOCK_TOKENS = new ValueRange("blockTokens", 1, 65_536);

    public BlockShape {
        LAYERS.check(layers);
        PLANES.check(planes);
        KV_HEADS.check(kvHeads);
        HEAD_DIM.check(headDim);
        BLOCK_TOKENS.check(blockTokens);
        // The limits multiply to 2^57 with the widest type, 4 bytes: no product of them overflows a long.
    }

    /// K and V of `kvHeads` heads a layer, in the preferred order.
    public static BlockShape kv(int layers, int kvHeads, int headDim, int blockTokens, Dtype dtype) {
        return new BlockShape(layers, 2, kvHeads, headDim, blockTokens, dtype, AxisOrder.LAYER_KV_HEAD_TOKEN);
    }

    /// One latent row of `latentDim` elements per token and layer, as multi-head latent attention stores it.
    public static BlockShape mla(int layers, int latentDim, int blockTokens, Dtype dtype) {
        return new BlockShape(layers, 1, 1, latentDim, blockTokens, dtype, AxisOrder.LAYER_KV_HEAD_TOKEN);
    }

    /// The same shape with its axes in another order.
    public BlockShape withOrder(AxisOrder newOrder) {
        return new BlockShape(layers, planes, kvHeads, headDim, blockTokens, dtype, newOrder);
    }

    /// Bytes of a whole block.
    public long bytes() {
        return tokenBytes() * blockTokens;
    }

    /// Bytes that one token takes in all layers.
    public long tokenBytes() {
        return (long) layers * planes * kvHeads * rowBytes();
    }

    /// All of one layer: K, then V, of every head and token.
    public ByteRange layerSlice(int layer) {
        long layerBytes = planes * planeBytes();
        return new ByteRange(ValueRange.checkIndex("layer", layer, layers) * layerBytes, layerBytes);
    }

    /// One head of one layer, for all tokens of the block in token order.
    ///
    /// @param plane 0 for K (or the latent), 1 for V
    public StridedRange headSlice(int layer, int plane, int head) {
        long first = tokenRow(layer, plane, head, 0).offset();
        return StridedRange.coalesced(first, rowBytes(), tokenStride(), blockTokens);
    }

    /// The `headDim` elements of one head of one token.
    ///
    /// @param plane 0 for K (or the latent), 1 for V
    public ByteRange tokenRow(int layer, int plane, int head, int token) {
        long planeIndex = (long) ValueRange.checkIndex("layer", layer, layers) * planes
                + ValueRange.checkIndex("plane", plane, planes);
        long row = planeIndex * planeBytes()
                + ValueRange.checkIndex("head", head, kvHeads) * headStride()
                + ValueRange.checkIndex("token", token, blockTokens) * tokenStride();
        return new ByteRange(row, rowBytes());
    }

    /// The shape in one line, for messages.
    public String describe() {
        return "%s layers x %s x %s heads x %s tokens x %s %s, order %s, %s bytes"
                .formatted(
                        layers,
                        planes == 2 ? "K+V" : "latent",
                        kvHeads,
                        blockTokens,
                        headDim,
                        dtype,
                        order.axes(),
                        bytes());
    }

    @Override
    public String toString() {
        return describe();
    }

    private long rowBytes() {
        return (long) headDim * dtype.bytes();
    }

    private long planeBytes() {
        return (long) kvHeads * blockTokens * rowBytes();
    }

    private long headStride() {
        return switch (order) {
            case LAYER_KV_HEAD_TOKEN -> blockTokens * rowBytes();
            case LAYER_KV_TOKEN_HEAD -> rowBytes();
        };
    }

    private long tokenStride() {
        return switch (order) {
            case LAYER_KV_HEAD_TOKEN -> rowBytes();
            case LAYER_KV_TOKEN_HEAD -> kvHeads * rowBytes();
        };
    }
}
