package io.kvcache.engines.generator;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.engines.generator.PrefixCachedGenerator.TokenListener;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Wrong rows: that one flipped byte does change an answer, that verifying finds it, and that a checksum
/// does.
///
/// @param <M> the engine's kind of model
@Timeout(300)
public abstract class VerifyContract<M extends EngineModel> {

    private static final int BLOCK_TOKENS = 16;
    private static final int LENGTH = 100;
    private static final int TOKENS = 12;
    private static final int USABLE = (LENGTH - 1) / BLOCK_TOKENS;
    private static final int WRONG_BLOCK = 3;
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final long HOST_BYTES = 64L << 20;

    private final M model;
    private final int[] prompt = RandomPrompts.random(77, LENGTH);
    private int[] right = {};

    @TempDir
    private Path folder;

    /// @param model of random weights, which the subclass keeps
    protected VerifyContract(M model) {
        this.model = model;
    }

    @BeforeEach
    void ask() {
        right = generateUncached(prompt, TOKENS).tokens();
    }

    /// What the engine says by itself.
    protected abstract UncachedAnswer generateUncached(int[] start, int count);

    /// A byte that is flipped: in a value of the first layer that is at least 2. (Nearly all others make an
    /// element smaller, which may change no token.)
    protected abstract int wrongByte(byte[] block);

    /// The bit of it that makes the value 256 times as large.
    protected abstract byte wrongBit();

    private static TieredKvCache memory() {
        return TieredKvCache.builder().hostBytes(HOST_BYTES).build();
    }

    private TieredKvCache onDisk() throws IOException {
        return TieredKvCache.builder()
                .hostBytes(HOST_BYTES)
                .disk(folder, 10 * HOST_BYTES)
                .admission(AdmissionKind.ALWAYS)
                .build();
    }

    private PrefixCachedGenerator<M> generator(KvCache cache, double verified) {
        return new PrefixCachedGenerator<>(
                model,
                cache,
                GeneratorOptions.DEFAULTS
                        .withBlockTokens(BLOCK_TOKENS)
                        .withLoadTimeout(PATIENCE)
                        .withVerifiedShare(verified));
    }

    private Generation ask(PrefixCachedGenerator<M> generator) throws InterruptedException {
        Generation made = generator.generate(GenerationRequest.greedy(prompt, TOKENS), TokenListener.NONE);
        assertThat(generator.awaitStored(PATIENCE)).isTrue();
        return made;
    }

    /// The blocks of the prompt as the model computes them.
    private List<byte[]> rightBlocks() throws InterruptedException {
        try (KvCache cache = memory();
                PrefixCachedGenerator<M> generator = generator(cache, 0)) {
            ask(generator);
            List<byte[]> blocks = new ArrayList<>();
            try (BlockTable table = cache.acquire(BlockChain.of(generator.namespace(), prompt))) {
                for (int i = 0; i < USABLE; i++) {
                    blocks.add(table.segment(i).toArray(ValueLayout.JAVA_BYTE));
                }
            }
            assertThat(blocks).hasSize(USABLE);
            return blocks;
        }
    }

    private void flip(byte[] block) {
        block[wrongByte(block)] ^= wrongBit();
    }

    /// Stores blocks as they are, under checksums that are right: as if there were none.
    private static void store(KvCache cache, BlockChain chain, List<byte[]> blocks) {
        for (int i = 0; i < blocks.size(); i++) {
            try (BlockWriter writer = cache.put(chain, i, 0, KvCache.NO_WAIT)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                writer.copyFrom(MemorySegment.ofArray(blocks.get(i)));
                writer.seal();
            }
        }
    }

    @Test
    void givenAFlippedByteBehindARightChecksum_whenNobodyVerifies_thenTheAnswerIsAnother() throws Exception {
        List<byte[]> blocks = rightBlocks();
        try (KvCache cache = memory();
                PrefixCachedGenerator<M> generator = generator(cache, 0)) {
            BlockChain chain = BlockChain.of(generator.namespace(), prompt);
            store(cache, chain, blocks);
            Generation whole = ask(generator);
            assertThat(whole.cachedTokens()).isEqualTo(USABLE * BLOCK_TOKENS);
            assertThat(whole.tokens()).isEqualTo(right);
        }
        flip(blocks.get(WRONG_BLOCK));
        try (KvCache cache = memory();
                PrefixCachedGenerator<M> generator = generator(cache, 0)) {
            store(cache, BlockChain.of(generator.namespace(), prompt), blocks);
            Generation wrong = ask(generator);
            assertThat(wrong.cachedTokens()).isEqualTo(USABLE * BLOCK_TOKENS);
            assertThat(wrong.tokens()).isNotEqualTo(right);
        }
    }

    @Test
    void givenAFlippedByteBehindARightChecksum_whenVerified_thenTheChainIsDroppedAndTheAnswerIsRight()
            throws Exception {
        List<byte[]> blocks = rightBlocks();
        flip(blocks.get(WRONG_BLOCK));
        try (KvCache cache = memory();
                PrefixCachedGenerator<M> generator = generator(cache, 1)) {
            BlockChain chain = BlockChain.of(generator.namespace(), prompt);
            store(cache, chain, blocks);
            Generation checked = ask(generator);
            assertThat(checked.tokens()).isEqualTo(right);
            assertThat(checked.verified()).isTrue();
            assertThat(checked.cachedTokens()).isEqualTo(WRONG_BLOCK * BLOCK_TOKENS);
            assertThat(generator.stats().verified()).isEqualTo(new GeneratorStats.Verified(1, 1));

            // What was computed is in the store now, in the place of what was wrong.
            assertThat(ask(generator).tokens()).isEqualTo(right);
            assertThat(generator.stats().verified()).isEqualTo(new GeneratorStats.Verified(2, 1));
            assertThat(generator.stats().tokens().saved()).isZero();
        }
    }

    @Test
    void givenRightBlocks_whenVerified_thenNothingIsDropped() throws Exception {
        try (KvCache cache = memory();
                PrefixCachedGenerator<M> generator = generator(cache, 1)) {
            ask(generator);
            Generation again = ask(generator);
            assertThat(again.verified()).isTrue();
            assertThat(again.tokens()).isEqualTo(right);
            assertThat(again.cachedTokens()).isEqualTo(USABLE * BLOCK_TOKENS);
            assertThat(generator.stats().verified()).isEqualTo(new GeneratorStats.Verified(1, 0));
            assertThat(cache.stats().removals().dropped()).isZero();
        }
    }

    @Test
    void givenAFlippedByteOnDisk_whenRead_thenTheChecksumFindsItAndTheRestIsComputed() throws Exception {
        List<byte[]> blocks = rightBlocks();
        try (TieredKvCache cache = onDisk();
                PrefixCachedGenerator<M> generator = generator(cache, 0)) {
            ask(generator);
            assertThat(cache.flush(PATIENCE)).isTrue();
        }
        flipOnDisk(blocks.get(WRONG_BLOCK));
        try (TieredKvCache cache = onDisk();
                PrefixCachedGenerator<M> generator = generator(cache, 0)) {
            RecoveredBlocks.await(cache, BlockChain.of(generator.namespace(), prompt), WRONG_BLOCK);
            Generation made = ask(generator);
            assertThat(made.cachedTokens()).isEqualTo(WRONG_BLOCK * BLOCK_TOKENS);
            assertThat(made.tokens()).isEqualTo(right);
        }
    }

    /// Flips a byte of the block wherever the tier has put it.
    private void flipOnDisk(byte[] block) throws IOException {
        List<Path> files;
        try (Stream<Path> all = Files.walk(folder)) {
            files = all.filter(Files::isRegularFile).toList();
        }
        int found = 0;
        for (Path file : files) {
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE);
                    Arena arena = Arena.ofConfined()) {
                MemorySegment all = channel.map(FileChannel.MapMode.READ_WRITE, 0, channel.size(), arena);
                MemorySegment wanted = MemorySegment.ofArray(block);
                for (long at = 0; at + block.length <= all.byteSize(); at += 512) {
                    if (MemorySegment.mismatch(all, at, at + block.length, wanted, 0, block.length) < 0) {
                        long wrong = at + wrongByte(block);
                        all.set(ValueLayout.JAVA_BYTE, wrong, (byte)
                                (all.get(ValueLayout.JAVA_BYTE, wrong) ^ wrongBit()));
                        found++;
                    }
                }
            }
        }
        assertThat(found).as("copies of the block on disk").isPositive();
    }
}
