package io.kvcache.server.block;

import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.server.http.JsonBodyHandler;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import tools.jackson.databind.JsonNode;

/// A namespace as JSON has it.
final class NamespaceJson {

    private static final List<String> MEMBERS = List.of("revision", "dtype", "layout", "adapter", "salt", "shape");
    private static final List<String> SHAPE =
            List.of("layers", "planes", "kvHeads", "headDim", "blockTokens", "dtype", "order");

    private NamespaceJson() {}

    /// Reads a namespace of one part.
    ///
    /// @throws IllegalArgumentException that says which member is wrong and what it takes
    static Namespace fromJson(JsonNode from, String name, String tenant) {
        JsonBodyHandler.requireKnownMembers(from, MEMBERS);
        JsonNode shape = from.get("shape");
        if (shape == null || !shape.isObject()) {
            throw new IllegalArgumentException("shape takes an object with " + String.join(", ", SHAPE));
        }
        BlockShape read = shape(shape);
        return Namespace.builder(name)
                .tenant(tenant)
                .revision(JsonBodyHandler.textMember(from, "revision", ""))
                .dtype(JsonBodyHandler.textMember(from, "dtype", lowerCaseName(read.dtype())))
                .layout(JsonBodyHandler.textMember(from, "layout", ""))
                .adapter(JsonBodyHandler.textMember(from, "adapter", ""))
                .salt(JsonBodyHandler.textMember(from, "salt", ""))
                .part(Part.full(read))
                .build();
    }

    private static BlockShape shape(JsonNode from) {
        JsonBodyHandler.requireKnownMembers(from, SHAPE);
        return new BlockShape(
                JsonBodyHandler.integerMember(from, "layers"),
                from.has("planes") ? JsonBodyHandler.integerMember(from, "planes") : 2,
                JsonBodyHandler.integerMember(from, "kvHeads"),
                JsonBodyHandler.integerMember(from, "headDim"),
                JsonBodyHandler.integerMember(from, "blockTokens"),
                parseEnum(Dtype.class, "dtype", JsonBodyHandler.textMember(from, "dtype", "")),
                parseEnum(
                        AxisOrder.class,
                        "order",
                        JsonBodyHandler.textMember(from, "order", lowerCaseName(AxisOrder.LAYER_KV_HEAD_TOKEN))));
    }

    private static <E extends Enum<E>> E parseEnum(Class<E> type, String name, String text) {
        for (E each : type.getEnumConstants()) {
            if (lowerCaseName(each).equals(text.toLowerCase(Locale.ROOT))) {
                return each;
            }
        }
        List<String> all = Arrays.stream(type.getEnumConstants())
                .map(NamespaceJson::lowerCaseName)
                .toList();
        throw new IllegalArgumentException(name + " is '" + text + "'; it takes " + String.join(", ", all));
    }

    private static String lowerCaseName(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT);
    }

    static BlockShape shapeOf(Namespace namespace) {
        return namespace.parts().getFirst().shape();
    }

    /// What is answered of a namespace; not its salt.
    static Map<String, Object> toJson(Namespace namespace) {
        BlockShape shape = shapeOf(namespace);
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("name", namespace.model());
        all.put("revision", namespace.revision());
        all.put("dtype", namespace.dtype());
        all.put("layout", namespace.layout());
        all.put("adapter", namespace.adapter());
        all.put("blockTokens", shape.blockTokens());
        all.put("blockBytes", shape.bytes());
        all.put("shape", toJson(shape));
        all.put("digest", HexFormat.of().formatHex(namespace.digest()));
        return all;
    }

    static Map<String, Object> toJson(BlockShape shape) {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("layers", shape.layers());
        all.put("planes", shape.planes());
        all.put("kvHeads", shape.kvHeads());
        all.put("headDim", shape.headDim());
        all.put("blockTokens", shape.blockTokens());
        all.put("dtype", lowerCaseName(shape.dtype()));
        all.put("order", lowerCaseName(shape.order()));
        return all;
    }
}
