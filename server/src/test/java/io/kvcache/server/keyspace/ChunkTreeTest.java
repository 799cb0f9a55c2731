package io.kvcache.server.keyspace;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.stats.ObjectResidency;
import io.kvcache.server.keyspace.ChunkTree.ChunkNode;
import io.kvcache.server.keyspace.KeyIndex.KeyEntry;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The tree of LMCache's chunks, from the order in which clients ask. Digests stand for chunks: `a0000000` and so
/// on.
final class ChunkTreeTest {

    private static final String STEM = "m@1@0@*";

    private static final Namespace NAMESPACE = Namespace.objects("objects", "default");

    private final KeyIndex index = new KeyIndex(new AtomicInteger());
    private final List<ObjectResidency> stored = new ArrayList<>();
    private final ChunkOrder order = new ChunkOrder();

    private static String digest(char sequence, int number) {
        return sequence + "%07d".formatted(number);
    }

    private void put(String digest) {
        ObjectKey key = ObjectKey.of(NAMESPACE, TestKeyspace.key(STEM.replace("*", digest)));
        index.put(new KeyEntry(key, 100, 0, 0));
        stored.add(new ObjectResidency(0, key.digest(), 100, true, false, 1, 1));
    }

    private ChunkTree tree(@Nullable String stem) {
        ChunkTree tree = new ChunkTree(index, order, stem);
        stored.forEach(tree::add);
        return tree;
    }

    private List<ChunkNode> nodes() {
        return tree(STEM).nodes(null);
    }

    @Test
    void givenAChunkThatLeft_whenShown_thenThoseBehindItStandBelowTheOneBefore() {
        put(digest('a', 0));
        put(digest('a', 2));
        order.onLookup(digest('a', 0), ChunkOrder.NONE);
        order.onLookup(digest('a', 1), digest('a', 0));
        order.onLookup(digest('a', 2), digest('a', 1));
        ChunkNode node = nodes().getFirst();
        assertThat(node.digest()).isEqualTo(digest('a', 0));
        assertThat(node.chunks()).isEqualTo(2);
        assertThat(node.run()).as("up to the third place").isEqualTo(3);
        assertThat(order.depthOf(digest('a', 2))).isEqualTo(2);
    }

    @Test
    void givenTheFirstChunkHasLeft_whenShown_thenTheNextOneBeginsTheSequence() {
        put(digest('a', 1));
        order.onLookup(digest('a', 0), ChunkOrder.NONE);
        order.onLookup(digest('a', 1), digest('a', 0));
        assertThat(nodes()).extracting(ChunkNode::depth).containsExactly(1);
    }

    @Test
    void givenChunksThatClientsShowedInACircle_whenShown_thenEachIsThereOnce() {
        put(digest('a', 0));
        put(digest('a', 1));
        order.onTransfer(digest('a', 0), digest('a', 1));
        order.onTransfer(digest('a', 1), digest('a', 0));
        assertThat(nodes()).extracting(ChunkNode::chunks).containsExactly(2L);
        assertThat(order.depthOf(digest('a', 0))).as("it has no beginning").isEqualTo(-1);
    }

    @Test
    void givenAChunkThatWasNotAskedFor_whenShown_thenItCountsAndStandsInNoTree() {
        put(digest('a', 0));
        assertThat(nodes()).isEmpty();
        ChunkTree all = tree(null);
        assertThat(all.models()).extracting(ChunkTree.ChunkModel::chunks).containsExactly(1L);
        assertThat(all.models()).extracting(ChunkTree.ChunkModel::placed).containsExactly(0L);
    }

    @ParameterizedTest
    @CsvSource({
        "meta/llama@2@0@1c7e1c7e1c7e@bfloat16, meta/llama bfloat16, 2@0",
        "vllm@meta/llama@4@3@-1c7e1c7e1c7e, vllm@meta/llama, 4@3",
        "meta/llama@04000400@1c7e1c7e1c7e, meta/llama, 04000400",
        "meta/llama@half@1c7e1c7e1c7ekv_bytes, meta/llama@half, ''",
    })
    void givenAKey_whenItsStemIsRead_thenItHasModelAndWorker(String key, String model, String worker) {
        String stem = Objects.requireNonNull(ChunkKey.of(TestKeyspace.key(key))).stem();
        ChunkTree.ChunkModel read = new ChunkTree.ChunkModel(stem, 0, 0, 0, 0, 0);
        assertThat(read.model()).isEqualTo(model);
        assertThat(read.worker()).isEqualTo(worker);
    }
}
