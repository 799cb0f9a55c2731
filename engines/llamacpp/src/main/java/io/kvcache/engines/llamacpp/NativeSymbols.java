package io.kvcache.engines.llamacpp;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.util.ArrayList;
import java.util.List;

/// The functions of one library, found by name, with a note of those that it lacks.
///
/// **Threads.** One, while functions are bound.
final class NativeSymbols {

    private final SymbolLookup library;
    private final List<String> missing = new ArrayList<>();

    NativeSymbols(SymbolLookup library) {
        this.library = library;
    }

    /// A function that returns something.
    MethodHandle function(String name, MemoryLayout returned, MemoryLayout... arguments) {
        return bind(name, FunctionDescriptor.of(returned, arguments));
    }

    /// A function that returns nothing.
    MethodHandle procedure(String name, MemoryLayout... arguments) {
        return bind(name, FunctionDescriptor.ofVoid(arguments));
    }

    @SuppressWarnings("restricted") // Signatures as in llama.h of the build that the parameters are checked for.
    private MethodHandle bind(String name, FunctionDescriptor signature) {
        MemorySegment function = library.find(name).orElse(MemorySegment.NULL);
        if (function.equals(MemorySegment.NULL)) {
            missing.add(name);
            return MethodHandles.zero(void.class);
        }
        return Linker.nativeLinker().downcallHandle(function, signature);
    }

    /// Of what was asked for. To be looked at before anything is called.
    List<String> missing() {
        return missing;
    }

    /// A call that returns something.
    interface NativeCall<T> {

        T call() throws Throwable;
    }

    /// Calls, as C functions throw nothing.
    static <T> T invoke(NativeCall<T> call) {
        try {
            return call.call();
        } catch (Throwable thrown) {
            throw new AssertionError("a C function does not throw", thrown);
        }
    }
}
