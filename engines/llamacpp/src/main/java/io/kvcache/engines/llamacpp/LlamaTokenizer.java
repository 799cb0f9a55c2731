package io.kvcache.engines.llamacpp;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.kvcache.engines.generator.ChatMessage;
import io.kvcache.engines.generator.TextDecoder;
import io.kvcache.engines.generator.Utf8StreamDecoder;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// The tokenizer in a model's file, and the template of its chats, by llama.cpp's own functions.
///
/// Where a buffer is too small, llama.cpp names the size that it needs, and is asked again with that.
///
/// **Ownership.** The model's memory: it is not used after the model is closed.
///
/// **Threads.** Any.
final class LlamaTokenizer {

    /// `LLAMA_VOCAB_TYPE_NONE`.
    private static final int NO_VOCABULARY = 0;

    private static final int FIRST_PIECE_BYTES = 32;

    /// What a template adds to a message, mostly.
    private static final int TEMPLATE_BYTES = 64;

    private final LlamaApi calls;
    private final String name;
    private final MemorySegment words;
    private final MemorySegment template;
    private final Set<Integer> stopTokens;

    /// @param model that [has a tokenizer][#isPresent]
    /// @param name of the model, for messages
    LlamaTokenizer(LlamaApi calls, MemorySegment model, String name) {
        this.calls = calls;
        this.name = name;
        words = calls.vocabulary(model);
        template = calls.chatTemplate(model);
        stopTokens = IntStream.range(0, calls.vocabularySize(model))
                .filter(token -> calls.isEndToken(words, token))
                .boxed()
                .collect(Collectors.toUnmodifiableSet());
    }

    /// Returns whether a model's file has a tokenizer.
    static boolean isPresent(LlamaApi calls, MemorySegment model) {
        return calls.vocabularyType(calls.vocabulary(model)) != NO_VOCABULARY;
    }

    Set<Integer> stopTokens() {
        return stopTokens;
    }

    /// The tokens of a text, with the model's marks.
    int[] encode(String text) {
        return encode(text.getBytes(StandardCharsets.UTF_8), true);
    }

    /// The tokens of a text without the mark of its beginning.
    int[] encodeContinuation(String text) {
        return encode(text.getBytes(StandardCharsets.UTF_8), false);
    }

    private int[] encode(byte[] text, boolean marked) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment utf8 = arena.allocateFrom(JAVA_BYTE, text);
            // No token but the marks has no byte, so a second try is for tokenizers that add a space or more.
            MemorySegment into = arena.allocate(JAVA_INT, text.length + 2L);
            int count = calls.tokenize(words, utf8, into, marked);
            if (count < 0) {
                into = arena.allocate(JAVA_INT, -count);
                count = calls.tokenize(words, utf8, into, marked);
            }
            if (count < 0) {
                throw new IllegalStateException("llama.cpp cannot tokenize a text of %s bytes for %s: it says %s"
                        .formatted(text.length, name, count));
            }
            return into.asSlice(0, (long) count * Integer.BYTES).toArray(JAVA_INT);
        }
    }

    /// The tokens of a chat, by the model's template if it has one.
    ///
    /// @throws IllegalArgumentException when a message has a zero, at which llama.cpp would cut it off
    /// @throws IllegalStateException when llama.cpp does not know the template
    int[] encode(List<ChatMessage> messages) {
        return template.equals(MemorySegment.NULL)
                ? encode(ChatMessage.toRoleLines(messages))
                : encodeTemplated(applyTemplate(messages));
    }

    /// A template that writes the mark of the beginning itself, as most of llama.cpp's do not, gets no second one.
    private int[] encodeTemplated(byte[] chat) {
        int[] tokens = encode(chat, true);
        int begin = calls.beginToken(words);
        boolean twice = calls.addsBeginToken(words) && tokens.length > 1 && tokens[0] == begin && tokens[1] == begin;
        return twice ? Arrays.copyOfRange(tokens, 1, tokens.length) : tokens;
    }

    private byte[] applyTemplate(List<ChatMessage> messages) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment chat = arena.allocate(ADDRESS, 2L * messages.size());
            int expected = 0;
            for (int i = 0; i < messages.size(); i++) {
                ChatMessage message = messages.get(i);
                if (message.content().indexOf('\0') >= 0) {
                    throw new IllegalArgumentException(
                            "message %s has the character U+0000; llama.cpp would cut it off there".formatted(i));
                }
                MemorySegment content = arena.allocateFrom(message.content());
                chat.setAtIndex(
                        ADDRESS, 2L * i, arena.allocateFrom(message.role().templateName()));
                chat.setAtIndex(ADDRESS, 2L * i + 1, content);
                expected = Math.addExact(expected, Math.toIntExact(content.byteSize()) + TEMPLATE_BYTES);
            }
            MemorySegment into = arena.allocate(expected);
            int bytes = calls.applyChatTemplate(template, chat, messages.size(), into);
            if (bytes > expected) {
                into = arena.allocate(bytes);
                bytes = calls.applyChatTemplate(template, chat, messages.size(), into);
            }
            if (bytes < 0) {
                throw new IllegalStateException(
                        "llama.cpp " + LlamaLibrary.SUPPORTED + " does not know the chat template of " + name
                                + ": apply it yourself and ask for a completion of the text");
            }
            return into.asSlice(0, bytes).toArray(JAVA_BYTE);
        }
    }

    TextDecoder newDecoder() {
        return new LlamaTextDecoder();
    }

    private byte[] piece(int token) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment into = arena.allocate(FIRST_PIECE_BYTES);
            int bytes = calls.tokenPiece(words, token, into);
            if (bytes < 0) {
                into = arena.allocate(-bytes);
                bytes = calls.tokenPiece(words, token, into);
            }
            return into.asSlice(0, bytes).toArray(JAVA_BYTE);
        }
    }

    /// **Threads.** One at a time.
    private final class LlamaTextDecoder implements TextDecoder {

        private final Utf8StreamDecoder bytes = new Utf8StreamDecoder();

        @Override
        public String add(int token) {
            return stopTokens.contains(token) ? "" : bytes.add(piece(token));
        }

        @Override
        public String flush() {
            return bytes.flush();
        }
    }
}
