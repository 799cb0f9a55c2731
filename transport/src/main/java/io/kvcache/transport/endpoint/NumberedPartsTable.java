package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingBlockTable;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.wire.LeaseNumbers;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/// A table with windows and states as a lease has it: one run of numbers, see [LeaseNumbers].
final class NumberedPartsTable extends ForwardingBlockTable {

    private final Namespace namespace;

    private NumberedPartsTable(BlockTable table, Namespace namespace) {
        super(table);
        this.namespace = namespace;
    }

    /// The table of a lease on a table.
    static BlockTable of(BlockTable table, Namespace namespace) {
        return namespace.groups().isEmpty() ? table : new NumberedPartsTable(table, namespace);
    }

    private LeaseNumbers numbers() {
        return new LeaseNumbers(namespace, delegate().endBlock());
    }

    @Override
    public int endBlock() {
        LeaseNumbers numbers = numbers();
        return numbers.end() == firstBlock() ? firstBlock() : numbers.total();
    }

    @Override
    public int readyEnd() {
        int ready = delegate().readyEnd();
        return ready > firstBlock() ? new LeaseNumbers(namespace, ready).total() : firstBlock();
    }

    @Override
    public int await(int end, Duration timeout) {
        int _ = delegate().await(delegate().endBlock(), timeout);
        return readyEnd();
    }

    @Override
    public CompletionStage<Integer> onReady(int end, Executor executor) {
        return delegate().onReady(delegate().endBlock(), executor).thenApply(_ -> readyEnd());
    }

    @Override
    public MemorySegment segment(int number) {
        return read(number, BlockTable::segment);
    }

    @Override
    public int checksum(int number) {
        return read(number, BlockTable::checksum);
    }

    @Override
    public long handle(int number) {
        return read(number, BlockTable::handle);
    }

    /// Something of a block or entry.
    private interface Field<T> {
        T of(BlockTable table, int index);
    }

    private <T> T read(int number, Field<T> field) {
        LeaseNumbers numbers = numbers();
        int group = numbers.groupOf(number);
        if (group < 0) {
            return field.of(delegate(), number);
        }
        int part =
                namespace.parts().indexOf(namespace.groups().get(group).parts().getFirst());
        return field.of(delegate().part(part), numbers.entry(group, number));
    }
}
