package io.kvcache.server.cli;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Pause;
import java.io.DataInputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// A server with a disk that is stopped while clients write: what it had promised is there after a restart.
@Timeout(600)
@Tag("slow")
final class ShutdownUnderLoadTest {

    private static final int VALUE_BYTES = 16 << 10;
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(120);

    @TempDir
    private Path folder = Path.of("");

    /// One connection, with replies read to their end.
    private static final class Client implements AutoCloseable {

        private final Socket socket;
        private final DataInputStream in;

        Client(int port) throws IOException {
            socket = new Socket(InetAddress.getLoopbackAddress(), port);
            socket.setSoTimeout((int) TimeUnit.NANOSECONDS.toMillis(PATIENCE_NANOS));
            in = new DataInputStream(socket.getInputStream());
        }

        void send(byte[]... parts) throws IOException {
            for (byte[] part : parts) {
                socket.getOutputStream().write(part);
            }
        }

        /// Returns whether the reply is as expected; false when the server shuts down, or has shut down.
        boolean ask(String expected, byte[]... parts) {
            try {
                send(parts);
                byte[] answer = in.readNBytes(expected.length());
                if (answer.length == expected.length()) {
                    assertThat(new String(answer, US_ASCII)).isEqualTo(expected);
                    return true;
                }
                return false;
            } catch (IOException gone) {
                return false;
            }
        }

        boolean set(String key, byte[] value) {
            String head = "*3\r\n$3\r\nSET\r\n$" + key.length() + "\r\n" + key + "\r\n$" + value.length + "\r\n";
            return ask("+OK\r\n", ascii(head), value, ascii("\r\n"));
        }

        byte @Nullable [] get(String key) throws IOException {
            send(ascii("GET " + key + "\r\n"));
            int first = in.readByte();
            assertThat((char) first).isEqualTo('$');
            StringBuilder length = new StringBuilder();
            for (int next = in.readByte(); next != '\n'; next = in.readByte()) {
                length.append((char) next);
            }
            int bytes = Integer.parseInt(length.toString().strip());
            if (bytes < 0) {
                return null;
            }
            byte[] value = in.readNBytes(bytes);
            in.readNBytes(2);
            return value;
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }

    /// Writes versions of values, key by key, and notes which were promised.
    ///
    /// @param number of the writer
    /// @param promised by key: the version that the server has promised to keep, 0 for none
    /// @param saveEvery sets before a SAVE, which then is the promise; 0 when each set is one
    /// @param most sets
    private record Writer(int number, AtomicLongArray promised, int saveEvery, int most) {

        static Writer of(int number, int keys, int saveEvery, int most) {
            return new Writer(number, new AtomicLongArray(keys), saveEvery, most);
        }

        String key(int index) {
            return "w" + number + "-" + index;
        }

        Thread start(int port) {
            return Thread.ofPlatform().start(() -> {
                try (Client client = new Client(port)) {
                    write(client);
                } catch (IOException gone) {
                    // When the server stops in between, this ends as by itself.
                }
            });
        }

        private void write(Client client) {
            // A client that sends this greeting is told when there is no room.
            boolean goesOn = client.ask("+PONG\r\n", ascii("PING\r\n"));
            int unsaved = 0;
            for (int version = 1; goesOn && version <= most; version++) {
                int index = (version - 1) % promised.length();
                goesOn = client.set(key(index), content(key(index), version));
                if (goesOn && saveEvery == 0) {
                    promised.set(index, version);
                } else if (goesOn && ++unsaved == saveEvery) {
                    goesOn = client.ask("+OK\r\n", ascii("SAVE\r\n"));
                    for (int each = version; goesOn && each > version - unsaved; each--) {
                        promised.set(each - 1, each);
                    }
                    unsaved = 0;
                }
            }
        }

        int promises() {
            int count = 0;
            for (int index = 0; index < promised.length(); index++) {
                count += promised.get(index) > 0 ? 1 : 0;
            }
            return count;
        }

        /// Waits until the disk has told of all that was promised.
        void verify(Client client) throws IOException {
            long end = System.nanoTime() + PATIENCE_NANOS;
            for (int index = 0; index < promised.length(); index++) {
                long least = promised.get(index);
                while (least > 0 && version(client, key(index)) < least) {
                    assertThat(System.nanoTime())
                            .as("%s of version %d or later is not there", key(index), least)
                            .isLessThan(end);
                    Pause.briefly();
                }
            }
        }

        /// The version that is stored, every byte of which is right; 0 for none.
        private static long version(Client client, String key) throws IOException {
            byte[] value = client.get(key);
            if (value == null) {
                return 0;
            }
            long version = ByteBuffer.wrap(value).getLong();
            assertThat(value).as("%s of version %d", key, version).isEqualTo(content(key, version));
            return version;
        }

        private static byte[] content(String key, long version) {
            byte[] content = new byte[VALUE_BYTES];
            BlockContent.of(0, 31L * key.hashCode() + version).fill(MemorySegment.ofArray(content));
            ByteBuffer.wrap(content).putLong(version);
            return content;
        }
    }

    private static byte[] ascii(String text) {
        return text.getBytes(US_ASCII);
    }

    private ServeCommandProcess serve(String... more) throws IOException {
        List<String> all = new ArrayList<>(List.of("--disk", folder.resolve("disk") + ":256MiB"));
        all.addAll(List.of(more));
        return new ServeCommandProcess(folder.resolve("errors"), all.toArray(String[]::new));
    }

    private static void verify(ServeCommandProcess server, List<Writer> writers) throws IOException {
        try (Client client = new Client(server.port())) {
            for (Writer writer : writers) {
                writer.verify(client);
            }
        }
    }

    private static List<Thread> start(List<Writer> writers, int port) {
        return writers.stream().map(writer -> writer.start(port)).toList();
    }

    private static void awaitPromises(List<Writer> writers, int least) {
        while (writers.stream().anyMatch(writer -> writer.promises() < least)) {
            Pause.briefly();
        }
    }

    private static void join(List<Thread> threads) throws InterruptedException {
        for (Thread thread : threads) {
            thread.join();
        }
    }

    @Test
    @Tag("nightly")
    void givenWritersAndAClientThatIsStuck_whenTerminatedAndRestarted_thenAllThatWasAnsweredIsThere() throws Exception {
        List<Writer> writers = List.of(Writer.of(0, 20, 0, Integer.MAX_VALUE), Writer.of(1, 20, 0, Integer.MAX_VALUE));
        try (ServeCommandProcess server = serve("--set", "shutdown.drain=20s");
                Client stuck = new Client(server.port())) {
            assertThat(stuck.ask("+PONG\r\n", ascii("PING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhal")))
                    .isTrue();
            List<Thread> threads = start(writers, server.port());
            awaitPromises(writers, 20);

            server.terminate();

            join(threads);
            assertThat(server.awaitExit())
                    .contains("some requests took too long and were cut off")
                    .endsWith("off\nKVCache stopped\n");
        }
        try (ServeCommandProcess server = serve()) {
            verify(server, writers);
        }
    }

    @Test
    void givenAProblemOfThisMinute_whenTerminated_thenTheLogSummarizesIt() throws Exception {
        try (ServeCommandProcess server = serve();
                Client client = new Client(server.port())) {
            assertThat(client.ask("-ERR", ascii("*x\r\n"))).isTrue();

            server.terminate();

            server.awaitExit();
        }
        assertThat(folder.resolve("errors")).content().contains("In the last minute 1 connections were closed");
    }

    @Test
    void givenWritersThatSave_whenKilledAndRestarted_thenAllUpToTheirLastSaveIsThere() throws Exception {
        List<Writer> writers = List.of(Writer.of(0, 900, 8, 900), Writer.of(1, 900, 8, 900));
        try (ServeCommandProcess server = serve()) {
            List<Thread> threads = start(writers, server.port());
            awaitPromises(writers, 40);
            server.kill();
            join(threads);
        }
        try (ServeCommandProcess server = serve()) {
            verify(server, writers);
        }
    }

    @Test
    @Tag("nightly")
    void givenValuesThatWereSaved_whenTheSameAreSetAgainAndTheServerIsKilled_thenAllAreThere() throws Exception {
        Writer first = Writer.of(0, 200, 0, 200);
        Writer again = Writer.of(0, 200, 0, 200);
        try (ServeCommandProcess server = serve()) {
            join(start(List.of(first), server.port()));
            try (Client client = new Client(server.port())) {
                assertThat(client.ask("+OK\r\n", ascii("SAVE\r\n"))).isTrue();
            }
            join(start(List.of(again), server.port()));
            assertThat(again.promises()).isEqualTo(200);
            server.kill();
        }
        try (ServeCommandProcess server = serve()) {
            verify(server, List.of(first));
        }
    }

    @Test
    void givenADiskThatMayNotWriteAll_whenTerminated_thenItIsSaidAndLoggedHowMuchIsLost() throws Exception {
        try (ServeCommandProcess server = serve("--set", "disks.0.bytes_per_second=1", "--set", "shutdown.drain=1s")) {
            try (Client client = new Client(server.port())) {
                assertThat(client.set("a", new byte[10])).isTrue();
                assertThat(client.set("b", new byte[100_000])).isTrue();
                assertThat(client.set("c", new byte[100_000])).isTrue();
            }
            server.terminate();
            assertThat(server.awaitExit(4)).containsPattern("shutdown: [12]\\d{5} bytes not flushed to disk and lost");
        }
        assertThat(folder.resolve("errors"))
                .content()
                .containsPattern("level=error logger=\\S+ServeCommand msg=\"KVCache: shutdown: [12]\\d{5} bytes");
    }
}
