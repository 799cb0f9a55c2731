package io.kvcache.bench.disk;

import io.kvcache.bench.disk.DiskRun.AccessPattern;

import java.nio.file.Path;

/// What is to be moved, for us and for fio alike.
///
/// @param fileBytes a multiple of `pieceBytes`
/// @param totalBytes moved in all, a multiple of `pieceBytes` for each request in the queue
/// @param depth requests on their way at a time
record IoWorkload(Path file, long fileBytes, long totalBytes, AccessPattern pattern, int pieceBytes, int depth) {

    long pieces() {
        return totalBytes / pieceBytes;
    }
}
