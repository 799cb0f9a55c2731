package io.kvcache.gpu.engine;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A unix socket whose messages stay whole (SOCK_SEQPACKET) and may carry file descriptors.
///
/// **Ownership.** The caller closes it when no thread uses it any more; [#shutdown] makes those return.
///
/// **Threads.** One sends and one receives at a time; [#shutdown] may be called by any.
final class UnixSocket implements AutoCloseable {

    /// The largest message, in bytes: well below what the kernel takes for a socket by default.
    static final int MAX_MESSAGE_BYTES = 64 << 10;

    /// Descriptors that one message may carry.
    private static final int MAX_DESCRIPTORS = 4;

    private static final int UNIX = 1;
    private static final int SEQPACKET = 5 | 0x80000; // SOCK_SEQPACKET | SOCK_CLOEXEC
    private static final int CLOSE_ON_EXEC = 0x80000;
    private static final int BACKLOG = 16;
    private static final int PATH_BYTES = 108;
    private static final int SHUTDOWN_BOTH = 2;
    private static final short READABLE = 1;
    private static final int NO_SIGNAL = 0x4000;
    private static final int DONT_WAIT = 0x40;
    private static final int DESCRIPTORS_CLOSE_ON_EXEC = 0x40000000;
    private static final int TRUNCATED = 0x20 | 0x8; // the message, or its descriptors
    private static final int SOCKET_LEVEL = 1;
    private static final int RIGHTS = 1;

    /// struct cmsghdr: length, level, type.
    private static final int CONTROL_HEADER = 16;

    private static final int CONTROL_BYTES = CONTROL_HEADER + MAX_DESCRIPTORS * Integer.BYTES;

    private final int descriptor;
    private boolean closed;

    private UnixSocket(int descriptor) {
        this.descriptor = descriptor;
    }

    /// A message, as it came.
    ///
    /// @param body little-endian
    /// @param descriptors of this process; the receiver's, to be closed
    record Packet(ByteBuffer body, List<Integer> descriptors) {

        void closeDescriptors() {
            descriptors.forEach(UnixSocket::close);
        }
    }

    /// Takes a path, which must not be there yet; [#listen] has others come.
    static UnixSocket bind(Path path) throws IOException {
        return toAddress(path, "bind", LibcSockets.BIND);
    }

    /// Connects to the process that listens at a path.
    static UnixSocket connect(Path path) throws IOException {
        return toAddress(path, "connect", LibcSockets.CONNECT);
    }

    private static UnixSocket toAddress(Path path, String what, MethodHandle call) throws IOException {
        byte[] text = path.toString().getBytes(StandardCharsets.UTF_8);
        if (text.length >= PATH_BYTES) {
            throw new IOException(
                    path + " has " + text.length + " bytes; a socket's path takes up to " + (PATH_BYTES - 1));
        }
        UnixSocket socket =
                new UnixSocket((int) LibcSockets.callOrThrow("socket", LibcSockets.SOCKET, UNIX, SEQPACKET, 0));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment address = arena.allocate(2 + PATH_BYTES, 8);
            address.set(JAVA_SHORT, 0, (short) UNIX);
            MemorySegment.copy(text, 0, address, JAVA_BYTE, 2, text.length);
            LibcSockets.callOrThrow(what + " " + path, call, socket.descriptor, address, (int) address.byteSize());
            return socket;
        } catch (IOException refused) {
            socket.close();
            throw refused;
        }
    }

    void listen() throws IOException {
        LibcSockets.callOrThrow("listen", LibcSockets.LISTEN, descriptor, BACKLOG);
    }

    /// The next connection; null when there was none in this time.
    ///
    /// @throws IOException when it cannot accept, as where a process has all the descriptors it may
    ///     have, or the socket was ended: at once, and again and again
    @Nullable
    UnixSocket accept(int timeoutMillis) throws IOException {
        if (!awaitReadable(timeoutMillis)) {
            return null;
        }
        return new UnixSocket(
                (int) LibcSockets.callOrThrow("accept4", LibcSockets.ACCEPT, descriptor, 0L, 0L, CLOSE_ON_EXEC));
    }

    /// Returns whether there is something to receive, or the peer has closed.
    boolean awaitReadable(int timeoutMillis) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment poll = arena.allocate(8, 4);
            poll.set(JAVA_INT, 0, descriptor);
            poll.set(JAVA_SHORT, 4, READABLE);
            return LibcSockets.callOrThrow("poll", LibcSockets.POLL, poll, 1L, timeoutMillis) > 0;
        }
    }

    /// Sends a message, perhaps with a descriptor, of which the receiver gets its own. It never waits: an
    /// engine that leaves hundreds of answers unread is refused more.
    ///
    /// @param withDescriptor or -1
    void send(ByteBuffer body, int withDescriptor) throws IOException {
        int bytes = body.remaining();
        if (bytes < 1 || bytes > MAX_MESSAGE_BYTES) {
            throw new IOException("a message of " + bytes + " bytes; it takes 1 to " + MAX_MESSAGE_BYTES);
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment content = arena.allocate(bytes, 8).copyFrom(MemorySegment.ofBuffer(body));
            MemorySegment control = MemorySegment.NULL;
            if (withDescriptor >= 0) {
                control = arena.allocate(CONTROL_HEADER + 8, 8);
                control.set(JAVA_LONG, 0, CONTROL_HEADER + Integer.BYTES);
                control.set(JAVA_INT, 8, SOCKET_LEVEL);
                control.set(JAVA_INT, 12, RIGHTS);
                control.set(JAVA_INT, CONTROL_HEADER, withDescriptor);
            }
            LibcSockets.callOrThrow(
                    "sendmsg", LibcSockets.SEND, descriptor, header(arena, content, control), NO_SIGNAL | DONT_WAIT);
        }
    }

    /// The next message; null when the other end is gone, or sent nothing, which looks the same.
    ///
    /// @throws IOException for one that is too large, or has too many descriptors
    @Nullable
    Packet receive() throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment content = arena.allocate(MAX_MESSAGE_BYTES, 8);
            MemorySegment control = arena.allocate(CONTROL_BYTES, 8);
            MemorySegment header = header(arena, content, control);
            long bytes;
            do {
                bytes = LibcSockets.call(LibcSockets.RECEIVE, descriptor, header, DESCRIPTORS_CLOSE_ON_EXEC);
            } while (bytes == -LibcSockets.EINTR);
            if (bytes < 0) {
                return null;
            }
            if (bytes == 0) {
                descriptors(control, header).forEach(UnixSocket::close);
                return null;
            }
            byte[] body = content.asSlice(0, bytes).toArray(JAVA_BYTE);
            Packet packet =
                    new Packet(ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN), descriptors(control, header));
            if ((header.get(JAVA_INT, 48) & TRUNCATED) != 0) {
                packet.closeDescriptors();
                throw new IOException("a message of more than " + MAX_MESSAGE_BYTES + " bytes, or with more than "
                        + MAX_DESCRIPTORS + " descriptors");
            }
            return packet;
        }
    }

    /// Returns the descriptors that came with a message: one run at most.
    private static List<Integer> descriptors(MemorySegment control, MemorySegment header) {
        List<Integer> found = new ArrayList<>();
        long filled = header.get(JAVA_LONG, 40);
        boolean any = filled >= CONTROL_HEADER
                && control.get(JAVA_INT, 8) == SOCKET_LEVEL
                && control.get(JAVA_INT, 12) == RIGHTS;
        long end = any ? Math.min(control.get(JAVA_LONG, 0), Math.min(filled, CONTROL_BYTES)) : 0;
        for (long at = CONTROL_HEADER; at + Integer.BYTES <= end; at += Integer.BYTES) {
            found.add(control.get(JAVA_INT_UNALIGNED, at));
        }
        return found;
    }

    /// struct msghdr: name, its length, vectors, how many, control, its length, flags.
    private static MemorySegment header(Arena arena, MemorySegment content, MemorySegment control) {
        MemorySegment vector = arena.allocate(16, 8);
        vector.set(JAVA_LONG, 0, content.address());
        vector.set(JAVA_LONG, 8, content.byteSize());
        MemorySegment header = arena.allocate(56, 8);
        header.set(JAVA_LONG, 16, vector.address());
        header.set(JAVA_LONG, 24, 1);
        header.set(JAVA_LONG, 32, control.address());
        header.set(JAVA_LONG, 40, control.byteSize());
        return header;
    }

    /// Makes threads that wait here, at either end, return: nothing is sent or received any more.
    synchronized void shutdown() {
        if (!closed) {
            LibcSockets.call(LibcSockets.SHUTDOWN, descriptor, SHUTDOWN_BOTH);
        }
    }

    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            close(descriptor);
        }
    }

    /// Closes a descriptor that came with a message.
    static void close(int descriptor) {
        LibcSockets.call(LibcSockets.CLOSE, descriptor);
    }

    /// The C library's calls for sockets, as 64-bit Linux has them: Java's own channels send no descriptors.
    ///
    /// **Threads.** Any.
    static final class LibcSockets {

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
}
