package io.kvcache.tiers.disk;

/// A group with its place in a region, and whether it got there.
final class PlacedGroup {

    private final Group group;
    private boolean written;

    PlacedGroup(Group group, boolean written) {
        this.group = group;
        this.written = written;
    }

    Group group() {
        return group;
    }

    boolean written() {
        return written;
    }

    void succeeded() {
        written = true;
    }
}
