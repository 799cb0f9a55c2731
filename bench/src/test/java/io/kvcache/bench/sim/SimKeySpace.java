package io.kvcache.bench.sim;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.identity.PartKind;
import io.kvcache.core.identity.RopeOrigin;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The sequences of a run: in each namespace a few trunks with a few branches, of which prompts have a
/// prefix. The bytes of a block follow from its key.
final class SimKeySpace {

    static final Namespace OBJECTS = Namespace.objects("things", "sim");

    private static final int BLOCK_TOKENS = 16;
    private static final int TRUNKS = 6;
    private static final int BRANCHES = 4;
    private static final int MAX_BLOCKS = 16;

    /// Blocks of 8 KiB for each. Those of 40 layers and more are read in part where they are plain; those of 130 do
    /// not fit a region of 1 MiB.
    private static final int[] LAYERS = {1, 2, 3, 5, 8, 12, 24, 40, 40, 60, 60, 130};

    /// Of [#LAYERS]: namespaces with a window and a state beside full attention.
    private static final Set<Integer> HYBRID = Set.of(8, 10);

    private static final int WINDOW_TOKENS = 40;
    private static final int STATE_BLOCKS = 4;

    private final List<Namespace> namespaces = new ArrayList<>();
    private final Map<BlockKey, BlockKey> parents = new HashMap<>();
    private final Map<BlockKey, Namespace> namespaceOfKey = new HashMap<>();
    private final Map<BlockKey, BlockKey> blocksOfEntries = new HashMap<>();
    private final SplittableRandom random;

    SimKeySpace(SplittableRandom random) {
        this.random = random;
        for (int i = 0; i < 2 + random.nextInt(2); i++) {
            int choice = random.nextInt(LAYERS.length);
            BlockShape shape = shape(LAYERS[choice], BLOCK_TOKENS);
            namespaces.add(HYBRID.contains(choice) ? hybrid("model-" + i, shape) : Namespace.of("model-" + i, shape));
        }
    }

    private static BlockShape shape(int layers, int blockTokens) {
        return BlockShape.kv(layers, 2, 64, blockTokens, Dtype.BF16);
    }

    private static Namespace hybrid(String model, BlockShape full) {
        return Namespace.builder(model)
                .part(Part.full(full))
                .part(new Part(1, 0, PartKind.WINDOW, WINDOW_TOKENS, shape(3, BLOCK_TOKENS), RopeOrigin.FROM_ZERO))
                .part(new Part(2, 0, PartKind.STATE, 0, shape(24, STATE_BLOCKS * BLOCK_TOKENS), RopeOrigin.FROM_ZERO))
                .build();
    }

    List<Namespace> namespaces() {
        return namespaces;
    }

    Namespace randomNamespace() {
        return namespaces.get(random.nextInt(namespaces.size()));
    }

    /// Some prompt. Those of the last namespace are named by an engine.
    BlockChain randomChain() {
        int space = random.nextInt(namespaces.size());
        int trunk = random.nextInt(TRUNKS);
        int branch = random.nextInt(BRANCHES);
        int fork = 1 + trunk % 5;
        int blocks = 1 + random.nextInt(MAX_BLOCKS);
        BlockChain chain = space == 2
                ? BlockChain.ofEngineKeys(
                        namespaces.get(space),
                        IntStream.range(0, blocks)
                                .mapToObj(i -> ByteBuffer.allocate(12)
                                        .putInt(trunk)
                                        .putInt(i < fork ? -1 : branch)
                                        .putInt(i)
                                        .array())
                                .toList())
                : BlockChain.of(
                        namespaces.get(space),
                        IntStream.range(0, blocks * BLOCK_TOKENS)
                                .map(i -> i / BLOCK_TOKENS < fork ? trunk : trunk << 8 | branch + 1)
                                .toArray());
        remember(chain);
        return chain;
    }

    private void remember(BlockChain chain) {
        for (int i = chain.length() - 1;
                i >= 0 && namespaceOfKey.putIfAbsent(chain.key(i), chain.namespace()) == null;
                i--) {
            if (i > 0) {
                parents.put(chain.key(i), chain.key(i - 1));
            }
            BlockKey block = chain.key(i);
            entriesBehind(chain, i).forEach(entry -> {
                namespaceOfKey.put(entry, chain.namespace());
                blocksOfEntries.put(entry, block);
                parents.put(entry, block);
            });
        }
    }

    /// The keys of the entries of windows and states that have their place behind a block.
    static List<BlockKey> entriesBehind(BlockChain chain, int index) {
        return chain.namespace().groups().stream()
                .filter(group -> group.isBehind(index))
                .map(group -> chain.entry(group, group.entryBehind(index)).key(0))
                .toList();
    }

    /// The block that an entry of a window or state belongs to; null for other keys.
    @Nullable
    BlockKey blockOfEntry(BlockKey key) {
        return blocksOfEntries.get(key);
    }

    /// Returns whether a block, or one above it, is such.
    boolean anyInPath(BlockKey block, Predicate<BlockKey> such) {
        for (@Nullable BlockKey at = block; at != null; at = parents.get(at)) {
            if (such.test(at)) {
                return true;
            }
        }
        return false;
    }

    boolean belongsTo(BlockKey block, Namespace space) {
        Namespace home = namespaceOfKey.get(block);
        return home != null && home.equals(space);
    }

    /// Returns whether a key is a block's, and not an object's.
    boolean isBlock(BlockKey key) {
        return namespaceOfKey.containsKey(key);
    }

    /// The blocks of a namespace that were ever named.
    Set<BlockKey> keysOf(Namespace space) {
        return namespaceOfKey.entrySet().stream()
                .filter(home -> home.getValue().equals(space))
                .map(Map.Entry::getKey)
                .collect(Collectors.toSet());
    }

    static BlockContent content(BlockKey key) {
        return BlockContent.of(key);
    }

    static int blockBytes(Namespace space) {
        return Math.toIntExact(space.blockBytes());
    }
}
