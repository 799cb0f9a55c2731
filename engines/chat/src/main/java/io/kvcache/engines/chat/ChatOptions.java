package io.kvcache.engines.chat;

import java.net.InetSocketAddress;

/// How a chat server serves.
///
/// @param address where it listens; port 0 takes any that is free
/// @param model the name it answers to, as clients see it; requests that name another one are refused
/// @param maxTokens of an answer when a request does not say, 1 and up
/// @param maxWaiting requests that wait for the model at once, 1 and up; a further one is refused
/// @param maxBodyBytes of a request's body, 1 and up
public record ChatOptions(InetSocketAddress address, String model, int maxTokens, int maxWaiting, int maxBodyBytes) {

    private static final int DEFAULT_MAX_TOKENS = 256;
    private static final int DEFAULT_MAX_WAITING = 64;
    private static final int DEFAULT_MAX_BODY_BYTES = 8 << 20;

    public ChatOptions {
        atLeastOne("maxTokens", maxTokens);
        atLeastOne("maxWaiting", maxWaiting);
        atLeastOne("maxBodyBytes", maxBodyBytes);
    }

    /// 256 tokens an answer, 64 requests that wait, 8 MiB a request.
    public static ChatOptions of(InetSocketAddress address, String model) {
        return new ChatOptions(address, model, DEFAULT_MAX_TOKENS, DEFAULT_MAX_WAITING, DEFAULT_MAX_BODY_BYTES);
    }

    private static void atLeastOne(String name, int value) {
        if (value < 1) {
            throw new IllegalArgumentException(name + " is " + value + "; it takes 1 and up");
        }
    }
}
