package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierBlock;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/// A burial that a disk is told of after the write of a newer copy would bury that one too, at the next opening.
final class BurialOrderTest {

    private static final Namespace THINGS = Namespace.objects("things", "t");
    private static final BlockKey KEY = BlockKey.ofObject(THINGS, new byte[] {1});

    private final HostStore store =
            new HostStore(new HostStoreConfig(2 * SlabPool.SLAB_BYTES, 100, PolicyKind.LRU, 64), ArenaMemory.source());
    private final NamespaceEntry things = store.register(THINGS);

    private void put() {
        Reserved reserved = store.reserveObject(things, KEY, 5_000);
        assertThat(reserved.outcome()).isEqualTo(PutOutcome.RESERVED);
        store.seal(reserved.record(), 1);
    }

    private Disks.Write write() {
        return Objects.requireNonNull(store.disks().nextWrite(0));
    }

    @Test
    void givenAnObjectOnDiskThatWasReplaced_whenItsBurialWaits_thenNothingIsWrittenBefore() {
        assertThat(store.disks().open(1 << 20)).isZero();
        assertThat(store.disks().open(1 << 20)).isOne();
        store.disks().admit(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, 1);
        put();
        store.disks().written(write().record(), 0, 7);
        put();
        assertThat(store.disks().nextWrite(0)).isNull();
        TierBlock burial = Objects.requireNonNull(store.disks().nextBurial(0));
        assertThat(burial.keyLo()).isEqualTo(KEY.lo());
        assertThat(write().block().keyLo()).isEqualTo(KEY.lo());
        store.close();
    }

    @Test
    void givenABurialOnOneDisk_whenAnotherAsks_thenItMayWrite() {
        assertThat(store.disks().open(1 << 20)).isZero();
        assertThat(store.disks().open(1 << 20)).isOne();
        store.disks().admit(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, 1);
        put();
        store.disks().written(write().record(), 0, 7);
        put();
        assertThat(store.disks().nextWrite(1)).isNotNull();
        store.close();
    }
}
