package io.kvcache.server.block;

import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.server.http.JsonBodyHandler;
import io.kvcache.server.http.ProblemDetails;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
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

    /// Returns a namespace's description for a reply. Leaves its salt out.
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

    /// The block shape that a client expects, from the header `KVCache-Shape`:
    /// `layers x planes x kvHeads x blockTokens x headDim dtype [order]`, as in `32x2x8x16x128 bf16`.
    static final class ShapeHeader {

        static final String HEADER = "KVCache-Shape";

        private static final Pattern FORMAT =
                Pattern.compile("(\\d{1,9})x(\\d{1,9})x(\\d{1,9})x(\\d{1,9})x(\\d{1,9}) +(\\w+)(?: +(\\w+))?");

        private ShapeHeader() {}

        /// Returns the problem with the shape that a request names, or null when it names none or the right one.
        static @Nullable ProblemDetails findProblem(HttpHeaders headers, Namespace namespace) {
            String text = headers.get(HEADER);
            if (text == null) {
                return null;
            }
            BlockShape asked;
            try {
                asked = parse(text.strip());
            } catch (IllegalArgumentException mistake) {
                return new ProblemDetails(
                        HttpResponseStatus.BAD_REQUEST, HEADER + " is '" + text + "'; " + mistake.getMessage());
            }
            return asked.equals(NamespaceJson.shapeOf(namespace)) ? null : mismatchProblem(namespace, asked);
        }

        static ProblemDetails mismatchProblem(Namespace registered, BlockShape asked) {
            BlockShape shape = NamespaceJson.shapeOf(registered);
            return ProblemDetails.withType(
                            HttpResponseStatus.CONFLICT,
                            "shape-mismatch",
                            "namespace " + registered.model() + " has blocks of " + shape.describe() + "; not of "
                                    + asked.describe())
                    .withMember("registered", NamespaceJson.toJson(shape))
                    .withMember("asked", NamespaceJson.toJson(asked));
        }

        private static BlockShape parse(String text) {
            Matcher form = FORMAT.matcher(text);
            if (!form.matches()) {
                throw new IllegalArgumentException(
                        "it takes layers x planes x kvHeads x blockTokens x headDim and a type, as in 32x2x8x16x128 bf16");
            }
            String order = form.group(7);
            return new BlockShape(
                    Integer.parseInt(form.group(1)),
                    Integer.parseInt(form.group(2)),
                    Integer.parseInt(form.group(3)),
                    Integer.parseInt(form.group(5)),
                    Integer.parseInt(form.group(4)),
                    Dtype.valueOf(form.group(6).toUpperCase(Locale.ROOT)),
                    order == null ? AxisOrder.LAYER_KV_HEAD_TOKEN : AxisOrder.valueOf(order.toUpperCase(Locale.ROOT)));
        }
    }
}
