package io.kvcache.tiers.memory;

/// Memory that the machine does not give. The message says how much, for what, why, and what to do; nothing was taken.
public final class MemoryReservationException extends IllegalStateException {

    private static final long serialVersionUID = 1;

    public MemoryReservationException(String message) {
        super(message);
    }
}
