package io.kvcache.tiers.device;

import static io.kvcache.tiers.device.BlockDevice.ALIGNMENT;
import static io.kvcache.tiers.device.BlockDevice.MAX_SPAN_BYTES;

import java.lang.foreign.MemorySegment;

/// The argument checks of a [BlockDevice]: which segments, offsets and lengths a device of this size accepts.
///
/// Each check throws [IllegalArgumentException] with the value and the allowed range.
///
/// @param size of the device in bytes, a positive multiple of [BlockDevice#ALIGNMENT]
public record SpanValidator(long size) {

    public SpanValidator {
        if (size < ALIGNMENT || size % ALIGNMENT != 0) {
            throw new IllegalArgumentException(
                    "size of a device must be a positive multiple of %d, is %d".formatted(ALIGNMENT, size));
        }
    }

    /// Checks the arguments of a read.
    public void requireTarget(MemorySegment target, long offset) {
        if (target.isReadOnly()) {
            throw new IllegalArgumentException("target of a read must be writable, is " + target);
        }
        requireSource(target, offset);
    }

    /// Checks the arguments of a write.
    public void requireSource(MemorySegment segment, long offset) {
        requireNative(segment);
        if (segment.byteSize() > MAX_SPAN_BYTES) {
            throw new IllegalArgumentException(
                    "segment must have at most %d bytes, has %d".formatted(MAX_SPAN_BYTES, segment.byteSize()));
        }
        requireRange(offset, segment.byteSize());
    }

    /// Checks the arguments of a discard.
    public void requireRange(long offset, long length) {
        if (length < ALIGNMENT || length > size || length % ALIGNMENT != 0) {
            throw new IllegalArgumentException("length must be a multiple of %d from %d to %d, is %d"
                    .formatted(ALIGNMENT, ALIGNMENT, size, length));
        }
        if (offset < 0 || offset > size - length || offset % ALIGNMENT != 0) {
            throw new IllegalArgumentException("offset of %d bytes must be a multiple of %d from 0 to %d, is %d"
                    .formatted(length, ALIGNMENT, size - length, offset));
        }
    }

    static void requireNative(MemorySegment segment) {
        if (!segment.isNative()) {
            throw new IllegalArgumentException("segment must be native memory, is " + segment);
        }
        if (segment.address() % ALIGNMENT != 0) {
            throw new IllegalArgumentException(
                    "address of a segment must be a multiple of %d, is 0x%x".formatted(ALIGNMENT, segment.address()));
        }
        if (!segment.scope().isAlive()) {
            throw new IllegalArgumentException("segment must be alive, is closed: " + segment);
        }
    }
}
