package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// While nothing is pinned, every put finds room, whatever sizes filled the store before: no class of slots
/// starves.
final class StarvationTest {

    private static final int BLOCK_TOKENS = 16;
    private static final long MAX_OBJECT_BYTES = 256L << 20;
    private static final TestNamespace.Size SMALL = TestNamespace.SIZES.getFirst();
    private static final TestNamespace.Size MIB = TestNamespace.SIZES.get(2);
    private static final TestNamespace.Size RUN = TestNamespace.SIZES.getLast();
    private static final Namespace OBJECTS = Namespace.objects("objects", "t");

    private static HostStore store(int hostMib, PolicyKind policy) {
        return new HostStore(HostStoreConfig.of((long) hostMib << 20, policy), ArenaMemory.source());
    }

    private static BlockChain chain(NamespaceEntry entry, int seed, int blocks) {
        int[] tokens = IntStream.range(0, blocks * BLOCK_TOKENS)
                .map(i -> seed * 10_000_000 + i)
                .toArray();
        return BlockChain.of(entry.namespace(), tokens);
    }

    private static PutOutcome put(HostStore store, NamespaceEntry entry, BlockChain chain, int index) {
        PutReservation putReservation = store.reserve(entry, chain, index);
        if (putReservation.outcome() == PutOutcome.RESERVED) {
            store.seal(putReservation.record(), 0);
        }
        return putReservation.outcome();
    }

    private static PutOutcome putObject(HostStore store, long number, long bytes) {
        NamespaceEntry entry = store.register(OBJECTS);
        BlockKey key = new BlockKey(number, number * 0x9E37_79B9_7F4A_7C15L);
        PutReservation putReservation = store.reserveObject(entry, key, Math.toIntExact(bytes));
        if (putReservation.outcome() == PutOutcome.RESERVED) {
            store.seal(putReservation.record(), 0);
        }
        return putReservation.outcome();
    }

    @Test
    void givenOneLongChainOfSmallBlocks_whenOtherSizesCome_thenTheyGetSlabs() {
        try (HostStore store = store(64, PolicyKind.LRU)) {
            NamespaceEntry small = store.register(SMALL.namespace());
            BlockChain chain = chain(small, 1, 16_384);
            for (int index = 0; index < chain.length(); index++) {
                assertThat(put(store, small, chain, index)).isEqualTo(PutOutcome.RESERVED);
            }
            NamespaceEntry mib = store.register(MIB.namespace());
            assertThat(put(store, mib, chain(mib, 1, 1), 0)).isEqualTo(PutOutcome.RESERVED);
            assertThat(putObject(store, 1, 5 << 20)).isEqualTo(PutOutcome.RESERVED);
            NamespaceEntry run = store.register(RUN.namespace());
            assertThat(put(store, run, chain(run, 1, 1), 0)).isEqualTo(PutOutcome.RESERVED);
            store.validate();
        }
    }

    @Test
    void givenManyChainsWhoseSlotsAreMixed_whenARunIsWanted_thenItFindsRoom() {
        try (HostStore store = store(96, PolicyKind.LRU)) {
            NamespaceEntry small = store.register(SMALL.namespace());
            List<BlockChain> chains = IntStream.range(0, 64)
                    .mapToObj(seed -> chain(small, seed, 384))
                    .toList();
            for (int index = 0; index < 384; index++) {
                for (BlockChain chain : chains) {
                    assertThat(put(store, small, chain, index)).isEqualTo(PutOutcome.RESERVED);
                }
            }
            NamespaceEntry run = store.register(RUN.namespace());
            assertThat(put(store, run, chain(run, 1, 1), 0)).isEqualTo(PutOutcome.RESERVED);
            store.validate();
        }
    }

    @Test
    void givenAnObjectAsLargeAsTheStore_whenPut_thenItFits() {
        try (HostStore store = store(64, PolicyKind.LRU)) {
            long capacity = store.capacityBytes();
            long number = 0;
            for (long less = 0; less < 20 * 4096; less += 4096) {
                assertThat(putObject(store, number++, capacity - less))
                        .as("%d bytes less than the store", less)
                        .isEqualTo(PutOutcome.RESERVED);
                assertThat(putObject(store, number++, (63 << 20) - less)).isEqualTo(PutOutcome.RESERVED);
                assertThat(putObject(store, number++, (63 << 20) + less)).isEqualTo(PutOutcome.RESERVED);
            }
            store.validate();
        }
    }

    @ParameterizedTest
    @EnumSource(PolicyKind.class)
    @Tag("slow")
    void givenAnyMix_whenNothingIsPinned_thenEveryPutFindsRoom(PolicyKind policy) {
        mix(512, 20_000, policy, 31 + policy.name().hashCode() % 7);
    }

    @Test
    @Tag("slow")
    @EnabledIfSystemProperty(named = "kvcache.property.ops", matches = "\\d+")
    void givenAnyMixInThreeGib_whenNothingIsPinned_thenEveryPutFindsRoom() {
        mix(3 << 10, 1_000_000, PolicyKind.LRU, 5);
    }

    private static void mix(int hostMib, int puts, PolicyKind policy, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        try (HostStore store = store(hostMib, policy)) {
            List<NamespaceEntry> spaces = TestNamespace.SIZES.stream()
                    .map(size -> store.register(size.namespace()))
                    .toList();
            int done = 0;
            for (int chainSeed = 0; done < puts; chainSeed++) {
                int kind = Math.min(random.nextInt(9), random.nextInt(9));
                String what = policy + ", seed " + seed + ", put " + done;
                if (kind < spaces.size()) {
                    int scale = List.of(3000, 300, 60, 3, 2).get(kind);
                    BlockChain chain = chain(spaces.get(kind), chainSeed, 1 + random.nextInt(scale));
                    for (int index = 0; index < chain.length(); index++, done++) {
                        assertThat(put(store, spaces.get(kind), chain, index))
                                .as(what)
                                .isEqualTo(PutOutcome.RESERVED);
                    }
                } else {
                    long largest = Math.min(MAX_OBJECT_BYTES, store.capacityBytes()) >> random.nextInt(16);
                    long bytes = random.nextLong(1, largest + 1);
                    assertThat(putObject(store, chainSeed, bytes)).as(what).isEqualTo(PutOutcome.RESERVED);
                    done++;
                }
            }
            store.validate();
        }
    }
}
