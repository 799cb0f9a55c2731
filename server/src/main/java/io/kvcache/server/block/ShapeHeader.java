package io.kvcache.server.block;

import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.http.ProblemDetails;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// What a client takes a namespace's blocks for, in the header `KVCache-Shape`:
/// `layers x planes x kvHeads x blockTokens x headDim dtype [order]`, as in `32x2x8x16x128 bf16`.
final class ShapeHeader {

    static final String HEADER = "KVCache-Shape";

    private static final Pattern FORMAT =
            Pattern.compile("(\\d{1,9})x(\\d{1,9})x(\\d{1,9})x(\\d{1,9})x(\\d{1,9}) +(\\w+)(?: +(\\w+))?");

    private ShapeHeader() {}

    /// What is wrong with the shape that a request names, or null when it names none or the right one.
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
