package io.kvcache.tiers.movement;

import io.kvcache.core.memory.Pages;
import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.Tier.RangeTier;
import io.kvcache.core.tier.Tier.RangeTier.TierRange;
import io.kvcache.core.tier.TierRead;
import io.kvcache.tiers.movement.SteppedLoads.SteppedLoad;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Brings the blocks of a table step by step, so that their first layers are there before the last ones. A block
/// that the tier does not read in part is read whole with the first step.
///
/// Between two steps the block may have moved on the disk, and its readers may have gone: the store is asked
/// anew.
///
/// **Threads.** The tier worker's.
final class StepPump {

    private final int disk;
    private final TierPort tierPort;
    private final LoadPump loadPump;
    private final Map<Long, Part> inFlight = new HashMap<>();
    private @Nullable SteppedLoads current;
    private long bytes;
    private int begun;

    private record Part(SteppedLoad of, int step, int stepBytes, int bytes) {}

    StepPump(int disk, TierPort tierPort, LoadPump loadPump) {
        this.disk = disk;
        this.tierPort = tierPort;
        this.loadPump = loadPump;
    }

    /// Begins with the loads of another table, when [#hasNext] is false.
    void begin(SteppedLoads next) {
        current = next;
    }

    boolean hasNext() {
        return current != null;
    }

    /// Hands on the next part; answers false when the tier takes no more now.
    boolean submitNext(Tier tier) {
        SteppedLoads loads = current;
        if (loads == null) {
            return true;
        }
        SteppedLoad next = loads.current();
        boolean isNew = next.load.read == null;
        boolean over = next.ended || next.failed || (isNew && !start(next));
        boolean taken = over || submit(tier, loads, next);
        if (taken && !loads.advance()) {
            current = null;
        }
        return taken;
    }

    /// Answers false when no caller waits for it any longer.
    private boolean start(SteppedLoad next) {
        next.load.read = tierPort.nextRead(disk, next.load.record, next.load.wanted, loadPump.nextTag());
        if (next.load.read == null) {
            next.ended = true;
            loadPump.onCancelled(next.load);
            return false;
        }
        begun++;
        return true;
    }

    private boolean submit(Tier tier, SteppedLoads loads, SteppedLoad next) {
        TierRead read = next.load.read();
        int from = loads.step() * loads.stepBytes();
        boolean inSteps = tier instanceof RangeTier
                && read.pages().size() == 1
                && read.bytes() % Pages.BYTES == 0
                && read.bytes() > loads.stepBytes();
        if (from == 0 && !inSteps) {
            return submitWhole(tier, next);
        }
        long address = from == 0 ? read.address() : tierPort.nextStep(disk, next.load.record, next.load.wanted);
        if (address < 0 || !(tier instanceof RangeTier ranges)) {
            giveUp(next, false);
            return true;
        }
        int length = Math.min(loads.stepBytes(), read.bytes() - from);
        MemorySegment target = read.pages().getFirst().asSlice(from, length);
        long tag = loadPump.nextTag();
        return switch (ranges.readRange(new TierRange(read.block(), address, from, target, tag))) {
            case ACCEPTED -> {
                loadPump.onReadStarted();
                inFlight.put(tag, new Part(next, loads.step(), loads.stepBytes(), length));
                next.inFlight++;
                bytes += length;
                yield true;
            }
            case RETRY -> false;
            case GONE -> {
                giveUp(next, true);
                yield true;
            }
            case REJECTED -> {
                if (from == 0) {
                    yield submitWhole(tier, next);
                }
                giveUp(next, false);
                yield true;
            }
        };
    }

    private boolean submitWhole(Tier tier, SteppedLoad next) {
        next.ended = true;
        begun--;
        return loadPump.submit(tier, next.load);
    }

    /// Ends a load that does not come; the memory is the store's once no part is in flight.
    private void giveUp(SteppedLoad of, boolean lost) {
        of.failed = true;
        of.lost |= lost;
        endIfOver(of);
    }

    private void endIfOver(SteppedLoad of) {
        if (of.failed && of.inFlight == 0 && !of.ended) {
            end(of, false);
        }
    }

    private void end(SteppedLoad of, boolean good) {
        of.ended = true;
        begun--;
        loadPump.end(of.load, good, of.lost);
    }

    /// Returns false when the tag is none of a part.
    boolean onRead(long tag, TierRead.Outcome outcome) {
        Part part = inFlight.remove(tag);
        if (part == null) {
            return false;
        }
        SteppedLoad of = part.of;
        of.inFlight--;
        bytes -= part.bytes;
        int size = of.load.read().bytes();
        if (outcome == TierRead.Outcome.SUCCESS) {
            loadPump.onPartRead(part.bytes);
            of.arrived.set(part.step);
            long arrived = (long) of.arrived.nextClearBit(0) * part.stepBytes;
            if (of.arrived.cardinality() == Math.ceilDiv(size, part.stepBytes)) {
                end(of, true);
            } else if (!of.failed) {
                loadPump.onProgress(of.load, (int) Math.min(size, arrived));
            }
        } else {
            of.failed = true;
            of.lost = true;
        }
        endIfOver(of);
        return true;
    }

    /// Ends all as not read: the tier has gone, and has no part in flight any more.
    void failInFlight() {
        List<Part> parts = List.copyOf(inFlight.values());
        inFlight.clear();
        bytes = 0;
        for (Part part : parts) {
            part.of.inFlight = 0;
            part.of.failed = true;
            endIfOver(part.of);
        }
        rejectWaiting();
    }

    /// Ends what was not handed on as not read.
    void rejectWaiting() {
        SteppedLoads loads = current;
        current = null;
        if (loads != null) {
            reject(loads);
        }
    }

    /// Ends the loads of a table as not read.
    void reject(SteppedLoads loads) {
        for (SteppedLoad each : loads.loads()) {
            if (!each.ended && (each.load.read != null || start(each))) {
                giveUp(each, false);
            }
        }
    }

    boolean isIdle() {
        return current == null && inFlight.isEmpty();
    }

    /// Parts that the tier has to read.
    int parts() {
        return inFlight.size();
    }

    /// Bytes of them.
    long bytes() {
        return bytes;
    }

    /// Loads that have begun and not ended.
    int begun() {
        return begun;
    }
}
