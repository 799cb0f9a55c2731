package io.kvcache.server.net;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.codec.DecoderException;
import io.netty.handler.ssl.SslHandshakeCompletionEvent;
import javax.net.ssl.SSLException;

/// Stands behind TLS: a client that does not speak it, or gives up half way, ends with a reason that is counted.
final class TlsHandshakeHandler extends ChannelInboundHandlerAdapter {

    private final Connection connection;

    TlsHandshakeHandler(Connection connection) {
        this.connection = connection;
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        if (event instanceof SslHandshakeCompletionEvent handshake && !handshake.isSuccess()) {
            connection.close(CloseReason.TLS_FAILED);
        }
        context.fireUserEventTriggered(event);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
        Throwable cause =
                failure instanceof DecoderException && failure.getCause() != null ? failure.getCause() : failure;
        if (cause instanceof SSLException) {
            connection.close(CloseReason.TLS_FAILED);
        } else {
            context.fireExceptionCaught(failure);
        }
    }
}
