package io.kvcache.server.miss;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.event.EventFeed;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.miss.MissCauses.RemovalFollower;
import io.kvcache.server.miss.MissLog.Reason;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

/// Why blocks and objects have left a store, by its events.
final class RemovalFollowerTest {

    /// Blocks of 1 MiB.
    private static final Namespace BLOCKS = Namespace.of("m", BlockShape.kv(16, 1, 1024, 16, Dtype.BF16));

    private static final Namespace OBJECTS = Namespace.objects("of-another-jvm", "default");
    private static final Namespace KEYSPACE = Namespace.objects("of-a-keyspace", "default");
    private static final byte[] KEY = "k".getBytes(StandardCharsets.US_ASCII);

    private final TestKeyspace test = TestKeyspace.small();
    private final MissCauses causes = new MissCauses(test.time()::nanos);
    private final RemovalFollower follower = new RemovalFollower(
            test.cache().events().withoutObjectPuts(),
            new EventFeed(test.cache(), "epoch", EventFeed.subscriberSlots(0, 1))::namespace,
            KEYSPACE::equals,
            causes);

    private static BlockChain chain(int number) {
        int[] tokens = new int[16];
        tokens[0] = number;
        return BlockChain.of(BLOCKS, tokens);
    }

    private void put(int number) {
        try (BlockWriter writer = test.cache().put(chain(number), 0, 0, KvCache.NO_WAIT)) {
            assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
        }
    }

    private void putAndDropObject(Namespace namespace) {
        test.cache().register(namespace);
        try (var writer = test.cache().putObject(namespace, KEY, 10, KvCache.NO_WAIT)) {
            writer.seal();
        }
        test.cache().dropObject(namespace, KEY);
    }

    @Test
    void givenRemovals_whenTicked_thenEachHasItsCauseAndThoseOfKeyspacesAreLeftToThem() {
        test.cache().register(BLOCKS);
        put(0);
        test.cache().drop(chain(0), 0);
        for (int number = 1; number < 200; number++) {
            put(number);
        }
        putAndDropObject(OBJECTS);
        putAndDropObject(KEYSPACE);

        follower.tick();

        assertThat(causes.causeOf(chain(0).key(0))).isEqualTo(Reason.DELETED);
        assertThat(causes.causeOf(chain(1).key(0))).isEqualTo(Reason.EVICTED);
        assertThat(causes.causeOf(chain(199).key(0))).as("it is here").isEqualTo(Reason.NEVER_SEEN);
        assertThat(causes.causeOf(BlockKey.ofObject(OBJECTS, KEY))).isEqualTo(Reason.DELETED);
        assertThat(causes.causeOf(BlockKey.ofObject(KEYSPACE, KEY))).isEqualTo(Reason.NEVER_SEEN);
        test.close();
    }
}
