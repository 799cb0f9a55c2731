package io.kvcache.core;

import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.shm.SharedMemory;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/// A cache that forwards every call to another one. Extend it to change some calls and keep the rest.
///
/// [#getRange] and [#acquireByLayers] are not forwarded: they go by [#acquire], so that a cache that changes that
/// need not change them too.
///
/// **Ownership.** Closing it closes the cache behind it.
///
/// **Threads.** As the cache behind it.
public abstract class ForwardingKvCache implements LocalKvCache {

    private final LocalKvCache delegate;

    /// @param delegate receives every call that is not overridden
    protected ForwardingKvCache(LocalKvCache delegate) {
        this.delegate = delegate;
    }

    /// The cache behind this one.
    protected final LocalKvCache delegate() {
        return delegate;
    }

    @Override
    public void register(Namespace namespace) {
        delegate.register(namespace);
    }

    @Override
    public BlockChain chain(Namespace namespace, int[] tokens) {
        return delegate.chain(namespace, tokens);
    }

    @Override
    public Match match(BlockChain chain) {
        return delegate.match(chain);
    }

    @Override
    public Match match(BlockChain chain, Duration timeout) {
        return delegate.match(chain, timeout);
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
        return delegate.acquire(chain, from, timeout);
    }

    @Override
    public BlockTable acquireCopy(BlockChain chain, int from, Duration timeout) {
        return delegate.acquireCopy(chain, from, timeout);
    }

    @Override
    public void countFromDevice(Namespace namespace, int blocks, int alone) {
        delegate.countFromDevice(namespace, blocks, alone);
    }

    @Override
    public BlockWriter put(BlockChain chain, int index, int part, Duration timeout) {
        return delegate.put(chain, index, part, timeout);
    }

    @Override
    public PutSummary putAll(BlockChain chain, int from, List<MemorySegment> blocks, Duration timeout) {
        return delegate.putAll(chain, from, blocks, timeout);
    }

    @Override
    public int getAll(BlockChain chain, int from, List<MemorySegment> into) {
        return delegate.getAll(chain, from, into);
    }

    @Override
    public int drop(BlockChain chain, int from) {
        return delegate.drop(chain, from);
    }

    @Override
    public boolean hint(Hint hint) {
        return delegate.hint(hint);
    }

    @Override
    public ObjectWriter putObject(Namespace namespace, byte[] key, long bytes, Duration timeout) {
        return delegate.putObject(namespace, key, bytes, timeout);
    }

    @Override
    public ObjectWriter putObject(
            Namespace namespace, byte[] key, byte @Nullable [] after, long bytes, Duration timeout) {
        return delegate.putObject(namespace, key, after, bytes, timeout);
    }

    @Override
    public boolean storeObject(Namespace namespace, byte[] key, MemorySegment value, Duration timeout) {
        return delegate.storeObject(namespace, key, value, timeout);
    }

    @Override
    public @Nullable ObjectView getObject(Namespace namespace, byte[] key) {
        return delegate.getObject(namespace, key);
    }

    @Override
    public @Nullable ObjectView getObject(Namespace namespace, byte[] key, Duration timeout) {
        return delegate.getObject(namespace, key, timeout);
    }

    @Override
    public CompletionStage<@Nullable ObjectView> fetchObject(
            Namespace namespace, byte[] key, Duration timeout, Executor executor) {
        return delegate.fetchObject(namespace, key, timeout, executor);
    }

    @Override
    public boolean containsObject(Namespace namespace, byte[] key) {
        return delegate.containsObject(namespace, key);
    }

    @Override
    public boolean dropObject(Namespace namespace, byte[] key) {
        return delegate.dropObject(namespace, key);
    }

    @Override
    public int hintObjects(Namespace namespace, List<byte[]> keys, ObjectHint hint) {
        return delegate.hintObjects(namespace, keys, hint);
    }

    @Override
    public boolean linkObject(Namespace namespace, byte[] key, byte @Nullable [] after) {
        return delegate.linkObject(namespace, key, after);
    }

    @Override
    public boolean prefetchObject(Namespace namespace, byte[] key) {
        return delegate.prefetchObject(namespace, key);
    }

    @Override
    public @Nullable ObjectView holdObject(Namespace namespace, byte[] key) {
        return delegate.holdObject(namespace, key);
    }

    @Override
    public void warmObjects(Namespace namespace, List<byte[]> keys) {
        delegate.warmObjects(namespace, keys);
    }

    @Override
    public ObjectCatalog objects(Namespace namespace) {
        return delegate.objects(namespace);
    }

    @Override
    public @Nullable SharedMemory sharedMemory() {
        return delegate.sharedMemory();
    }

    @Override
    public MemorySegment hostMemory() {
        return delegate.hostMemory();
    }

    @Override
    public long drop(Namespace namespace) {
        return delegate.drop(namespace);
    }

    @Override
    public boolean flush(Duration timeout) {
        return delegate.flush(timeout);
    }

    @Override
    public CacheStats stats() {
        return delegate.stats();
    }

    @Override
    public EventStream events() {
        return delegate.events();
    }

    @Override
    public void close() {
        delegate.close();
    }

    @Override
    public @Nullable DiskBlock diskObject(Namespace namespace, byte[] key) {
        return delegate.diskObject(namespace, key);
    }
}
