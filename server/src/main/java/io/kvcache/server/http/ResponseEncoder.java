package io.kvcache.server.http;

import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseEncoder;
import java.util.function.BooleanSupplier;

/// Encodes replies; those to HEAD have no body, whatever they are written with.
final class ResponseEncoder extends HttpResponseEncoder {

    private final BooleanSupplier headRequest;

    /// @param head whether the request that is being answered is a HEAD
    ResponseEncoder(BooleanSupplier head) {
        this.headRequest = head;
    }

    @Override
    protected boolean isContentAlwaysEmpty(HttpResponse reply) {
        return headRequest.getAsBoolean() || super.isContentAlwaysEmpty(reply);
    }
}
