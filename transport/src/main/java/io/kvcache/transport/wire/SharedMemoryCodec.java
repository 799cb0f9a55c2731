package io.kvcache.transport.wire;

import io.kvcache.core.shm.SharedMemoryFiles;

/// What SHARE is answered by: `u64 epoch, text directory, text slots, text records`.
public final class SharedMemoryCodec {

    private SharedMemoryCodec() {}

    public static void write(SharedMemoryFiles files, BodyWriter to) {
        to.i64(files.epoch()).text(files.directory()).text(files.slots()).text(files.records());
    }

    public static SharedMemoryFiles read(BodyReader from) throws ProtocolException {
        long epoch = from.i64("epoch");
        return new SharedMemoryFiles(from.text("directory"), from.text("slots"), from.text("records"), epoch);
    }
}
