package io.kvcache.transport.wire;

import io.kvcache.core.SharedFiles;

/// What SHARE is answered by: `u64 epoch, text directory, text slots, text records`.
public final class ShareCodec {

    private ShareCodec() {}

    public static void write(SharedFiles files, BodyWriter to) {
        to.i64(files.epoch()).text(files.directory()).text(files.slots()).text(files.records());
    }

    public static SharedFiles read(BodyReader from) throws Violation {
        long epoch = from.i64("epoch");
        return new SharedFiles(from.text("directory"), from.text("slots"), from.text("records"), epoch);
    }
}
