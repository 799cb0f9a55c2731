package io.kvcache.tiers.device;

import static io.kvcache.tiers.device.BlockDevice.ALIGNMENT;
import static io.kvcache.tiers.device.BlockDevice.MAX_SPAN_BYTES;

import java.lang.foreign.MemorySegment;
import java.util.Locale;

/// The argument checks of a [BlockDevice]: which segments, offsets and lengths a device of this size accepts.
///
/// Each check throws [IllegalArgumentException] with the value and the allowed range.
///
/// @param size of the device in bytes, a positive multiple of [BlockDevice#ALIGNMENT]
public record SpanValidator(long size) {

    public SpanValidator {
        if (size < ALIGNMENT || size % ALIGNMENT != 0) {
            throw new IllegalArgumentException(
                    "size of a device must be a positive multiple of %s, is %s".formatted(ALIGNMENT, size));
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
                    "segment must have at most %s bytes, has %s".formatted(MAX_SPAN_BYTES, segment.byteSize()));
        }
        requireRange(offset, segment.byteSize());
    }

    /// Checks the arguments of a discard.
    public void requireRange(long offset, long length) {
        if (length < ALIGNMENT || length > size || length % ALIGNMENT != 0) {
            throw new IllegalArgumentException("length must be a multiple of %s from %s to %s, is %s"
                    .formatted(ALIGNMENT, ALIGNMENT, size, length));
        }
        if (offset < 0 || offset > size - length || offset % ALIGNMENT != 0) {
            throw new IllegalArgumentException("offset of %s bytes must be a multiple of %s from 0 to %s, is %s"
                    .formatted(length, ALIGNMENT, size - length, offset));
        }
    }

    static void requireNative(MemorySegment segment) {
        if (!segment.isNative()) {
            throw new IllegalArgumentException("segment must be native memory, is " + segment);
        }
        if (segment.address() % ALIGNMENT != 0) {
            throw new IllegalArgumentException(String.format(
                    Locale.ROOT,
                    "address of a segment must be a multiple of %s, is 0x%x",
                    ALIGNMENT,
                    segment.address()));
        }
        if (!segment.scope().isAlive()) {
            throw new IllegalArgumentException("segment must be alive, is closed: " + segment);
        }
    }
}
