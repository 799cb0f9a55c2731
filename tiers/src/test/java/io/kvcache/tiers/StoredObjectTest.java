package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.ObjectSpec;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.tiers.ObjectOperations.StoredObject;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class StoredObjectTest {

    private static final Namespace SPACE = Namespace.objects("objects", "tenant");

    /// A key of 4,096 bytes behind a value of 4,000 lies in two slots.
    @ParameterizedTest
    @ValueSource(ints = {1, 7, 8, 9, 16, 255, KvCache.MAX_OBJECT_KEY_BYTES})
    void givenAKey_whenComparedWithOthers_thenItIsTheSameInAllBytesOnly(int length) {
        byte[] key = new byte[length];
        new Random(length).nextBytes(key);
        HostStoreConfig config = new HostStoreConfig(SlabPool.MIN_BYTES, 1000, PolicyKind.LRU, 1024);
        try (HostStore store = new HostStore(config, ArenaMemory.source())) {
            ObjectSpec object = new ObjectSpec(BlockKey.ofObject(SPACE, key), null, 4000 + length);
            PutReservation putReservation = store.reserveObject(store.register(SPACE), object, false);
            StoredObject stored = new StoredObject(store.lookup(), putReservation.record(), 4000);
            stored.writeKey(key);
            assertThat(stored.hasKey(key.clone())).isTrue();
            for (int at = 0; at < length; at++) {
                byte[] other = key.clone();
                other[at]++;
                assertThat(stored.hasKey(other)).as("byte %d", at).isFalse();
            }
            assertThat(stored.hasKey(new byte[length + 1])).isFalse();
        }
    }
}
