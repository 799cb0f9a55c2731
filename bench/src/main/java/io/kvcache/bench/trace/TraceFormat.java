package io.kvcache.bench.trace;

/// How a trace's lines are to be understood.
sealed interface TraceFormat permits MooncakeFormat, QwenFormat, TokenFormat {

    /// The format whose line this is.
    ///
    /// @throws IllegalArgumentException when it is none's
    static TraceFormat of(JsonLineFields first) {
        if (first.has("tokens")) {
            return new TokenFormat();
        }
        if (first.has("chat_id")) {
            return new QwenFormat();
        }
        if (first.has("hash_ids")) {
            return new MooncakeFormat();
        }
        throw new IllegalArgumentException("is a request in no known format: it has the fields [" + first.fieldNames()
                + "], and must have hash_ids (Mooncake), chat_id and hash_ids (Qwen-Bailian) or tokens (token ids)");
    }

    /// Tokens of a block.
    int blockTokens();

    /// Understands one line; a format may remember those before it.
    ///
    /// @throws IllegalArgumentException that names the field
    TraceRequest parse(JsonLineFields line);
}
