package io.kvcache.gpu.engine;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/// The C library's calls for sockets, as 64-bit Linux has them: Java's own channels send no descriptors.
///
/// **Threads.** Any.
final class LibcSockets {

    static final int EINTR = 4;

    private static final VarHandle ERRNO =
            Linker.Option.captureStateLayout().varHandle(PathElement.groupElement("errno"));

    static final MethodHandle SOCKET = bind("socket", JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT);
    static final MethodHandle BIND = bind("bind", JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT);
    static final MethodHandle LISTEN = bind("listen", JAVA_INT, JAVA_INT, JAVA_INT);
    static final MethodHandle ACCEPT = bind("accept4", JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT);
    static final MethodHandle CONNECT = bind("connect", JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT);
    static final MethodHandle POLL = bind("poll", JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT);
    static final MethodHandle SEND = bind("sendmsg", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_INT);
    static final MethodHandle RECEIVE = bind("recvmsg", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_INT);
    static final MethodHandle SHUTDOWN = bind("shutdown", JAVA_INT, JAVA_INT, JAVA_INT);
    static final MethodHandle CLOSE = bind("close", JAVA_INT, JAVA_INT);

    private LibcSockets() {}

    @SuppressWarnings("restricted") // Signatures as in the manual pages of Linux.
    private static MethodHandle bind(String name, MemoryLayout returned, MemoryLayout... arguments) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(
                linker.defaultLookup().findOrThrow(name),
                FunctionDescriptor.of(returned, arguments),
                Linker.Option.captureCallState("errno"));
    }

    /// Calls.
    ///
    /// @return what the function returned or, where that is -1, the negated errno
    static long call(MethodHandle function, Object... arguments) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(Linker.Option.captureStateLayout());
            Object[] all = new Object[arguments.length + 1];
            all[0] = state;
            System.arraycopy(arguments, 0, all, 1, arguments.length);
            long returned = ((Number) function.invokeWithArguments(all)).longValue();
            return returned == -1 ? -(int) ERRNO.get(state, 0L) : returned;
        } catch (RuntimeException | Error thrown) {
            throw thrown;
        } catch (Throwable impossible) {
            throw new AssertionError("a C function threw a checked exception", impossible);
        }
    }

    /// Calls, again after a signal.
    ///
    /// @throws IOException with the error's number when the function failed
    static long callOrThrow(String what, MethodHandle function, Object... arguments) throws IOException {
        long result = call(function, arguments);
        while (result == -EINTR) {
            result = call(function, arguments);
        }
        if (result < 0) {
            throw new IOException(what + ": errno " + -result);
        }
        return result;
    }
}
