package io.kvcache.engines.llamacpp;

/// A library, or a model in it, is not as this adapter knows llama.cpp. Nothing was done with it.
public final class UnsupportedLlamaException extends RuntimeException {

    private static final long serialVersionUID = 1;

    /// @param where the library or the model
    /// @param found how it differs
    UnsupportedLlamaException(String where, String found) {
        super("%s is not as this adapter, which is made for llama.cpp %s, knows it: %s"
                .formatted(where, LlamaLibrary.SUPPORTED, found));
    }
}
