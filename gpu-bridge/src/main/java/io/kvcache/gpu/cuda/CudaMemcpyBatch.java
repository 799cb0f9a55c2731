package io.kvcache.gpu.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.gpu.driver.CopyBatch.CopyRanges;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/// Many copies by one call of the driver, where it has that: since version 12.8, and a little different
/// since 13.0.
final class CudaMemcpyBatch {

    /// CUmemcpyAttributes: when the source is read (an int), two hints of three ints in all that
    /// unmanaged memory has no use for, and flags.
    private static final MemoryLayout ATTRIBUTES = MemoryLayout.sequenceLayout(6, JAVA_INT);

    /// The source is read when the stream gets there. The driver could do it at once, or in any order,
    /// which is only right where no earlier work writes to the source.
    private static final int IN_STREAM_ORDER = 1;

    static final String CUDA_13_FUNCTION = "cuMemcpyBatchAsync_v2";
    static final String CUDA_12_8_FUNCTION = "cuMemcpyBatchAsync";

    private static final Logger LOG = System.getLogger(CudaMemcpyBatch.class.getName());

    private final @Nullable MethodHandle since13;
    private final @Nullable MethodHandle since128;
    private final MemorySegment attributes = Arena.ofAuto().allocate(ATTRIBUTES);
    private final MemorySegment firstAttribute = Arena.ofAuto().allocate(JAVA_LONG);
    private final MemorySegment failedIndex = Arena.ofAuto().allocate(JAVA_LONG);
    private long acceptedCopies;
    private long declinedCopies;

    CudaMemcpyBatch(CudaLibrary library) {
        since13 = library.bindIfPresent(
                CUDA_13_FUNCTION, ADDRESS, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, JAVA_LONG);
        since128 = library.bindIfPresent(
                CUDA_12_8_FUNCTION,
                ADDRESS,
                ADDRESS,
                ADDRESS,
                JAVA_LONG,
                ADDRESS,
                ADDRESS,
                JAVA_LONG,
                ADDRESS,
                JAVA_LONG);
        attributes.set(JAVA_INT, 0, IN_STREAM_ORDER);
    }

    boolean isAvailable() {
        return since13 != null || since128 != null;
    }

    private String name() {
        return since13 != null ? CUDA_13_FUNCTION : since128 != null ? CUDA_12_8_FUNCTION : "none";
    }

    /// Describes the call that is used, and its results so far.
    String describe() {
        return "%s, %s taken, %s declined".formatted(name(), acceptedCopies, declinedCopies);
    }

    /// Returns whether the driver declines to batch these copies. It may do so for some kinds of memory, by a
    /// result that also means a mistake. The caller then copies one by one, which succeeds or shows the mistake.
    /// To copy something twice does no harm.
    boolean isDeclined(int result) {
        if (result != CudaResult.NOT_SUPPORTED && result != CudaResult.INVALID_VALUE) {
            acceptedCopies += result == CudaResult.SUCCESS ? 1 : 0;
            return false;
        }
        if (declinedCopies++ == 0) {
            LOG.log(
                    Level.WARNING,
                    "{0} answered {1}: pieces are copied one by one, slower; said once",
                    name(),
                    CudaResult.describe(result));
        }
        return true;
    }

    /// Makes some of these copies. Answers as the driver does.
    int copyRanges(CopyRanges runs, int first, int some, long stream) {
        try (Arena arena = Arena.ofConfined()) {
            long count = some;
            MemorySegment to = arena.allocate(JAVA_LONG, count);
            MemorySegment from = arena.allocate(JAVA_LONG, count);
            MemorySegment bytes = arena.allocate(JAVA_LONG, count);
            for (int i = 0; i < some; i++) {
                to.setAtIndex(JAVA_LONG, i, runs.to(first + i));
                from.setAtIndex(JAVA_LONG, i, runs.from(first + i));
                bytes.setAtIndex(JAVA_LONG, i, runs.bytes(first + i));
            }
            if (since13 != null) {
                return (int) since13.invokeExact(to, from, bytes, count, attributes, firstAttribute, 1L, stream);
            }
            if (since128 != null) {
                return (int) since128.invokeExact(
                        to, from, bytes, count, attributes, firstAttribute, 1L, failedIndex, stream);
            }
            return CudaResult.NOT_SUPPORTED;
        } catch (RuntimeException | Error thrown) {
            throw thrown;
        } catch (Throwable impossible) {
            throw new AssertionError("a C function threw a checked exception", impossible);
        }
    }
}
