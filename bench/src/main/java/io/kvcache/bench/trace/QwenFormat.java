package io.kvcache.bench.trace;

import java.util.HashMap;
import java.util.Map;

/// The format of the Qwen-Bailian traces: `chat_id` and `parent_chat_id` (-1 for a chat that goes on from
/// none), `timestamp` (seconds, with a fraction), `input_length`, `output_length` and `hash_ids`, an id
/// for each 16 tokens. `type` and `turn` are passed over.
///
/// A block's id is that of its own tokens, so that a block is known by its id and those before it, as
/// replays know it anyway. The last block may be left out when it is partial. A session is a chat and all
/// that go on from it.
///
/// Source: the repository alibaba-edu/qwen-bailian-usagetraces-anon, README; Wang et al.: "KVCache cache
/// in the wild", USENIX ATC 2025.
final class QwenFormat implements TraceFormat {

    private static final int BLOCK_TOKENS = 16;
    private static final long NO_PARENT = -1;

    /// First chat of the session that a chat is part of.
    private final Map<Long, Long> sessions = new HashMap<>();

    @Override
    public int blockTokens() {
        return BLOCK_TOKENS;
    }

    @Override
    public TraceRequest parse(JsonLineFields line) {
        long chat = line.wholeNumber("chat_id", Long.MAX_VALUE);
        long parent = line.wholeNumber("parent_chat_id", Long.MAX_VALUE);
        if (chat < 0) {
            throw new IllegalArgumentException("chat_id is " + chat + ", must be at least 0");
        }
        if (parent < NO_PARENT) {
            throw new IllegalArgumentException("parent_chat_id is " + parent + ", must be at least " + NO_PARENT);
        }
        TraceRequest request = new TraceRequest(
                line.secondsAsMillis("timestamp"),
                line.countOf("input_length"),
                line.countOf("output_length"),
                line.wholeNumbers("hash_ids", "hash id"),
                parent == NO_PARENT ? chat : sessions.getOrDefault(parent, parent));
        request.requireBlocks(BLOCK_TOKENS);
        sessions.put(chat, request.session());
        return request;
    }
}
