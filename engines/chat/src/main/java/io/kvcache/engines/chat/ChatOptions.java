package io.kvcache.engines.chat;

import java.net.InetSocketAddress;

/// How a chat server serves.
///
/// @param address where it listens; port 0 takes any that is free
/// @param model the name it answers to, as clients see it; requests that name another one are refused
/// @param mostTokens of an answer when a request does not say, 1 and up
/// @param mostWaiting requests that wait for the model at once, 1 and up; a further one is refused
/// @param mostBytes of a request's body, 1 and up
public record ChatOptions(InetSocketAddress address, String model, int mostTokens, int mostWaiting, int mostBytes) {

    private static final int TOKENS = 256;
    private static final int WAITING = 64;
    private static final int BYTES = 8 << 20;

    public ChatOptions {
        atLeastOne("mostTokens", mostTokens);
        atLeastOne("mostWaiting", mostWaiting);
        atLeastOne("mostBytes", mostBytes);
    }

    /// 256 tokens an answer, 64 requests that wait, 8 MiB a request.
    public static ChatOptions of(InetSocketAddress address, String model) {
        return new ChatOptions(address, model, TOKENS, WAITING, BYTES);
    }

    private static void atLeastOne(String name, int value) {
        if (value < 1) {
            throw new IllegalArgumentException(name + " is " + value + "; it takes 1 and up");
        }
    }
}
