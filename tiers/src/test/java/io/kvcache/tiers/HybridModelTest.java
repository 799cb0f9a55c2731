package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.identity.PartGroup;
import io.kvcache.core.identity.PartKind;
import io.kvcache.core.identity.RopeOrigin;
import io.kvcache.core.tier.AdmissionKind;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Namespaces with sliding windows and recurrent states beside full attention.
final class HybridModelTest {

    private static final int BLOCK = 16;
    private static final int FULL = 0;
    private static final int WINDOW = 1;
    private static final int STATE = 2;
    private static final Duration A_MINUTE = Duration.ofMinutes(1);

    /// A window of four blocks, and a state each fourth block.
    private static final Namespace SPACE = Namespace.builder("hybrid")
            .part(part(0, PartKind.FULL, 0, 4, BLOCK))
            .part(part(1, PartKind.WINDOW, 3 * BLOCK + 2, 2, BLOCK))
            .part(part(2, PartKind.STATE, 0, 64, 4 * BLOCK))
            .build();

    @TempDir
    private Path folder;

    private static Part part(int group, PartKind kind, int window, int layers, int blockTokens) {
        BlockShape shape = BlockShape.kv(layers, 1, 64, blockTokens, Dtype.BF16);
        return new Part(group, 0, kind, window, shape, RopeOrigin.FROM_ZERO);
    }

    private static BlockChain chain(int tokens) {
        return BlockChain.of(SPACE, IntStream.range(0, tokens).toArray());
    }

    private static TieredKvCache inMemory(Namespace namespace) {
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64 << 20)
                .failOnLeak(true)
                .closeWait(Duration.ZERO)
                .build();
        cache.register(namespace);
        return cache;
    }

    private TieredKvCache onDisk(int hostMegabytes) {
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes((long) hostMegabytes << 20)
                .admission(AdmissionKind.ALWAYS)
                .disk(folder, 64 << 20)
                .failOnLeak(true)
                .build();
        cache.register(SPACE);
        assertThat(cache.awaitRecovered(A_MINUTE)).isTrue();
        return cache;
    }

    private static PutOutcome put(KvCache cache, BlockChain chain, int index, int part) {
        PartGroup group = chain.namespace().groupOf(part);
        BlockChain content = group == null ? chain : chain.entry(group, group.entryBehind(index));
        try (BlockWriter writer = cache.put(chain, index, part, A_MINUTE)) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                BlockContent.of(content.key(group == null ? index : 0)).fill(writer.segment());
                assertThat(writer.seal()).isNotEqualTo(SealOutcome.DROPPED);
            }
            return writer.outcome();
        }
    }

    private static void putAll(KvCache cache, BlockChain chain) {
        for (int index = 0; index < chain.length(); index++) {
            put(cache, chain, index, FULL);
            put(cache, chain, index, WINDOW);
            if (index % 4 == 3) {
                put(cache, chain, index, STATE);
            }
        }
    }

    /// Checks that all that a match needs is there, with the right bytes.
    ///
    /// @return blocks
    private static int check(BlockChain chain, BlockTable table) {
        int end = table.await(table.endBlock(), A_MINUTE);
        for (int index = table.firstBlock(); index < end; index++) {
            BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
        }
        for (PartGroup group : chain.namespace().groups()) {
            if (end == table.firstBlock()) {
                continue;
            }
            BlockTable entries =
                    table.part(chain.namespace().parts().indexOf(group.parts().getFirst()));
            assertThat(end % group.every()).isZero();
            assertThat(entries.firstBlock()).isEqualTo(group.firstNeeded(end));
            assertThat(entries.readyEnd()).isEqualTo(group.entries(end));
            for (int entry = entries.firstBlock(); entry < entries.readyEnd(); entry++) {
                BlockContent.of(chain.entry(group, entry).key(0)).requireEqual(entries.segment(entry));
            }
        }
        assertThat(table.isValid()).isTrue();
        return end;
    }

    @Test
    void givenABlockThatIsBeingWritten_whenItIsGivenUp_thenItsEntryGoesToo() {
        BlockChain chain = chain(BLOCK);
        try (TieredKvCache cache = inMemory(SPACE)) {
            BlockWriter block = cache.put(chain, 0, FULL, KvCache.NO_WAIT);
            try (BlockWriter window = cache.put(chain, 0, WINDOW, KvCache.NO_WAIT)) {
                assertThat(window.outcome()).isEqualTo(PutOutcome.RESERVED);
                block.close();
                assertThat(window.seal()).isEqualTo(SealOutcome.DROPPED);
            }
            cache.validate();
            assertThat(cache.stats().records().live()).isZero();
        }
    }

    @Test
    void givenADisk_whenOpenedAgain_thenMatchesAreAsBeforeAndDroppedEntriesStayAway() {
        BlockChain chain = chain(16 * BLOCK);
        try (TieredKvCache cache = onDisk(64)) {
            putAll(cache, chain);
            assertThat(cache.flush(A_MINUTE)).isTrue();
        }
        try (TieredKvCache cache = onDisk(64)) {
            assertThat(cache.match(chain)).isEqualTo(new Match(0, 0, 16));
            assertThat(cache.match(chain, Duration.ZERO).blocks()).isZero();
            try (BlockTable table = cache.acquire(chain)) {
                assertThat(table.blocks()).isZero();
            }
            try (BlockTable table = cache.acquire(chain, 0, A_MINUTE)) {
                assertThat(check(chain, table)).isEqualTo(16);
            }
            cache.drop(chain, 10);
            assertThat(cache.flush(A_MINUTE)).isTrue();
            cache.validate();
        }
        try (TieredKvCache cache = onDisk(64)) {
            assertThat(cache.match(chain).fullBlocks()).isEqualTo(10);
            assertThat(cache.match(chain).blocks()).isEqualTo(8);
            for (int index = 10; index < 16; index++) {
                put(cache, chain, index, FULL);
            }
            assertThat(cache.match(chain).blocks())
                    .as("windows and states were dropped")
                    .isEqualTo(8);
            cache.validate();
        }
    }

    /// As gpt-oss: half of the layers have a window of 128 tokens.
    @Test
    void givenHalfOfTheLayersWithWindows_whenAPrefixComesFromDisk_thenLittleMoreThanHalfOfItsBytesAreRead() {
        BlockShape half = BlockShape.kv(12, 1, 16, BLOCK, Dtype.BF16);
        Namespace space = Namespace.builder("half-windows")
                .part(Part.full(half))
                .part(new Part(1, 0, PartKind.WINDOW, 128, half, RopeOrigin.FROM_ZERO))
                .build();
        BlockChain chain = BlockChain.of(space, IntStream.range(0, 8192).toArray());
        try (TieredKvCache cache = onDisk(64)) {
            cache.register(space);
            for (int index = 0; index < chain.length(); index++) {
                put(cache, chain, index, FULL);
                put(cache, chain, index, WINDOW);
            }
            assertThat(cache.flush(A_MINUTE)).isTrue();
        }
        try (TieredKvCache cache = onDisk(64)) {
            try (BlockTable table = cache.acquire(chain, 0, A_MINUTE)) {
                assertThat(check(chain, table)).isEqualTo(512);
            }
            long allLayers = 512 * 2 * half.bytes();
            assertThat(cache.diskStats().getFirst().loadedBytes()).isBetween(allLayers / 2, allLayers * 52 / 100);
        }
    }

    @Test
    void givenStatesAlone_whenPut_thenTheStoreKeepsTheSpineItself() {
        Namespace space = Namespace.builder("recurrent")
                .part(part(0, PartKind.STATE, 0, 64, 4 * BLOCK))
                .build();
        BlockChain chain = BlockChain.of(space, IntStream.range(0, 64 * BLOCK).toArray());
        try (TieredKvCache cache = inMemory(space)) {
            assertThat(chain.length()).isEqualTo(16);
            assertThat(put(cache, chain, 9, 0)).isEqualTo(PutOutcome.RESERVED);
            assertThat(cache.match(chain)).isEqualTo(new Match(0, 10, 0));
            assertThat(put(cache, chain, 12, 0)).isEqualTo(PutOutcome.RESERVED);
            try (BlockTable table = cache.acquire(chain)) {
                assertThat(table.await(13, A_MINUTE)).isEqualTo(13);
                assertThat(table.part(0).firstBlock()).isEqualTo(12);
                BlockContent.of(chain.entry(space.groups().getFirst(), 12).key(0))
                        .requireEqual(table.part(0).segment(12));
            }
            cache.validate();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4})
    void givenRandomPutsAndDrops_whenMatched_thenTheModelFindsTheSame(int seed) {
        SplittableRandom random = new SplittableRandom(seed);
        try (TieredKvCache cache = inMemory(SPACE)) {
            Set<String> model = new HashSet<>();
            for (int step = 0; step < 4_000; step++) {
                BlockChain chain = randomChain(random);
                int index = random.nextInt(chain.length());
                int what = random.nextInt(20);
                if (what == 0) {
                    cache.drop(chain, index);
                    forget(model, chain, index);
                } else if (what < 10) {
                    int end = modelEnd(model, chain);
                    Match match = cache.match(chain);
                    assertThat(match.fullBlocks()).as("step " + step).isEqualTo(full(model, chain));
                    assertThat(match.blocks()).as("step " + step).isEqualTo(end);
                    try (BlockTable table = cache.acquire(chain)) {
                        assertThat(check(chain, table)).isEqualTo(end);
                    }
                } else {
                    putRandom(cache, model, chain, random);
                }
                if (step % 200 == 0) {
                    cache.validate();
                }
            }
            cache.validate();
            assertThat(cache.stats().records().live()).isEqualTo(model.size());
        }
    }

    @Test
    void givenMemoryForFew_whenUsedAtRandomWithADisk_thenNothingIsWrongAndNothingIsLeft() {
        SplittableRandom random = new SplittableRandom(5);
        int found = 0;
        try (TieredKvCache cache = onDisk(32)) {
            for (int step = 0; step < 6_000; step++) {
                BlockChain chain = randomChain(random);
                if (random.nextInt(3) == 0) {
                    putAll(cache, chain.prefix(chain.length() / 4 * 4));
                } else {
                    Duration timeout = random.nextBoolean() ? A_MINUTE : KvCache.NO_WAIT;
                    try (BlockTable table = cache.acquire(chain, random.nextInt(chain.length()), timeout)) {
                        found += check(chain, table) > table.firstBlock() ? 1 : 0;
                    }
                }
                if (random.nextInt(100) == 0) {
                    cache.drop(chain, random.nextInt(chain.length()));
                }
                if (step % 1_000 == 0) {
                    cache.validate();
                }
            }
            cache.validate();
        }
        assertThat(found).isGreaterThan(500);
    }

    private static BlockChain randomChain(SplittableRandom random) {
        int length = random.nextInt(1, 17);
        int branch = random.nextInt(length + 1);
        int kind = random.nextInt(6);
        return BlockChain.of(
                SPACE,
                IntStream.range(0, length * BLOCK)
                        .map(token -> token < branch * BLOCK ? token : token + 10_000 * kind)
                        .toArray());
    }

    private static void putRandom(KvCache cache, Set<String> model, BlockChain chain, SplittableRandom random) {
        for (int index = 0; index < chain.length(); index++) {
            if (put(cache, chain, index, FULL).allowsNextBlock()) {
                model.add(chain.key(index).toString());
            }
            for (PartGroup group : SPACE.groups()) {
                if (group.isBehind(index) && random.nextInt(4) > 0) {
                    put(cache, chain, index, SPACE.parts().indexOf(group.parts().getFirst()));
                    model.add(
                            chain.entry(group, group.entryBehind(index)).key(0).toString());
                }
            }
        }
    }

    /// Drops a block of the model and all that was put below it.
    private static void forget(Set<String> model, BlockChain chain, int from) {
        List<String> gone = new ArrayList<>();
        String first = chain.key(from).toString();
        for (int branch = 0; branch <= 16; branch++) {
            for (int kind = 0; kind < 6; kind++) {
                int shared = branch * BLOCK;
                int shift = 10_000 * kind;
                BlockChain other = BlockChain.of(
                        SPACE,
                        IntStream.range(0, 16 * BLOCK)
                                .map(token -> token < shared ? token : token + shift)
                                .toArray());
                if (!other.key(from).toString().equals(first)) {
                    continue;
                }
                for (int index = from; index < 16; index++) {
                    gone.add(other.key(index).toString());
                    for (PartGroup group : SPACE.groups()) {
                        if (group.isBehind(index)) {
                            gone.add(other.entry(group, group.entryBehind(index))
                                    .key(0)
                                    .toString());
                        }
                    }
                }
            }
        }
        gone.forEach(model::remove);
    }

    private static int full(Set<String> model, BlockChain chain) {
        int full = 0;
        while (full < chain.length() && model.contains(chain.key(full).toString())) {
            full++;
        }
        return full;
    }

    private static int modelEnd(Set<String> model, BlockChain chain) {
        return PartGroup.matchEnd(
                SPACE.groups(),
                full(model, chain),
                (group, entry) -> model.contains(
                        chain.entry(SPACE.groups().get(group), entry).key(0).toString()));
    }
}
