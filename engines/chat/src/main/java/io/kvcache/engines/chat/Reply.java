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
final class Reply {

    private final Channel channel;
    private final boolean keepAlive;
    private final Runnable done;
    private boolean opened;
    private boolean ended;

    /// @param keepAlive whether the connection stays for the next request
    /// @param done run, on the connection's loop or not, once all is written
    Reply(Channel channel, boolean keepAlive, Runnable done) {
        this.channel = channel;
        this.keepAlive = keepAlive;
        this.done = done;
    }

    /// Whether somebody still listens.
    boolean wanted() {
        return channel.isActive();
    }

    boolean opened() {
        return opened;
    }

    /// Answers wholly.
    void whole(int status, String json) {
        whole(status, HttpHeaderValues.APPLICATION_JSON.toString(), json);
    }

    /// Answers by the text that Prometheus reads.
    void metrics(String text) {
        whole(200, "text/plain; version=0.0.4; charset=utf-8", text);
    }

    private void whole(int status, String type, String text) {
        opened = true;
        ByteBuf body = ByteBufUtil.writeUtf8(channel.alloc(), text);
        DefaultFullHttpResponse response =
                new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.valueOf(status), body);
        response.headers().set(HttpHeaderNames.CONTENT_TYPE, type);
        response.headers().setInt(HttpHeaderNames.CONTENT_LENGTH, body.readableBytes());
        HttpUtil.setKeepAlive(response, keepAlive);
        finish(response);
    }

    /// Begins a stream.
    void open() {
        opened = true;
        HttpResponse response = new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK);
        response.headers().set(HttpHeaderNames.CONTENT_TYPE, "text/event-stream; charset=utf-8");
        response.headers().set(HttpHeaderNames.CACHE_CONTROL, HttpHeaderValues.NO_CACHE);
        HttpUtil.setTransferEncodingChunked(response, true);
        HttpUtil.setKeepAlive(response, keepAlive);
        channel.write(response);
    }

    /// Sends one event.
    void piece(String json) {
        channel.writeAndFlush(new DefaultHttpContent(ByteBufUtil.writeUtf8(channel.alloc(), "data: " + json + "\n\n")));
    }

    /// Ends a stream.
    void end() {
        channel.write(new DefaultHttpContent(ByteBufUtil.writeUtf8(channel.alloc(), "data: [DONE]\n\n")));
        finish(LastHttpContent.EMPTY_LAST_CONTENT);
    }

    /// Says that something broke: by a status where there is still one to say, else by an end that comes
    /// too early.
    void fail(int status, String json) {
        if (!opened) {
            whole(status, json);
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
