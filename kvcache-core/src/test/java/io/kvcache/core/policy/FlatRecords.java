package io.kvcache.core.policy;

/// Records without parents, each a leaf.
public interface FlatRecords extends RecordView {

    @Override
    default int parent(int record) {
        return NONE;
    }

    @Override
    default int depth(int record) {
        return 0;
    }

    @Override
    default int residentChildren(int record) {
        return 0;
    }
}
