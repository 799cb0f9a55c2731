package io.kvcache.server.cluster;

import io.kvcache.cluster.DropLog;
import io.kvcache.cluster.DropRecord;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.ProtocolException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/// The drops that a server has applied, in a file beside the first disk's blocks.
///
/// 8 bytes `KVDROPS1`, then entries: `u32 count, u32 CRC32C of the count and the records`, and as many records,
/// all little-endian. Each change appends an entry and forces it to the disk. A file that has grown to twice its
/// contents is written anew beside, and takes the place of the old one in one step. An entry without records says
/// that the store had all of it on its disks.
///
/// **Threads.** One at a time. Requests of clients are interrupted when their session ends, and an interrupt closes a
/// channel, but not a [RandomAccessFile].
final class DropFile implements AutoCloseable {

    /// Its name in the directory of the first disk.
    static final String NAME = "cluster.drops";

    private static final byte[] MAGIC = "KVDROPS1".getBytes(StandardCharsets.US_ASCII);
    private static final int HEAD_BYTES = 2 * Integer.BYTES;
    private static final int MAX_COUNT = 1 << 17;

    /// A smaller file is not worth writing anew.
    private static final long MIN_REWRITE_BYTES = 1 << 16;

    private final Path path;
    private @Nullable RandomAccessFile output;
    private long end;

    private DropFile(Path path) {
        this.path = path;
    }

    /// What was in the file.
    ///
    /// @param records in the order in which they were added
    /// @param isDamaged whether there were more, which cannot be read
    /// @param isFlushed whether the store had all of them on its disks
    record Contents(List<DropRecord> records, boolean isDamaged, boolean isFlushed) {}

    /// Reads the file. One that does not exist is empty.
    static Contents read(Path path) throws IOException {
        byte[] all;
        try {
            all = Files.readAllBytes(path);
        } catch (NoSuchFileException none) {
            return new Contents(List.of(), false, true);
        }
        ByteBuffer bytes = ByteBuffer.wrap(all).order(ByteOrder.LITTLE_ENDIAN);
        List<DropRecord> records = new ArrayList<>();
        boolean flushed = false;
        if (!startsWithMagic(bytes)) {
            return new Contents(records, true, false);
        }
        while (bytes.hasRemaining()) {
            List<DropRecord> entry = new ArrayList<>();
            switch (readEntry(bytes, entry)) {
                case GOOD -> records.addAll(entry);
                case DAMAGED -> {
                    return new Contents(records, true, false);
                }
                case UNFINISHED -> {
                    return new Contents(records, false, false);
                }
            }
            flushed = entry.isEmpty();
        }
        return new Contents(records, false, flushed);
    }

    private enum Entry {
        GOOD,
        DAMAGED,
        /// The process ended while it wrote the last one, which no client was told about.
        UNFINISHED
    }

    private static boolean startsWithMagic(ByteBuffer bytes) {
        byte[] magic = new byte[Math.min(MAGIC.length, bytes.remaining())];
        bytes.get(magic);
        return Arrays.equals(magic, MAGIC);
    }

    private static Entry readEntry(ByteBuffer bytes, List<DropRecord> into) {
        if (bytes.remaining() < HEAD_BYTES) {
            return Entry.UNFINISHED;
        }
        int count = bytes.getInt();
        int crc = bytes.getInt();
        if (count < 0 || count > MAX_COUNT) {
            return Entry.DAMAGED;
        }
        if (bytes.remaining() < count * DropRecord.BYTES) {
            return Entry.UNFINISHED;
        }
        byte[] records = new byte[count * DropRecord.BYTES];
        bytes.get(records);
        if (crc != crcOf(count, records)) {
            return Entry.DAMAGED;
        }
        BodyReader body = new BodyReader(ByteBuffer.wrap(records));
        try {
            for (int i = 0; i < count; i++) {
                into.add(DropRecord.read(body));
            }
            return Entry.GOOD;
        } catch (ProtocolException impossible) {
            return Entry.DAMAGED;
        }
    }

    private static int crcOf(int count, byte[] records) {
        CRC32C crc = new CRC32C();
        crc.update(ByteBuffer.allocate(Integer.BYTES)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(0, count));
        crc.update(records);
        return (int) crc.getValue();
    }

    /// Opens the file with these contents, and writes it anew. Makes its directory where the disk has not done so
    /// yet.
    static DropFile open(Path path, List<DropRecord> records) throws IOException {
        Path folder = path.toAbsolutePath().getParent();
        if (folder != null) {
            Files.createDirectories(folder);
        }
        DropFile file = new DropFile(path);
        file.rewrite(records);
        return file;
    }

    /// Adds records durably.
    ///
    /// @param all what is to be in the file, the added ones among it, where it may be written anew now; else null
    void append(List<DropRecord> added, @Nullable DropLog all) throws IOException {
        long needed = MAGIC.length + HEAD_BYTES + (all == null ? 0L : (long) all.size() * DropRecord.BYTES);
        if (all != null && (output == null || end > Math.max(MIN_REWRITE_BYTES, 2 * needed))) {
            rewrite(all.records());
        } else {
            append(toEntry(added));
        }
    }

    /// Notes that the store has everything on its disks, which holds until the next record.
    void markFlushed() throws IOException {
        append(toEntry(List.of()));
    }

    private void append(byte[] entry) throws IOException {
        RandomAccessFile open = output;
        if (open == null) {
            throw new IOException(path + " could not be written before");
        }
        try {
            open.seek(end);
            open.write(entry);
            open.getFD().sync();
            end += entry.length;
        } catch (IOException failed) {
            closeOutput(); // half an entry may be there: only a new file helps
            throw failed;
        }
    }

    private void rewrite(List<DropRecord> records) throws IOException {
        closeOutput();
        Path next = path.resolveSibling(NAME + ".new");
        RandomAccessFile open = new RandomAccessFile(next.toFile(), "rw");
        boolean good = false;
        try {
            open.setLength(0);
            open.write(MAGIC);
            if (!records.isEmpty()) {
                open.write(toEntry(records));
            }
            open.getFD().sync();
            Files.move(next, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            forceDirectory();
            end = open.length();
            good = true;
        } finally {
            if (!good) {
                open.close();
            }
        }
        output = open;
    }

    private void forceDirectory() throws IOException {
        Path folder = path.toAbsolutePath().getParent();
        if (folder == null) {
            return;
        }
        boolean interrupted = Thread.interrupted();
        while (!isForced(folder)) {
            interrupted |= Thread.interrupted();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /// Returns false after an interrupt.
    private static boolean isForced(Path folder) throws IOException {
        try (FileChannel directory = FileChannel.open(folder, StandardOpenOption.READ)) {
            directory.force(true);
            return true;
        } catch (ClosedByInterruptException stopped) {
            return false;
        }
    }

    private static byte[] toEntry(List<DropRecord> records) {
        BodyWriter body = new BodyWriter(records.size() * DropRecord.BYTES);
        records.forEach(drop -> drop.write(body));
        byte[] bytes = body.toBytes();
        return ByteBuffer.allocate(HEAD_BYTES + bytes.length)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(records.size())
                .putInt(crcOf(records.size(), bytes))
                .put(bytes)
                .array();
    }

    private void closeOutput() throws IOException {
        if (output != null) {
            RandomAccessFile open = output;
            output = null;
            open.close();
        }
    }

    @Override
    public void close() throws IOException {
        closeOutput();
    }
}
