package io.kvcache.server.cluster;

import io.kvcache.cluster.DropLog;
import io.kvcache.cluster.DropRecord;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.ProtocolException;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/// The drops that a server has applied, in a file beside the first disk's blocks, and which of them its disks
/// have made durable.
///
/// 8 bytes `KVDROPS1`, then entries: `u32 count, u32 CRC32C of the count and the records`, and as many records,
/// all little-endian. Each change appends an entry and forces it to the disk. A file that has grown to twice its
/// contents is written anew beside, and takes the place of the old one in one step. An entry without records says
/// that the disks had made all drops before it durable.
///
/// **Threads.** One at a time. Requests of clients are interrupted when their session ends, and an interrupt
/// closes a channel, but not a [RandomAccessFile].
final class DropFile implements AutoCloseable {

    /// Its name in the directory of the first disk.
    static final String NAME = "cluster.drops";

    private static final Logger LOG = System.getLogger(DropFile.class.getName());

    private static final byte[] MAGIC = "KVDROPS1".getBytes(StandardCharsets.US_ASCII);
    private static final int HEAD_BYTES = 2 * Integer.BYTES;
    private static final int MAX_COUNT = 1 << 17;

    /// A head that no entry has, so that a file that is written anew stays damaged until [#markRepaired].
    private static final byte[] DAMAGE = {-1, -1, -1, -1, -1, -1, -1, -1};

    /// A smaller file is not worth writing anew.
    private static final long MIN_REWRITE_BYTES = 1 << 16;

    private final Path path;
    private final DropLog log = new DropLog();

    /// By [DropRecord#identity], in the order in which they were applied.
    private final Map<Long, DropRecord> unsynced = new LinkedHashMap<>();

    private boolean damaged;
    private @Nullable RandomAccessFile output;
    private long end;

    private DropFile(Path path) {
        this.path = path;
    }

    /// Reads a file, and changes nothing. One that does not exist is empty, and one that cannot be read is
    /// damaged.
    static DropFile read(Path path) {
        DropFile file = new DropFile(path);
        try {
            file.readAll(ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN));
        } catch (NoSuchFileException none) {
            file.damaged = false;
        } catch (IOException unreadable) {
            LOG.log(Level.ERROR, path + " cannot be read: " + unreadable.getMessage(), unreadable);
            file.damaged = true;
        }
        return file;
    }

    private void readAll(ByteBuffer bytes) {
        damaged = !startsWithMagic(bytes);
        while (!damaged && bytes.hasRemaining()) {
            List<DropRecord> entry = new ArrayList<>();
            switch (readEntry(bytes, entry)) {
                case GOOD -> addEntry(entry);
                case DAMAGED -> damaged = true;
                case UNFINISHED -> {
                    return;
                }
            }
        }
    }

    private void addEntry(List<DropRecord> entry) {
        entry.forEach(this::note);
        if (entry.isEmpty()) {
            unsynced.clear();
        }
    }

    /// A drop that was known has another time now, and was applied before.
    private void note(DropRecord drop) {
        if (log.add(drop) || unsynced.containsKey(drop.identity())) {
            unsynced.put(drop.identity(), drop);
        }
    }

    /// What has been applied.
    List<DropRecord> records() {
        return log.records();
    }

    /// Those of them whose tombstones may not be on the disks, in the order in which they were applied.
    List<DropRecord> unsynced() {
        return List.copyOf(unsynced.values());
    }

    /// Returns whether there were more records, which cannot be read.
    boolean isDamaged() {
        return damaged;
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

    /// Adds drops that have been applied, durably. After a failure the next one writes the file anew.
    void add(List<DropRecord> applied) throws IOException {
        applied.forEach(this::note);
        long needed = MAGIC.length + HEAD_BYTES + (long) log.size() * DropRecord.BYTES;
        if (damaged || end > Math.max(MIN_REWRITE_BYTES, 2 * needed)) {
            rewrite();
        } else {
            append(toEntry(applied));
        }
    }

    /// Notes that the disks have made drops durable. Those that were added meanwhile stay as they are.
    void markSynced(List<DropRecord> drops) throws IOException {
        drops.forEach(drop -> unsynced.remove(drop.identity()));
        if (unsynced.isEmpty() && !damaged) {
            append(toEntry(List.of()));
        } else {
            rewrite();
        }
    }

    /// Notes that the disks have nothing any more that may have been dropped.
    void markRepaired() throws IOException {
        damaged = false;
        rewrite();
    }

    private void append(byte[] entry) throws IOException {
        RandomAccessFile open = output;
        if (open == null) {
            rewrite();
            return;
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

    /// Writes the file anew, from what is known. Makes its directory where the disk has not done so yet.
    void rewrite() throws IOException {
        closeOutput();
        Path folder = path.toAbsolutePath().getParent();
        if (folder != null) {
            Files.createDirectories(folder);
        }
        Path next = path.resolveSibling(NAME + ".new");
        RandomAccessFile open = new RandomAccessFile(next.toFile(), "rw");
        boolean good = false;
        try {
            open.setLength(0);
            open.write(contents());
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

    private byte[] contents() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        bytes.writeBytes(MAGIC);
        List<DropRecord> synced = log.records().stream()
                .filter(drop -> !unsynced.containsKey(drop.identity()))
                .toList();
        if (!synced.isEmpty()) {
            bytes.writeBytes(toEntry(synced));
            bytes.writeBytes(toEntry(List.of()));
        }
        if (!unsynced.isEmpty()) {
            bytes.writeBytes(toEntry(unsynced()));
        }
        if (damaged) {
            bytes.writeBytes(DAMAGE);
        }
        return bytes.toByteArray();
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
