package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;

/// A group on its way to the device: the head and every piece of every block a write of its own, straight
/// from where it lies. It is written when all of them are; if one fails, none of its blocks counts.
final class GroupWrite {

    private final long number;
    private final OpenRegion into;
    private final PlacedGroup placed;
    private final List<Append> appends;
    private final MemorySegment head;
    private final Consumer<GroupWrite> then;
    private int left;
    private boolean failed;

    /// Where a group comes from and goes to.
    ///
    /// @param number counts groups in the order in which they are begun
    record Cargo(long number, OpenRegion into, List<Append> appends, MemorySegment head) {}

    /// @param then what follows when all writes have ended
    GroupWrite(Cargo cargo, Consumer<GroupWrite> then) {
        this.number = cargo.number;
        this.into = cargo.into;
        this.appends = cargo.appends;
        this.head = cargo.head;
        this.then = then;
        this.placed = into.place(appends.stream().map(Append::entry).toList());
    }

    /// Hands all writes over.
    void start(Transfers transfers, Regions regions) {
        Group group = placed.group();
        group.write(head);
        left = 1
                + appends.stream()
                        .mapToInt(each -> each.pieces().spans().size())
                        .sum();
        transfers.add(Transfer.write(WriteKind.HEAD, head, regions.offset(into.region(), group.page()), this::ended));
        for (int i = 0; i < appends.size(); i++) {
            Append append = appends.get(i);
            long offset = regions.offset(into.region(), group.entries().get(i).page());
            for (MemorySegment span : append.pieces().spans()) {
                transfers.add(Transfer.write(append.kind(), span, offset, this::ended));
                offset += span.byteSize();
            }
        }
    }

    private void ended(IoOutcome outcome) {
        failed |= !outcome.isDone();
        left--;
        if (left == 0) {
            if (!failed) {
                placed.succeeded();
            }
            into.ended(placed);
            then.accept(this);
        }
    }

    Stream<Append> appends() {
        return appends.stream();
    }

    OpenRegion into() {
        return into;
    }

    MemorySegment head() {
        return head;
    }

    boolean failed() {
        return failed;
    }

    /// Counts groups in the order in which they were begun.
    long number() {
        return number;
    }

    /// Tells everybody where their blocks are.
    void tell() {
        List<DiskEntry> entries = placed.group().entries();
        for (int i = 0; i < appends.size(); i++) {
            long place =
                    failed ? DiskPlace.NONE : into.region().place(entries.get(i).page());
            appends.get(i).ended().ended(place);
        }
    }
}
