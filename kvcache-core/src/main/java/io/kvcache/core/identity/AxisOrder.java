package io.kvcache.core.identity;

/// The order of the axes inside a block, outermost first.
public enum AxisOrder {
    /// `[layer][K|V][kvHead][token][dim]`, the preferred order: what one head of one layer reads is contiguous,
    /// and a tensor-parallel rank that takes some of the heads takes one run of bytes per layer and plane.
    LAYER_KV_HEAD_TOKEN("[layer][K|V][kvHead][token][dim]"),

    /// `[layer][K|V][token][kvHead][dim]`, the order in which most engines compute: all heads of a token are
    /// adjacent.
    LAYER_KV_TOKEN_HEAD("[layer][K|V][token][kvHead][dim]");

    private final String axes;

    AxisOrder(String axes) {
        this.axes = axes;
    }

    /// The axes in words, for messages.
    public String axes() {
        return axes;
    }
}
