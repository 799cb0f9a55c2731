package io.kvcache.transport.wire;

import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.identity.PartKind;
import io.kvcache.core.identity.RopeOrigin;
import java.util.List;

/// A namespace with all its fields, the salt included: what REGISTER carries.
///
/// ```
/// u32 parts, u32 0, texts: model revision dtype layout adapter tenant salt, then for each part 40 bytes:
///  0 u16 group   2 u16 rank   4 u8 kind   5 u8 dtype   6 u8 order   7 u8 planes   8 u32 window   12 u32 layers
/// 16 u32 heads  20 u32 dim   24 u32 tokens  28 i32 base position   32 u64 0
/// ```
public final class NamespaceCodec {

    /// By their codes.
    private static final List<PartKind> KINDS = List.of(PartKind.FULL, PartKind.WINDOW, PartKind.STATE);

    private static final List<Dtype> DTYPES =
            List.of(Dtype.F32, Dtype.F16, Dtype.BF16, Dtype.FP8_E4M3, Dtype.FP8_E5M2, Dtype.INT8);
    private static final List<AxisOrder> ORDERS = List.of(AxisOrder.LAYER_KV_HEAD_TOKEN, AxisOrder.LAYER_KV_TOKEN_HEAD);

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
        to.oneOf(part.kind(), KINDS).oneOf(shape.dtype(), DTYPES).oneOf(shape.order(), ORDERS);
        to.u8(shape.planes());
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
            throw new ProtocolException("parts = %s; allowed: 0 to %s".formatted(parts, Namespace.MAX_PARTS));
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
        PartKind kind = from.oneOf("kind", KINDS);
        Dtype dtype = from.oneOf("dtype", DTYPES);
        AxisOrder order = from.oneOf("order", ORDERS);
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
}
