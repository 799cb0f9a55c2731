package io.kvcache.engines.generator;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.engines.generator.EngineSequence.SequenceBlockCopier;
import io.kvcache.engines.generator.GeneratorStats.GeneratorCounters;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.locks.ReentrantLock;

/// Generates with an engine and skips the prefill of what the store has of a prompt.
///
/// ```java
/// try (JlamaModel model = JlamaModel.load(directory, JlamaOptions.defaults());
///         PrefixCachedGenerator<JlamaModel> generator =
///                 new PrefixCachedGenerator<>(model, cache, GeneratorOptions.DEFAULTS)) {
///     Generation answer = generator.generate(GenerationRequest.greedy(tokens, 100), TokenListener.NONE);
/// }
/// ```
///
/// A prompt's tokens become a chain of blocks in the [namespace][#namespace()] of the model. Of the full
/// blocks without the prompt's last token, which has to be computed for what follows it, the store gives
/// the leading ones that it has; they are copied into the sequence, the rest is computed, and after
/// the last token all full blocks of prompt and answer (of the prompt alone, where the
/// [model][EngineModel#storesAnswers()] wants it so) that are new go to the store, beside the next request. A request
/// that goes on from them waits until they are there, as long as blocks may take to
/// [arrive][GeneratorOptions#loadTimeout()]. Whatever the store cannot give is computed.
///
/// **Labels.** What is stored is labelled by [why the generation ended][Generation.EndReason#requestKind()]. Where an
/// answer is a tool call, label its chain again, as [io.kvcache.core.RequestKind#AGENT], once that is known.
///
/// **Verifying.** A share of the hits, chosen at random, is computed all the same and compared block by
/// block, within the model's [tolerance][EngineModel#tolerance()]. From the first block that differs the
/// chain is dropped from the store; it is counted and logged, and the answer is made of what was computed.
///
/// **Ownership.** Model and store stay the caller's, and are closed after this.
///
/// **Threads.** Any number may generate; they take turns, as the model takes one sequence at a time. So have
/// one generator over a model.
///
/// @param <M> the engine's kind of model
public final class PrefixCachedGenerator<M extends EngineModel> implements AutoCloseable {

    private static final Logger LOG = System.getLogger(PrefixCachedGenerator.class.getName());

    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(30);

    private final M model;
    private final KvCache cache;
    private final GeneratorOptions options;
    private final Namespace namespace;
    private final GeneratorCounters counters = new GeneratorCounters();
    private final BlockStoreQueue storeQueue;
    private final SplittableRandom random;
    private final ReentrantLock modelLock = new ReentrantLock(true);

    /// @param cache embedded or remote; the namespace is registered there
    /// @throws IllegalArgumentException when the store refuses the namespace, for example because a block
    ///     is too large for it
    public PrefixCachedGenerator(M model, KvCache cache, GeneratorOptions options) {
        this.model = model;
        this.cache = cache;
        this.options = options;
        namespace = model.namespace(options.blockTokens(), options.tenant(), options.salt());
        cache.register(namespace);
        storeQueue = new BlockStoreQueue(cache, counters, options.maxQueuedStores());
        random = new SplittableRandom(options.seed());
    }

    /// Returns the namespace of its blocks.
    public Namespace namespace() {
        return namespace;
    }

    /// The model that generates.
    public M model() {
        return model;
    }

    /// Generates, and waits for its turn first.
    ///
    /// @throws IllegalArgumentException when a token is none of the model's, or the prompt leaves no room
    ///     in its context
    public Generation generate(GenerationRequest request, TokenListener listener) {
        check(request.prompt());
        modelLock.lock();
        try {
            return new Run(request).generate(listener);
        } finally {
            modelLock.unlock();
        }
    }

    private void check(int[] prompt) {
        if (prompt.length >= model.contextLength()) {
            throw new IllegalArgumentException("the prompt has %s tokens; this model takes 1 to %s"
                    .formatted(prompt.length, model.contextLength() - 1));
        }
        for (int token : prompt) {
            if (token < 0 || token >= model.vocabulary()) {
                throw new IllegalArgumentException(
                        "token is %s, must be: 0 to %s".formatted(token, model.vocabulary() - 1));
            }
        }
    }

    /// Returns the totals so far.
    public GeneratorStats stats() {
        return counters.snapshot();
    }

    /// Waits until the blocks of all that was generated are in the store, or could not be stored.
    ///
    /// @return whether they are done
    public boolean awaitStored(Duration longest) throws InterruptedException {
        return storeQueue.awaitIdle(longest.toNanos());
    }

    /// Lets what is being stored end, for half a minute at most.
    @Override
    public void close() {
        storeQueue.close();
        try {
            if (!storeQueue.awaitIdle(CLOSE_TIMEOUT.toNanos())) {
                LOG.log(Level.WARNING, "blocks of " + namespace + " were still being stored after " + CLOSE_TIMEOUT);
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    /// One request, while it has the model.
    private final class Run {

        private final GenerationRequest request;
        private final int[] prompt;
        private final long start = System.nanoTime();
        private int cachedBlocks;
        private boolean verified;
        private long lookedUp;
        private long imported;

        Run(GenerationRequest request) {
            this.request = request;
            prompt = request.prompt();
        }

        Generation generate(TokenListener listener) {
            BlockChain chain = request.useCache() ? cache.chain(namespace, prompt) : null;
            EngineSequence sequence = sequence();
            boolean offered = false;
            try {
                if (chain != null) {
                    load(sequence, chain);
                    if (cachedBlocks > 0 && random.nextDouble() < options.verifiedShare()) {
                        sequence = recomputeAndVerify(sequence, chain);
                    }
                }
                Generation made = decode(sequence, listener);
                counters.add(made);
                if (chain != null) {
                    // The last token's keys and values were never computed.
                    int computed = model.storesAnswers() ? sequence.tokenCount() - prompt.length : 0;
                    offered = true;
                    BlockChain whole = chain.extend(Arrays.copyOf(made.tokens(), computed));
                    storeQueue.offer(
                            sequence, whole, cachedBlocks, made.endReason().requestKind());
                }
                return made;
            } finally {
                if (!offered) {
                    sequence.close();
                }
            }
        }

        private EngineSequence sequence() {
            return model.newSequence(options.blockTokens(), request.temperature(), request.seed());
        }

        /// Copies what the store has into the sequence.
        private void load(EngineSequence sequence, BlockChain chain) {
            int usable = (prompt.length - 1) / options.blockTokens();
            if (usable > 0) {
                BlockChain wanted = chain.prefix(usable);
                Duration patience = Duration.ofNanos(
                        storeQueue.awaitShared(wanted, options.loadTimeout().toNanos()));
                try (BlockTable table = cache.acquire(wanted, 0, patience)) {
                    int blocks = table.await(usable, patience);
                    lookedUp = System.nanoTime() - start;
                    if (blocks > 0) {
                        copyBlocks(table, blocks, sequence);
                    }
                }
            }
            long now = System.nanoTime() - start;
            lookedUp = lookedUp == 0 ? now : lookedUp;
            imported = now - lookedUp;
        }

        private void copyBlocks(BlockTable table, int blocks, EngineSequence sequence) {
            SequenceBlockCopier into = sequence.blocks(blocks);
            int taken = 0;
            while (taken < blocks && into.copyIn(taken, table.segment(taken))) {
                taken++;
            }
            cachedBlocks = table.isValid() ? taken : 0;
            sequence.truncate(cachedBlocks * options.blockTokens());
        }

        /// The same prompt computed: its rows should be those of the store. Closes the sequence that had them from
        /// there.
        private EngineSequence recomputeAndVerify(EngineSequence suspect, BlockChain chain) {
            EngineSequence computed = sequence();
            try (suspect) {
                computed.prefill(Arrays.copyOf(prompt, prompt.length - 1));
                compare(suspect, computed, chain);
                return computed;
            } catch (RuntimeException failed) {
                computed.close();
                throw failed;
            }
        }

        private void compare(EngineSequence suspect, EngineSequence computed, BlockChain chain) {
            verified = true;
            counters.verified.increment();
            int same = countMatchingBlocks(suspect, computed);
            if (same < cachedBlocks) {
                counters.mismatches.increment();
                int dropped = cache.drop(chain, same);
                LOG.log(
                        Level.ERROR,
                        "block %s of %s from the store is not what the model computes: dropped %s blocks; %s"
                                .formatted(same, cachedBlocks, dropped, model.fingerprint()));
                cachedBlocks = same;
            }
        }

        private int countMatchingBlocks(EngineSequence suspect, EngineSequence computed) {
            SequenceBlockCopier stored = suspect.blocks(cachedBlocks);
            SequenceBlockCopier fresh = computed.blocks(cachedBlocks);
            for (int block = 0; block < cachedBlocks; block++) {
                if (!stored.matches(block, fresh, model.tolerance())) {
                    return block;
                }
            }
            return cachedBlocks;
        }

        private Generation decode(EngineSequence sequence, TokenListener listener) {
            int next = sequence.prefill(prompt);
            final long first = System.nanoTime() - start;
            final float[] logits = sequence.logits();
            int room = Math.min(request.maxTokens(), model.contextLength() - prompt.length);
            int[] tokens = new int[room];
            int count = 0;
            Generation.EndReason endReason = Generation.EndReason.LENGTH;
            while (true) {
                if (request.stops().contains(next)) {
                    endReason = Generation.EndReason.STOP;
                    break;
                }
                tokens[count++] = next;
                if (!listener.accept(next)) {
                    endReason = Generation.EndReason.CANCELLED;
                    break;
                }
                if (count == room) {
                    break;
                }
                next = sequence.decode(next);
            }
            return new Generation(
                    Arrays.copyOf(tokens, count),
                    logits,
                    endReason,
                    prompt.length,
                    cachedBlocks * options.blockTokens(),
                    verified,
                    new Generation.Timings(
                            lookedUp, imported, first - lookedUp - imported, first, System.nanoTime() - start));
        }
    }

    /// Hears of tokens as they come.
    @FunctionalInterface
    public interface TokenListener {

        /// Does nothing.
        TokenListener NONE = _ -> true;

        /// Takes a token, on the thread that generates.
        ///
        /// @return whether to go on
        boolean accept(int token);
    }
}
