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
    private static final int MAX_PIPELINED = 16;

    private final ChatRequestQueue queue;
    private final Deque<FullHttpRequest> pipelined = new ArrayDeque<>();
    private boolean busy;

    ChatHandler(ChatRequestQueue chatRequestQueue) {
        this.queue = chatRequestQueue;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
        if (!busy) {
            answer(context, request);
        } else if (pipelined.size() < MAX_PIPELINED) {
            pipelined.add(request.retain());
        } else {
            context.close();
        }
    }

    private void answer(ChannelHandlerContext context, FullHttpRequest request) {
        busy = true;
        SseResponder sseResponder = new SseResponder(
                context.channel(),
                HttpUtil.isKeepAlive(request),
                () -> context.executor().execute(() -> answerNext(context)));
        String path = new QueryStringDecoder(request.uri()).path();
        switch (path) {
            case "/v1/chat/completions" -> submit(request, sseResponder, true);
            case "/v1/completions" -> submit(request, sseResponder, false);
            case "/v1/models" -> sseResponder.send(200, queue.models());
            case "/health" -> sseResponder.send(200, "{\"status\":\"ok\"}");
            case "/stats" -> sseResponder.send(200, queue.stats());
            case "/metrics" -> sseResponder.sendMetrics(queue.metrics());
            default ->
                sseResponder.send(
                        404,
                        CompletionResponses.error(
                                "invalid_request_error", "unknown_url", "", "there is no " + path + " here"));
        }
    }

    private void submit(FullHttpRequest request, SseResponder sseResponder, boolean chat) {
        if (request.method().equals(HttpMethod.POST)) {
            queue.submit(chat, ByteBufUtil.getBytes(request.content()), sseResponder);
        } else {
            sseResponder.send(
                    405,
                    CompletionResponses.error(
                            "invalid_request_error", "method_not_allowed", "", "only POST goes there"));
        }
    }

    private void answerNext(ChannelHandlerContext context) {
        busy = false;
        FullHttpRequest request = pipelined.poll();
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
        pipelined.forEach(FullHttpRequest::release);
        pipelined.clear();
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
