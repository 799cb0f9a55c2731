package io.kvcache.bench.disk;

/// Where the file lies that traffic goes to.
public enum StorageMedium {
    /// In tmpfs: no disk swings there, so that what the software costs shows.
    MEMORY,
    /// On a file system with a disk.
    DISK
}
