package io.kvcache.transport.cluster;

import io.kvcache.core.identity.BlockKey;

/// Assigns objects to servers by the hash slots of Redis Cluster, so that its clients can find them.
///
/// An object's slot is CRC16 of its key, or of the hash tag between the key's first `{` and the next `}`, modulo
/// 16,384. 16 adjacent slots form a run and lie on one server, so that `CLUSTER SLOTS` has at most 1,024 ranges.
///
/// Runs are assigned in the order of their numbers. A run takes the first server in [Placement#order] with fewer runs
/// than 1.1 times its share by weight. The cap evens out the few runs: without it the fullest of 64 servers has about
/// 1.6 times its share. For that, a join moves some runs between other servers: of 64, about 1.5 times what the new
/// server takes.
///
/// **Source.** Redis Cluster Specification, "Key distribution model" and "Hash tags".
///
/// **Threads.** Immutable; any thread.
public final class HashSlots {

    /// Number of slots.
    public static final int COUNT = 16_384;

    /// Adjacent slots that always have one owner.
    public static final int RUN_SLOTS = 16;

    private static final int RUNS = COUNT / RUN_SLOTS;

    /// 1.1 times the runs.
    private static final double CAPPED_RUNS = 1126.4;

    /// Polynomial of CRC-16/XMODEM, `x^16 + x^12 + x^5 + 1`.
    private static final int POLYNOMIAL = 0x1021;

    private static final int[] CRC = crcTable();

    private final int[] owners = new int[RUNS];

    /// Assigns all slots; takes a score of each server for each run. The caps add up to more than all runs, so there is
    /// always a server below its own.
    public HashSlots(Placement placement) {
        double[] caps = caps(placement);
        int[] runs = new int[caps.length];
        for (int run = 0; run < RUNS; run++) {
            owners[run] = placement.first(new BlockKey(0, run), node -> runs[node] < caps[node]);
            runs[owners[run]]++;
        }
    }

    private static double[] caps(Placement placement) {
        double total = 0;
        for (int node : placement.byName()) { // in one order, as sums of doubles depend on it
            total += placement.nodes().get(node).weight();
        }
        double[] caps = new double[placement.nodes().size()];
        for (int node = 0; node < caps.length; node++) {
            caps[node] = CAPPED_RUNS * placement.nodes().get(node).weight() / total;
        }
        return caps;
    }

    /// Returns the slot of a key, 0 to 16,383.
    public static int of(byte[] key) {
        int open = indexOf(key, '{', 0);
        int close = open < 0 ? -1 : indexOf(key, '}', open + 1);
        return close > open + 1 ? crc16(key, open + 1, close) % COUNT : crc16(key, 0, key.length) % COUNT;
    }

    private static int indexOf(byte[] key, char wanted, int from) {
        for (int i = from; i < key.length; i++) {
            if (key[i] == wanted) {
                return i;
            }
        }
        return -1;
    }

    private static int crc16(byte[] bytes, int from, int end) {
        int crc = 0;
        for (int i = from; i < end; i++) {
            crc = ((crc << 8) & 0xffff) ^ CRC[(crc >>> 8) ^ (bytes[i] & 0xff)];
        }
        return crc;
    }

    private static int[] crcTable() {
        int[] table = new int[256];
        for (int first = 0; first < table.length; first++) {
            int crc = first << 8;
            for (int bit = 0; bit < Byte.SIZE; bit++) {
                crc = (crc << 1) ^ ((crc & 0x8000) == 0 ? 0 : POLYNOMIAL);
            }
            table[first] = crc & 0xffff;
        }
        return table;
    }

    /// Returns the server of a slot, as its index in [Placement#nodes].
    ///
    /// @param slot 0 to 16,383
    public int owner(int slot) {
        if (slot < 0 || slot >= COUNT) {
            throw new IllegalArgumentException(
                    "slot = %s is out of range; allowed: 0 to %s".formatted(slot, COUNT - 1));
        }
        return owners[slot / RUN_SLOTS];
    }
}
