package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.LeafHeap;
import io.kvcache.core.policy.LeafLru;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// More tenants with shares of their own, and more sizes of blocks, than policies have numbers for queues.
final class ManyTenantsTest {

    private static final long HOST_BYTES = 256L << 20;
    private static final int TENANTS = 64;
    private static final int SIZES = 4;

    private static HostStore store(EvictionPolicyFactory policy) {
        return new HostStore(new HostStoreConfig(HOST_BYTES, 1 << 14, policy, 64), ArenaMemory.source());
    }

    /// Blocks of 4 KiB times the number.
    private static Namespace blocks(String model, int number) {
        return Namespace.of(model, BlockShape.kv(1, 1, 64 * number, 16, Dtype.BF16));
    }

    private static void object(HostStore store, NamespaceEntry entry, long number, int bytes) {
        BlockKey key = new BlockKey(number, (number + 1) * 0x9E37_79B9_7F4A_7C15L);
        seal(store, store.reserveObject(entry, key, bytes));
    }

    private static void block(HostStore store, NamespaceEntry entry, int seed) {
        int[] tokens = new int[16];
        tokens[0] = seed;
        seal(store, store.reserve(entry, BlockChain.of(entry.namespace(), tokens), 0));
    }

    private static void seal(HostStore store, PutReservation putReservation) {
        assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
        store.seal(putReservation.record(), 0);
    }

    /// LRU that takes two queues an instance.
    private static final class TwoQueues implements EvictionPolicyFactory {

        @Override
        public String commandName() {
            return "two-queues";
        }

        @Override
        public int queueCount() {
            return 2;
        }

        @Override
        public EvictionPolicy create(RecordView records, PolicyState state) {
            var _ = new LeafHeap(records, state);
            return new LeafLru(records, state);
        }
    }

    static List<EvictionPolicyFactory> policies() {
        return List.of(PolicyKind.LRU, new TwoQueues(), PolicyKind.IMPORTANCE);
    }

    @ParameterizedTest
    @MethodSource("policies")
    @Tag("slow")
    void givenMoreTenantsAndSizesThanQueues_whenTheStoreIsFilledOver_thenAllPutsFindRoom(EvictionPolicyFactory policy) {
        try (HostStore store = store(policy)) {
            List<NamespaceEntry> values = new ArrayList<>();
            List<NamespaceEntry> blocks = new ArrayList<>();
            for (int tenant = 0; tenant < TENANTS; tenant++) {
                NamespaceEntry own = store.register(Namespace.objects("objects", "tenant" + tenant));
                store.setWeight(own, 1);
                values.add(own);
                for (int size = 1; size <= SIZES; size++) {
                    blocks.add(store.register(blocks("m" + tenant + "-" + size, size)));
                }
            }
            for (int round = 0; round < 8; round++) {
                int seed = round;
                blocks.forEach(entry -> block(store, entry, seed));
                for (int tenant = 0; tenant < TENANTS; tenant++) {
                    long first = 1 + 1000L * (round * TENANTS + tenant);
                    object(store, values.get(tenant), first, (1 << 20) - 100);
                    object(store, values.get(tenant), first + 1, 60_000);
                    object(store, values.get(tenant), first + 2, 3000);
                }
            }
            assertThat(store.stats(0).removals().evicted()).isPositive();
            store.validate();
        }
    }

    @Test
    void givenTenantsThatTookTheNumbers_whenOneMoreSizeComes_thenItFindsOneUntilThereAreTooMany() {
        try (HostStore store = store(new TwoQueues())) {
            for (int tenant = 0; tenant < 2 * TENANTS; tenant++) {
                NamespaceEntry own = store.register(Namespace.objects("objects", "tenant" + tenant));
                store.setWeight(own, 1);
                object(store, own, tenant, 3000);
            }
            for (int size = 1; size <= 8; size++) {
                block(store, store.register(blocks("m" + size, size)), 1);
            }
            assertThatThrownBy(() -> {
                        for (int size = 9; size <= 60; size++) {
                            store.register(blocks("m" + size, size));
                        }
                    })
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("another size");
            block(store, store.register(blocks("again", 8)), 2);
            store.validate();
        }
    }
}
