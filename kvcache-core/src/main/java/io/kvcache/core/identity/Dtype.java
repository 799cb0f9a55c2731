package io.kvcache.core.identity;

/// The type of one stored K or V element.
///
/// The name of a constant is part of a namespace's digest: renaming one makes all stored blocks of that type
/// unfindable.
public enum Dtype {
    F32(4),
    F16(2),
    BF16(2),
    FP8_E4M3(1),
    FP8_E5M2(1),
    /// Also stands for opaque bytes, such as a latent row that packs quantised values with their scales.
    INT8(1);

    private final int bytes;

    Dtype(int bytes) {
        this.bytes = bytes;
    }

    /// Bytes one element takes.
    public int bytes() {
        return bytes;
    }
}
