package io.kvcache.engines.llamacpp;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/// What is done with a library once: it is started, and tells its news to the log, not to the terminal.
final class LlamaBackend {

    private static final Logger LOG = System.getLogger("io.kvcache.engines.llamacpp.native");

    /// `GGML_LOG_LEVEL_ERROR`.
    private static final int ERROR = 4;

    /// No line of llama.cpp's is longer.
    private static final int MAX_LINE_BYTES = 1 << 16;

    private final MethodHandle initialise;
    private final MethodHandle setLog;

    LlamaBackend(NativeSymbols library) {
        initialise = library.procedure("llama_backend_init");
        setLog = library.procedure("llama_log_set", ADDRESS, ADDRESS);
    }

    void initialize() {
        MemorySegment log = log();
        NativeSymbols.invoke(() -> {
            setLog.invokeExact(log, MemorySegment.NULL);
            initialise.invokeExact();
            return true;
        });
    }

    @SuppressWarnings("restricted") // The signature is ggml_log_callback.
    private static MemorySegment log() {
        try {
            MethodHandle target = MethodHandles.lookup()
                    .findStatic(
                            LlamaBackend.class,
                            "log",
                            MethodType.methodType(void.class, int.class, MemorySegment.class, MemorySegment.class));
            return Linker.nativeLinker()
                    .upcallStub(target, FunctionDescriptor.ofVoid(JAVA_INT, ADDRESS, ADDRESS), Arena.global());
        } catch (ReflectiveOperationException impossible) {
            throw new LinkageError("this class has the method", impossible);
        }
    }

    /// Called by the library, on any thread. Whatever is thrown here would end the process.
    @SuppressWarnings({"restricted", "unused"}) // The text ends with a zero; called by name, with what a user gave.
    private static void log(int level, MemorySegment text, MemorySegment user) {
        try {
            String line = text.reinterpret(MAX_LINE_BYTES).getString(0).strip();
            if (!line.isEmpty()) {
                LOG.log(level == ERROR ? Level.WARNING : Level.DEBUG, line);
            }
        } catch (RuntimeException unreadable) {
            LOG.log(Level.DEBUG, "a line of llama.cpp's cannot be read", unreadable);
        }
    }
}
