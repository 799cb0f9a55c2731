package io.kvcache.transport.ucx;

import java.io.IOException;

/// Whether UCX is installed.
public final class UcxHere {

    private UcxHere() {}

    public static boolean there() {
        try {
            Ucp.load();
            return true;
        } catch (IOException missing) {
            return false;
        }
    }
}
