package io.kvcache.gpu.sequence;

import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.LocalKvCache;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.cuda.FaultInjection;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.tier.CudaTier;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// An engine whose keys and values are a function of all tokens up to their own, as a model's are, and a naive
/// model of its sequences: the tokens of each.
final class PagedEngine implements AutoCloseable {

    static final int BLOCK_TOKENS = 8;
    static final BlockShape SHAPE = BlockShape.kv(2, 2, 32, BLOCK_TOKENS, Dtype.BF16);
    static final Namespace SPACE = Namespace.of("paged", SHAPE);
    static final Duration LONG = Duration.ofSeconds(60);
    private static final int DIM = SHAPE.headDim();

    final DeviceDriver driver;
    final DeviceStream stream;
    final PagedKvCache paged;
    private final DeviceEvent event;
    private final Arena arena = Arena.ofShared();
    int computed;

    PagedEngine(FakeCuda fakeCuda, LocalKvCache cache, CudaTier tier, int pages) {
        this(fakeCuda.open(), cache, tier, pages);
    }

    /// @param driver of the tier's device; this one's from here on
    PagedEngine(DeviceDriver driver, LocalKvCache cache, CudaTier tier, int pages) {
        this.driver = driver;
        try {
            stream = driver.openStream(Priority.NORMAL);
            event = driver.openEvent();
            paged = PagedKvCache.open(cache, tier, driver, stream, SPACE, pages * SHAPE.bytes());
        } catch (RuntimeException refused) {
            FaultInjection.close(driver);
            throw refused;
        }
    }

    /// A sequence of the cache and what it should be.
    final class Request implements AutoCloseable {

        final Sequence sequence;
        private final List<Integer> tokens = new ArrayList<>();

        Request(Sequence sequence, List<Integer> tokens) {
            this.sequence = sequence;
            this.tokens.addAll(tokens);
        }

        int[] tokens() {
            return tokens.stream().mapToInt(token -> token).toArray();
        }

        int length() {
            return tokens.size();
        }

        /// Computes what is missing of its tokens.
        ///
        /// @return false when there is no room
        boolean catchUp() {
            int from = sequence.tokens();
            if (!sequence.reserve(length() - from, LONG)) {
                return false;
            }
            int[] all = tokens();
            for (int token = from; token < all.length; token++) {
                compute(sequence, all, token);
            }
            sequence.append(tokens.subList(from, all.length).stream()
                    .mapToInt(token -> token)
                    .toArray());
            return true;
        }

        /// Another token, or as many.
        boolean grow(int... more) {
            for (int token : more) {
                tokens.add(token);
            }
            if (catchUp()) {
                return true;
            }
            tokens.subList(length() - more.length, length()).clear();
            return false;
        }

        Request fork() {
            return new Request(sequence.fork(), tokens);
        }

        void truncate(int kept) {
            sequence.truncate(kept);
            tokens.subList(kept, length()).clear();
        }

        /// Reads every row of every token back.
        void verify() {
            assertThat(sequence.tokens()).isEqualTo(length());
            assertThat(sequence.pages()).isGreaterThanOrEqualTo(Math.ceilDiv(length(), BLOCK_TOKENS));
            int[] all = tokens();
            MemorySegment page = arena.allocate(SHAPE.bytes(), 64);
            long hash = 0;
            for (int token = 0; token < all.length; token++) {
                if (token % BLOCK_TOKENS == 0) {
                    stream.copyToHost(sequence.page(token / BLOCK_TOKENS).address(), page);
                    finish();
                }
                hash = hash(hash, all[token]);
                for (int row = 0; row < 8; row++) {
                    ByteRange range = row(row, token % BLOCK_TOKENS);
                    for (int i = 0; i < DIM; i++) {
                        short found = page.get(JAVA_SHORT, range.offset() + 2L * i);
                        if (found != value(hash, row, i)) {
                            throw new AssertionError("token %s of %s, row %s, value %s: %s in place of %s"
                                    .formatted(token, all.length, row, i, found, value(hash, row, i)));
                        }
                    }
                }
            }
        }

        @Override
        public void close() {
            sequence.close();
        }
    }

    /// Begins a request and computes what was not found.
    Request begin(int... prompt) {
        return Objects.requireNonNull(tryBegin(LONG, prompt), "no room");
    }

    @Nullable
    Request tryBegin(Duration timeout, int... prompt) {
        Sequence sequence = paged.begin(prompt, timeout);
        if (sequence == null) {
            return null;
        }
        Request request = new Request(sequence, Arrays.stream(prompt).boxed().toList());
        assertThat(sequence.tokens()).isLessThan(prompt.length);
        computed += prompt.length - sequence.tokens();
        assertThat(request.catchUp()).isTrue();
        return request;
    }

    private static ByteRange row(int row, int token) {
        return SHAPE.tokenRow(row / 4, row / 2 % 2, row % 2, token);
    }

    private static long hash(long before, int token) {
        long mixed = (before + token + 1) * 0x9E3779B97F4A7C15L;
        return mixed ^ (mixed >>> 29);
    }

    /// A finite bf16 below 2 in magnitude.
    static short value(long hash, int row, int i) {
        long mixed = (hash + row * 64L + i) * 0xBF58476D1CE4E5B9L;
        return (short) (mixed >>> 40 & 0x80FF | 0x3F00);
    }

    static long hash(int[] tokens, int count) {
        long hash = 0;
        for (int i = 0; i < count; i++) {
            hash = hash(hash, tokens[i]);
        }
        return hash;
    }

    /// What a kernel would do: writes the rows of one token.
    private void compute(Sequence sequence, int[] tokens, int token) {
        long hash = hash(tokens, token + 1);
        DeviceSpan page = sequence.page(token / BLOCK_TOKENS);
        for (int row = 0; row < 8; row++) {
            MemorySegment values = arena.allocate(2L * DIM, 64);
            for (int i = 0; i < DIM; i++) {
                values.setAtIndex(JAVA_SHORT, i, value(hash, row, i));
            }
            ByteRange range = row(row, token % BLOCK_TOKENS);
            stream.copyToDevice(values, page.address().plus(range.offset()));
        }
    }

    void finish() {
        stream.record(event);
        assertThat(event.await(TimeUnit.SECONDS.toNanos(60))).isTrue();
    }

    @Override
    public void close() {
        try {
            paged.close();
            event.close();
            stream.close();
        } finally {
            FaultInjection.close(driver);
        }
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }
}
