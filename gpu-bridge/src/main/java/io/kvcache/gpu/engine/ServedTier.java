package io.kvcache.gpu.engine;

import io.kvcache.core.DeviceSupport.ResizableTier;
import io.kvcache.core.DeviceSupport.Resized;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.gpu.tier.CudaTier;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.LongUnaryOperator;

/// The tier of a server, whose size its operator and engines change.
///
/// They do so one after another, as an engine asks for a difference: that from a size which is about to change
/// would undo what another asked for. For the same reason what is held until the timeout stays, and the tier does
/// not go on shrinking after the answer. A size that the operator sets is final: engines return no room to it later.
///
/// **Threads.** Any.
public final class ServedTier implements ResizableTier {

    private static final Logger LOG = System.getLogger(ServedTier.class.getName());

    /// For the device's own work, however short the time is that blocks are waited for.
    private static final Duration DEVICE_TIMEOUT = Duration.ofSeconds(1);

    private static final long MAX_RETURN_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final long RETURN_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final CudaTier tier;
    private final ReentrantLock resizing = new ReentrantLock(true);
    /// Of engines that are connected; under the lock.
    private final Set<EngineRoom> rooms = new HashSet<>();

    /// @param tier of a store; nothing else resizes it
    public ServedTier(CudaTier tier) {
        this.tier = tier;
    }

    CudaTier tier() {
        return tier;
    }

    @Override
    public long bytes() {
        return tier.bytes();
    }

    @Override
    public Resized resize(long bytes, Duration timeout) {
        return resize(_ -> bytes, timeout, _ -> forgetRooms());
    }

    private void forgetRooms() {
        rooms.forEach(room -> room.bytes = 0);
    }

    /// Lets an engine ask for room.
    EngineRoom openRoom() {
        return new EngineRoom();
    }

    /// Room on the device that an engine has got from the tier.
    ///
    /// **Ownership.** The engine's session gives all of it back at its end.
    ///
    /// **Threads.** Any.
    final class EngineRoom {

        /// Under the lock; 0 once the operator has set a size, or the device was out.
        private long bytes;

        private EngineRoom() {}

        /// Has the tier give bytes back to the device, as many or some more; or, of a number below zero, take bytes
        /// of this room again.
        ///
        /// @throws IllegalArgumentException for 0 bytes, for more bytes again than the room has, and when
        ///     the tier may not have as many or as few, with the range
        Resized take(long wanted, Duration timeout) {
            return resize(before -> before - requireTaking(wanted), timeout, this::note);
        }

        private long requireTaking(long wanted) {
            if (wanted == 0 || wanted < -bytes) {
                throw new IllegalArgumentException("room of " + wanted + " bytes; it takes 1 and up, or down to "
                        + -bytes + " for what was given before");
            }
            return wanted;
        }

        private void note(Resized resized) {
            long taken = resized.before() - resized.after();
            if (taken == 0) {
                return;
            }
            bytes += taken;
            rooms.add(this);
            LOG.log(
                    Level.INFO,
                    "{0} has {1} bytes now, and had {2}, for an engine",
                    name(),
                    Long.toString(resized.after()),
                    Long.toString(resized.before()));
        }

        /// Has the tier take all of it again: a bounded time, and as far as the device has the memory, which a
        /// process that has died gives back later than its socket.
        ///
        /// @param closing whether the server is
        void close(BooleanSupplier closing) {
            long since = System.nanoTime();
            try {
                while (hasBytes() && !closing.getAsBoolean() && System.nanoTime() - since < MAX_RETURN_NANOS) {
                    resize(before -> before + bytes, DEVICE_TIMEOUT, this::note);
                    if (hasBytes()) {
                        LockSupport.parkNanos(this, RETURN_PAUSE_NANOS);
                    }
                }
            } catch (IllegalArgumentException more) {
                LOG.log(Level.DEBUG, "the tier was opened again meanwhile, with all that it has at first", more);
            }
            locked(() -> rooms.remove(this));
        }

        private boolean hasBytes() {
            return locked(() -> bytes > 0);
        }
    }

    private boolean locked(BooleanSupplier action) {
        resizing.lock();
        try {
            return action.getAsBoolean();
        } finally {
            resizing.unlock();
        }
    }

    private Resized resize(LongUnaryOperator wanted, Duration timeout, Consumer<Resized> note) {
        long since = System.nanoTime();
        if (!tryLock(timeout)) {
            return new Resized(bytes(), bytes(), "another request for its size is not answered yet");
        }
        try {
            long before = bytes();
            if (before == 0) {
                return new Resized(0, 0, "the device is out");
            }
            long bytes = wanted.applyAsLong(before);
            long left = Math.max(DEVICE_TIMEOUT.toNanos(), timeout.toNanos() - (System.nanoTime() - since));
            long after = tier.resize(bytes, Duration.ofNanos(left));
            if (after > bytes) {
                after = tier.resize(after, DEVICE_TIMEOUT);
            }
            Resized resized = new Resized(before, after, findReason(bytes, after));
            if (after == 0) {
                forgetRooms();
            } else {
                note.accept(resized);
            }
            return resized;
        } finally {
            resizing.unlock();
        }
    }

    private boolean tryLock(Duration timeout) {
        try {
            return resizing.tryLock(timeout.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private String findReason(long wanted, long after) {
        if (after > wanted) {
            return "blocks that engines or sequences hold did not leave in time";
        }
        if (after == 0) {
            return "the device is out";
        }
        return after + tier.maxBlockBytes() > wanted ? "" : "the device has no more memory";
    }

    @Override
    public String name() {
        return tier.name();
    }

    @Override
    public long maxLiveBytes() {
        return tier.maxLiveBytes();
    }

    @Override
    public long maxBlockBytes() {
        return tier.maxBlockBytes();
    }

    @Override
    public Tier open(TierListener listener, MemorySegment slots) {
        return tier.open(listener, slots);
    }
}
