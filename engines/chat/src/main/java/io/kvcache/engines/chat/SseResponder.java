package io.kvcache.engines.chat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;

/// The answer to one request over HTTP: whole, or as a stream of server-sent events.
///
/// **Threads.** One at a time; Netty brings what is written to the connection's loop, in order.
final class SseResponder {

    private final Channel channel;
    private final boolean keepAlive;
    private final Runnable done;
    private boolean streaming;
    private boolean ended;

    /// @param keepAlive whether the connection stays for the next request
    /// @param done run, on the connection's loop or not, once all is written
    SseResponder(Channel channel, boolean keepAlive, Runnable done) {
        this.channel = channel;
        this.keepAlive = keepAlive;
        this.done = done;
    }

    /// Returns whether the client is still connected.
    boolean isConnected() {
        return channel.isActive();
    }

    boolean isStreaming() {
        return streaming;
    }

    void send(int status, String json) {
        send(status, HttpHeaderValues.APPLICATION_JSON.toString(), json);
    }

    /// Answers by the text that Prometheus reads.
    void sendMetrics(String text) {
        send(200, "text/plain; version=0.0.4; charset=utf-8", text);
    }

    private void send(int status, String type, String text) {
        streaming = true;
        ByteBuf body = ByteBufUtil.writeUtf8(channel.alloc(), text);
        DefaultFullHttpResponse response =
                new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.valueOf(status), body);
        response.headers().set(HttpHeaderNames.CONTENT_TYPE, type);
        response.headers().setInt(HttpHeaderNames.CONTENT_LENGTH, body.readableBytes());
        HttpUtil.setKeepAlive(response, keepAlive);
        finish(response);
    }

    void startStream() {
        streaming = true;
        HttpResponse response = new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK);
        response.headers().set(HttpHeaderNames.CONTENT_TYPE, "text/event-stream; charset=utf-8");
        response.headers().set(HttpHeaderNames.CACHE_CONTROL, HttpHeaderValues.NO_CACHE);
        HttpUtil.setTransferEncodingChunked(response, true);
        HttpUtil.setKeepAlive(response, keepAlive);
        channel.write(response);
    }

    void sendEvent(String json) {
        channel.writeAndFlush(new DefaultHttpContent(ByteBufUtil.writeUtf8(channel.alloc(), "data: " + json + "\n\n")));
    }

    void endStream() {
        channel.write(new DefaultHttpContent(ByteBufUtil.writeUtf8(channel.alloc(), "data: [DONE]\n\n")));
        finish(LastHttpContent.EMPTY_LAST_CONTENT);
    }

    /// Says that something broke: by a status where there is still one to say, else by an end that comes
    /// too early.
    void fail(int status, String json) {
        if (!streaming) {
            send(status, json);
        } else if (!ended) {
            channel.close();
        }
    }

    private void finish(Object last) {
        ended = true;
        channel.writeAndFlush(last).addListener((ChannelFutureListener) written -> {
            if (!keepAlive || !written.isSuccess()) {
                written.channel().close();
            }
        });
        done.run();
    }
}
