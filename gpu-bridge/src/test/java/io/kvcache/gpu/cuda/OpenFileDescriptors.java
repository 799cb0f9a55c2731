package io.kvcache.gpu.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;

/// Descriptors of this process.
public final class OpenFileDescriptors {

    private OpenFileDescriptors() {}

    /// How many are open.
    public static long open() {
        String[] found = new File("/proc/self/fd").list();
        return found == null ? 0 : found.length;
    }

    /// Closes one.
    @SuppressWarnings("restricted") // Signature as in unistd.h.
    static void close(int descriptor) {
        MethodHandle close = Linker.nativeLinker()
                .downcallHandle(
                        Linker.nativeLinker().defaultLookup().findOrThrow("close"),
                        FunctionDescriptor.of(JAVA_INT, JAVA_INT));
        try {
            assertThat((int) close.invokeExact(descriptor)).isZero();
        } catch (Throwable impossible) {
            throw new AssertionError("close", impossible);
        }
    }
}
