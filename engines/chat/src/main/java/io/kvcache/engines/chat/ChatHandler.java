package io.kvcache.engines.chat;

import io.netty.buffer.ByteBufUtil;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.Deque;

/// One connection: which path is asked for, one request after the other.
///
/// **Threads.** The connection's loop.
final class ChatHandler extends SimpleChannelInboundHandler<FullHttpRequest> {

    private static final Logger LOG = System.getLogger(ChatHandler.class.getName());

    /// Requests that a client may send before the answer to the one before them.
    private static final int MOST_AHEAD = 16;

    private final Desk desk;
    private final Deque<FullHttpRequest> ahead = new ArrayDeque<>();
    private boolean busy;

    ChatHandler(Desk desk) {
        this.desk = desk;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
        if (!busy) {
            answer(context, request);
        } else if (ahead.size() < MOST_AHEAD) {
            ahead.add(request.retain());
        } else {
            context.close();
        }
    }

    private void answer(ChannelHandlerContext context, FullHttpRequest request) {
        busy = true;
        Reply reply = new Reply(
                context.channel(),
                HttpUtil.isKeepAlive(request),
                () -> context.executor().execute(() -> next(context)));
        String path = new QueryStringDecoder(request.uri()).path();
        switch (path) {
            case "/v1/chat/completions" -> post(request, reply, true);
            case "/v1/completions" -> post(request, reply, false);
            case "/v1/models" -> reply.whole(200, desk.models());
            case "/health" -> reply.whole(200, "{\"status\":\"ok\"}");
            case "/stats" -> reply.whole(200, desk.stats());
            case "/metrics" -> reply.metrics(desk.metrics());
            default ->
                reply.whole(
                        404,
                        Answers.error("invalid_request_error", "unknown_url", "", "there is no " + path + " here"));
        }
    }

    private void post(FullHttpRequest request, Reply reply, boolean chat) {
        if (request.method().equals(HttpMethod.POST)) {
            desk.take(chat, ByteBufUtil.getBytes(request.content()), reply);
        } else {
            reply.whole(405, Answers.error("invalid_request_error", "method_not_allowed", "", "only POST goes there"));
        }
    }

    private void next(ChannelHandlerContext context) {
        busy = false;
        FullHttpRequest request = ahead.poll();
        if (request != null) {
            try {
                answer(context, request);
            } finally {
                request.release();
            }
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        ahead.forEach(FullHttpRequest::release);
        ahead.clear();
        context.fireChannelInactive();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        if (!(cause instanceof IOException)) {
            LOG.log(Level.WARNING, "a connection is closed", cause);
        }
        context.close();
    }
}
