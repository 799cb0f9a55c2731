package io.kvcache.bench.disk;

import io.kvcache.bench.disk.DiskBenchFixture.TestFile;
import io.kvcache.bench.disk.DiskRun.StorageMedium;
import io.kvcache.bench.disk.FioRunner.MissingToolException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// The folders that the disk suite makes its files in.
///
/// @param folders the disk's, and that in memory where there is one
/// @param remarks what is not as it should be, for people
public record DiskBenchDirs(Map<StorageMedium, Path> folders, List<String> remarks) {

    static final long FILE_BYTES = 1L << 30;

    /// The file, and a tier of small and one of large blocks.
    private static final long MEMORY_BYTES = FILE_BYTES + 2 * StoreLoadRunner.TIER_BYTES;

    private static final Path SHARED_MEMORY = Path.of("/dev/shm");

    /// Checks that fio is installed and that the folders have room.
    ///
    /// @param disk a folder
    /// @throws IOException that names the folder and what it lacks, or says how to install fio
    public static DiskBenchDirs find(Path disk) throws IOException {
        if (!FioRunner.isInstalled()) {
            throw new MissingToolException(FioRunner.INSTALL_HINT);
        }
        return find(disk, SHARED_MEMORY);
    }

    /// Returns only the folders on the needed media.
    public DiskBenchDirs retainOnly(Set<StorageMedium> needed) {
        Map<StorageMedium, Path> kept = new EnumMap<>(folders);
        kept.keySet().retainAll(needed);
        return new DiskBenchDirs(kept, remarks);
    }

    static DiskBenchDirs find(Path disk, Path memory) throws IOException {
        if (!Files.isDirectory(disk) || !Files.isWritable(disk)) {
            throw new IOException(disk + " is not a directory that can be written to");
        }
        if (!TestFile.hasRoom(disk, FILE_BYTES)) {
            throw new IOException(disk + " has less than 2 GiB free");
        }
        Map<StorageMedium, Path> folders = new EnumMap<>(Map.of(StorageMedium.DISK, disk));
        if (!Files.isDirectory(memory) || !TestFile.isInMemory(memory) || !TestFile.hasRoom(memory, MEMORY_BYTES)) {
            return new DiskBenchDirs(
                    folders, List.of(memory + " is not a tmpfs with 5 GiB free: skips the runs that need one"));
        }
        folders.put(StorageMedium.MEMORY, memory);
        return new DiskBenchDirs(
                folders,
                TestFile.isInMemory(disk)
                        ? List.of(disk + " is in memory: name a directory on a disk to measure one")
                        : List.of());
    }
}
