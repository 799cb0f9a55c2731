package io.kvcache.core.policy;

/// Records without parents, each a leaf.
public interface FlatRecords extends RecordView {

    @Override
    public default int parent(int record) {
        return NONE;
    }

    @Override
    public default int depth(int record) {
        return 0;
    }

    @Override
    public default int residentChildren(int record) {
        return 0;
    }
}
