package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.RecordPool;

/// Checks a store against itself, record by record; under its lock.
final class StoreCheck {

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final long[] live;
    private final long[] liveBytes;
    private int taken;
    private long sealed;
    private long slots;

    private StoreCheck(StoreParts parts) {
        pool = parts.pool();
        tree = parts.tree();
        slabs = parts.slabs();
        int namespaces = parts.namespaces().all().size();
        live = new long[namespaces];
        liveBytes = new long[namespaces];
    }

    static void run(StoreParts parts) {
        StoreCheck check = new StoreCheck(parts);
        parts.slabs().validate();
        for (int record = 0; record < parts.pool().highWater(); record++) {
            if (Control.state(parts.pool().control(record)) != Control.FREE) {
                check.record(record);
            }
        }
        check.totals(parts);
    }

    private void record(int record) {
        int state = Control.state(pool.control(record));
        taken++;
        require(state != Control.EVICTING, record, "is left EVICTING");
        boolean indexed = inIndex(record);
        require(indexed == (state != Control.DOOMED), record, "is in the index: " + indexed + ", state " + state);
        family(record, state);
        slots(record);
        if (state == Control.SEALED) {
            sealed++;
            int namespace = Identity.namespace(pool.identity(record));
            live[namespace]++;
            liveBytes[namespace] += pool.bytes(record);
        }
        int pins = Control.pins(pool.control(record));
        require(state != Control.RESERVED || pins == 1, record, "is RESERVED with " + pins + " pins");
        require(state != Control.DOOMED || pins > 0 || pool.residentChildren(record) > 0, record, "should be freed");
    }

    private boolean inIndex(int record) {
        for (int at = pool.bucketHead(pool.keyLo(record)); at != NONE; at = pool.bucketNext(at)) {
            if (at == record) {
                return true;
            }
        }
        return false;
    }

    private void family(int record, int state) {
        int[] children = {0};
        tree.eachChild(record, child -> {
            children[0]++;
            require(pool.parent(child) == record, child, "has another parent than " + record);
            require(pool.depth(child) == pool.depth(record) + 1, child, "has depth " + pool.depth(child));
        });
        require(
                children[0] == pool.residentChildren(record),
                record,
                "counts " + pool.residentChildren(record) + " children and has " + children[0]);
        int parent = pool.parent(record);
        if (parent != NONE) {
            int parentState = Control.state(pool.control(parent));
            require(parentState != Control.FREE, record, "has a free parent");
            require(state != Control.SEALED || parentState == Control.SEALED, record, "is sealed, its parent is not");
        }
    }

    private void slots(int record) {
        long bytes = 0;
        for (int page = pool.hostPage(record); page != SlabPool.NONE; page = slabs.next(page)) {
            require(slabs.owner(page) == record, record, "has page " + page + " of " + slabs.owner(page));
            bytes += slabs.slotBytes(page);
            slots++;
        }
        require(bytes >= pool.bytes(record), record, "has " + bytes + " bytes for " + pool.bytes(record));
    }

    private void totals(StoreParts parts) {
        long held = 0;
        for (int id = 0; id < slabs.classCount(); id++) {
            held += slabs.heldSlots(slabs.slotClass(id));
        }
        require(held == slots, NONE, held + " slots are held, " + slots + " by records");
        require(taken == pool.live(), NONE, pool.live() + " records counted, " + taken + " taken");
        long inPolicies = 0;
        for (int id = 0; id < parts.policies().classes(); id++) {
            inPolicies += parts.policies().of(id).size();
        }
        require(inPolicies == sealed, NONE, inPolicies + " records under policies, " + sealed + " sealed");
        for (NamespaceEntry entry : parts.namespaces().all()) {
            boolean agrees = entry.live == live[entry.id()] && entry.liveBytes == liveBytes[entry.id()];
            require(agrees, NONE, entry.namespace() + " counts " + entry.live + " and has " + live[entry.id()]);
        }
    }

    private static void require(boolean holds, int record, String what) {
        if (!holds) {
            throw new AssertionError(record == NONE ? what : "record " + record + " " + what);
        }
    }
}
