package io.kvcache.transport.wire;

import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.identity.PartKind;
import io.kvcache.core.identity.RopeOrigin;

/// A namespace with all its fields, the salt included: what REGISTER carries.
///
/// ```
/// u32 parts, u32 0, texts: model revision dtype layout adapter tenant salt, then for each part 40 bytes:
///  0 u16 group   2 u16 rank   4 u8 kind   5 u8 dtype   6 u8 order   7 u8 planes   8 u32 window   12 u32 layers
/// 16 u32 heads  20 u32 dim   24 u32 tokens  28 i32 base position   32 u64 0
/// ```
public final class NamespaceCodec {

    private NamespaceCodec() {}

    /// Writes a namespace.
    public static void write(Namespace from, BodyWriter to) {
        to.i32(from.parts().size()).i32(0);
        to.text(from.model()).text(from.revision()).text(from.dtype()).text(from.layout());
        to.text(from.adapter()).text(from.tenant()).text(from.salt());
        from.parts().forEach(part -> write(part, to));
    }

    private static void write(Part part, BodyWriter to) {
        BlockShape shape = part.shape();
        to.u16(part.group()).u16(part.rank());
        to.u8(kind(part.kind()))
                .u8(dtype(shape.dtype()))
                .u8(order(shape.order()))
                .u8(shape.planes());
        to.i32(part.window()).i32(shape.layers()).i32(shape.kvHeads()).i32(shape.headDim());
        to.i32(shape.blockTokens()).i32(part.rotation().basePosition()).i64(0);
    }

    /// Reads a namespace.
    ///
    /// @throws ProtocolException when the body is too short or a number stands for nothing
    /// @throws IllegalArgumentException when there can be no such namespace
    public static Namespace read(BodyReader from) throws ProtocolException {
        int parts = from.count("parts");
        if (parts > Namespace.MAX_PARTS) {
            throw new ProtocolException("parts = %d; allowed: 0 to %d".formatted(parts, Namespace.MAX_PARTS));
        }
        Namespace.Builder to = Namespace.builder(from.skip(Integer.BYTES).text("model"));
        to.revision(from.text("revision")).dtype(from.text("dtype")).layout(from.text("layout"));
        to.adapter(from.text("adapter")).tenant(from.text("tenant")).salt(from.text("salt"));
        for (int i = 0; i < parts; i++) {
            to.part(part(from));
        }
        return to.build();
    }

    private static Part part(BodyReader from) throws ProtocolException {
        int group = from.u16("group");
        int rank = from.u16("rank");
        PartKind kind = kind(from.u8("kind"));
        Dtype dtype = dtype(from.u8("dtype"));
        AxisOrder order = order(from.u8("order"));
        int planes = from.u8("planes");
        int window = from.count("window");
        int layers = from.count("layers");
        int heads = from.count("heads");
        int dim = from.count("dim");
        BlockShape shape = new BlockShape(layers, planes, heads, dim, from.count("tokens"), dtype, order);
        RopeOrigin rotation = new RopeOrigin(from.i32("base position"));
        from.skip(Long.BYTES);
        return new Part(group, rank, kind, window, shape, rotation);
    }

    private static int kind(PartKind kind) {
        return switch (kind) {
            case FULL -> 0;
            case WINDOW -> 1;
            case STATE -> 2;
        };
    }

    private static PartKind kind(int code) throws ProtocolException {
        return switch (code) {
            case 0 -> PartKind.FULL;
            case 1 -> PartKind.WINDOW;
            case 2 -> PartKind.STATE;
            default -> throw new ProtocolException("kind = " + code + "; allowed: 0 to 2");
        };
    }

    private static int dtype(Dtype dtype) {
        return switch (dtype) {
            case F32 -> 0;
            case F16 -> 1;
            case BF16 -> 2;
            case FP8_E4M3 -> 3;
            case FP8_E5M2 -> 4;
            case INT8 -> 5;
        };
    }

    private static Dtype dtype(int code) throws ProtocolException {
        return switch (code) {
            case 0 -> Dtype.F32;
            case 1 -> Dtype.F16;
            case 2 -> Dtype.BF16;
            case 3 -> Dtype.FP8_E4M3;
            case 4 -> Dtype.FP8_E5M2;
            case 5 -> Dtype.INT8;
            default -> throw new ProtocolException("dtype = " + code + "; allowed: 0 to 5");
        };
    }

    private static int order(AxisOrder order) {
        return switch (order) {
            case LAYER_KV_HEAD_TOKEN -> 0;
            case LAYER_KV_TOKEN_HEAD -> 1;
        };
    }

    private static AxisOrder order(int code) throws ProtocolException {
        return switch (code) {
            case 0 -> AxisOrder.LAYER_KV_HEAD_TOKEN;
            case 1 -> AxisOrder.LAYER_KV_TOKEN_HEAD;
            default -> throw new ProtocolException("order = " + code + "; allowed: 0 to 1");
        };
    }
}
