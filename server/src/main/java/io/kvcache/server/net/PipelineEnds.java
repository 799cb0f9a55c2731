package io.kvcache.server.net;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/// The two ends of every pipeline: counts what comes in, and is the last to hear of a failure.
final class PipelineEnds {

    private static final Logger LOG = System.getLogger(PipelineEnds.class.getName());

    private PipelineEnds() {}

    /// Stands first.
    static final class Head extends ChannelInboundHandlerAdapter {

        private final ConnectionRegistry connectionRegistry;
        private final Connection connection;

        Head(ConnectionRegistry connectionRegistry, Connection connection) {
            this.connectionRegistry = connectionRegistry;
            this.connection = connection;
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            if (message instanceof ByteBuf bytes) {
                connection.onRead(bytes.readableBytes(), connectionRegistry.nowNanos());
            }
            context.fireChannelRead(message);
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            connectionRegistry.onClosed(connection);
            context.fireChannelInactive();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
            fail(connection, failure);
        }
    }

    /// What no protocol has caught: the network failed, or there is a bug.
    static void fail(Connection connection, Throwable failure) {
        if (failure instanceof IOException) {
            connection.close(CloseReason.IO_ERROR);
        } else {
            LOG.log(Level.ERROR, "connection " + connection.id() + " failed", failure);
            connection.close(CloseReason.BUG);
        }
    }

    /// Stands last.
    static final class Tail extends ChannelInboundHandlerAdapter {

        private final Connection connection;

        Tail(Connection connection) {
            this.connection = connection;
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
            fail(connection, failure);
        }
    }
}
