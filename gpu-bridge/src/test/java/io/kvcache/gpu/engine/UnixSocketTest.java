package io.kvcache.gpu.engine;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import io.kvcache.gpu.engine.UnixSocket.LibcSockets;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A socket under callers who mean no good, and where nobody can be let in.
final class UnixSocketTest {

    private static final Path DESCRIPTORS = Path.of("/proc/self/fd");
    private static final int LONG_MILLIS = 30_000;
    private static final int GIVEN = 4;

    @TempDir
    private Path folder;

    @SuppressWarnings("NullAway.Init") // given by JUnit
    UnixSocketTest() {}

    @Test
    void givenAnEmptyMessageWithDescriptors_whenReceived_thenTheyAreClosed() throws IOException {
        Path file = Files.createFile(folder.toRealPath().resolve("given"));
        Path path = folder.resolve("socket");
        try (FileChannel open = FileChannel.open(file, StandardOpenOption.READ);
                UnixSocket listening = UnixSocket.bind(path)) {
            listening.listen();
            int client = sendNothing(path, of(file).getFirst());
            UnixSocket accepted = listening.accept(LONG_MILLIS);
            assertThat(accepted).isNotNull();
            assertThat(accepted.awaitReadable(LONG_MILLIS)).isTrue();
            assertThat(accepted.receive()).isNull();
            assertThat(of(file)).hasSize(1);
            assertThat(open.isOpen()).isTrue();
            accepted.close();
            UnixSocket.close(client);
        }
    }

    /// This process's descriptors of a file.
    private static List<Integer> of(Path file) throws IOException {
        try (Stream<Path> all = Files.list(DESCRIPTORS)) {
            return all.filter(each -> leadsTo(each, file))
                    .map(each -> Integer.valueOf(each.getFileName().toString()))
                    .toList();
        }
    }

    private static boolean leadsTo(Path descriptor, Path file) {
        try {
            return Files.readSymbolicLink(descriptor).equals(file);
        } catch (IOException gone) {
            return false;
        }
    }

    /// Connects, and sends a message of no bytes with a descriptor, four times.
    private static int sendNothing(Path path, int descriptor) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            byte[] text = path.toString().getBytes(StandardCharsets.UTF_8);
            MemorySegment address = arena.allocate(110, 8);
            address.set(JAVA_SHORT, 0, (short) 1);
            MemorySegment.copy(text, 0, address, JAVA_BYTE, 2, text.length);
            int socket = (int) LibcSockets.callOrThrow("socket", LibcSockets.SOCKET, 1, 5, 0);
            LibcSockets.callOrThrow("connect", LibcSockets.CONNECT, socket, address, (int) address.byteSize());
            MemorySegment control = arena.allocate(16 + GIVEN * Integer.BYTES, 8);
            control.set(JAVA_LONG, 0, control.byteSize());
            control.set(JAVA_INT, 8, 1);
            control.set(JAVA_INT, 12, 1);
            for (int i = 0; i < GIVEN; i++) {
                control.set(JAVA_INT, 16L + (long) i * Integer.BYTES, descriptor);
            }
            MemorySegment header = arena.allocate(56, 8);
            header.set(JAVA_LONG, 32, control.address());
            header.set(JAVA_LONG, 40, control.byteSize());
            LibcSockets.callOrThrow("sendmsg", LibcSockets.SEND, socket, header, 0);
            return socket;
        }
    }

    /// As with no descriptor left to have: the socket is ready, and whoever takes null for nobody asks
    /// again at once.
    @Test
    void givenASocketThatLetsNobodyIn_whenAccepting_thenItSaysSo() throws IOException {
        try (UnixSocket deaf = UnixSocket.bind(folder.resolve("deaf"))) {
            assertThatIOException().isThrownBy(() -> deaf.accept(LONG_MILLIS)).withMessageContaining("accept4: errno");
        }
    }
}
