package io.kvcache.transport.client;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingBlockTable;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.PartGroup;
import io.kvcache.transport.wire.LeaseNumbers;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/// A match with windows and states, out of the run of numbers that its lease has ([LeaseNumbers]). Nothing of it is
/// ready before all is here, and if something does not come, there is no match.
final class RemotePartsTable extends ForwardingBlockTable {

    private final RemoteBlockTable numbered;
    private final Namespace namespace;

    private RemotePartsTable(RemoteBlockTable numbered, Namespace namespace) {
        super(numbered);
        this.numbered = numbered;
        this.namespace = namespace;
    }

    /// The table that a caller gets.
    static BlockTable of(RemoteBlockTable numbered, Namespace namespace) {
        return namespace.groups().isEmpty() ? numbered : new RemotePartsTable(numbered, namespace);
    }

    private LeaseNumbers numbers() {
        try {
            return numbered.numbers();
        } catch (ProtocolException strange) {
            return new LeaseNumbers(namespace, firstBlock());
        }
    }

    @Override
    public int endBlock() {
        int leased = numbered.leasedEnd();
        return leased > firstBlock() && numbered.endBlock() == leased
                ? numbers().end()
                : firstBlock();
    }

    @Override
    public int readyEnd() {
        int leased = numbered.leasedEnd();
        return leased > firstBlock() && numbered.readyEnd() == leased
                ? numbers().end()
                : firstBlock();
    }

    @Override
    public int await(int end, Duration timeout) {
        if (end > firstBlock()) {
            int _ = numbered.await(Integer.MAX_VALUE, timeout);
        }
        return readyEnd();
    }

    @Override
    public CompletionStage<Integer> onReady(int end, Executor executor) {
        return numbered.onReady(Integer.MAX_VALUE, executor).thenApply(_ -> readyEnd());
    }

    @Override
    public int readyLayers() {
        return readyEnd() >= endBlock() ? ALL_LAYERS : 0;
    }

    @Override
    public int awaitLayers(int layers, Duration timeout) {
        int _ = await(Integer.MAX_VALUE, timeout);
        return readyLayers();
    }

    @Override
    public CompletionStage<Integer> onLayers(int layers, Executor executor) {
        return onReady(Integer.MAX_VALUE, executor).thenApply(_ -> readyLayers());
    }

    @Override
    public MemorySegment readySegment(int index) {
        return index < readyEnd() ? segment(index) : MemorySegment.NULL;
    }

    @Override
    public MemorySegment segment(int index) {
        return super.segment(requireReady(index));
    }

    @Override
    public int checksum(int index) {
        return super.checksum(requireReady(index));
    }

    private int requireReady(int index) {
        if (index >= readyEnd()) {
            throw new IndexOutOfBoundsException("block " + index + " of a table of which blocks " + firstBlock()
                    + " to " + readyEnd() + " (exclusive) are ready");
        }
        return index;
    }

    @Override
    public BlockTable part(int part) {
        PartGroup group = namespace.groupOf(part);
        return group == null ? this : new Entries(namespace.groups().indexOf(group), group);
    }

    /// Entries of a group.
    private final class Entries extends ForwardingBlockTable {

        private final int number;
        private final PartGroup group;

        Entries(int number, PartGroup group) {
            super(RemotePartsTable.this);
            this.number = number;
            this.group = group;
        }

        @Override
        public int firstBlock() {
            return group.firstNeeded(numbers().end());
        }

        @Override
        public int endBlock() {
            return delegate().endBlock() > delegate().firstBlock()
                    ? group.entries(numbers().end())
                    : firstBlock();
        }

        @Override
        public int readyEnd() {
            return delegate().readyEnd() > delegate().firstBlock()
                    ? group.entries(numbers().end())
                    : firstBlock();
        }

        @Override
        public int await(int end, Duration timeout) {
            int _ = delegate().await(Integer.MAX_VALUE, timeout);
            return readyEnd();
        }

        @Override
        public CompletionStage<Integer> onReady(int end, Executor executor) {
            return delegate().onReady(Integer.MAX_VALUE, executor).thenApply(_ -> readyEnd());
        }

        @Override
        public MemorySegment segment(int entry) {
            return numbered.segment(numberOf(entry));
        }

        @Override
        public int checksum(int entry) {
            return numbered.checksum(numberOf(entry));
        }

        @Override
        public void copyTo(int entry, MemorySegment target) {
            MemorySegment bytes = segment(entry);
            MemorySegment.copy(bytes, 0, target, 0, bytes.byteSize());
        }

        private int numberOf(int entry) {
            if (entry < firstBlock() || entry >= readyEnd()) {
                throw new IndexOutOfBoundsException("entry " + entry + " of a table of entries " + firstBlock() + " to "
                        + readyEnd() + " (exclusive)");
            }
            return numbers().first(number) + entry - firstBlock();
        }
    }
}
