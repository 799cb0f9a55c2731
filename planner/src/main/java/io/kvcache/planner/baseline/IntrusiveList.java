package io.kvcache.planner.baseline;

import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;

/// A doubly linked list of records, newest to oldest, whose links lie in the shared arrays.
///
/// The caller knows which list a record is in; a record is in one at most.
final class IntrusiveList {

    static final int NONE = RecordView.NONE;

    private final int[] newer;
    private final int[] older;
    private int newest = NONE;
    private int oldest = NONE;
    private int size;

    IntrusiveList(PolicyState state) {
        newer = BaselineNotes.of(state).newer();
        older = BaselineNotes.of(state).older();
    }

    int size() {
        return size;
    }

    /// The record at the eviction end, or [#NONE].
    int oldest() {
        return oldest;
    }

    /// The neighbour on the side of the newest, or [#NONE].
    int newer(int record) {
        return newer[record];
    }

    void addNewest(int record) {
        insert(record, newest, NONE);
    }

    void addOldest(int record) {
        insert(record, NONE, oldest);
    }

    /// Puts a record next to `neighbour`, on the side of the oldest.
    void insertOlder(int neighbour, int record) {
        insert(record, older[neighbour], neighbour);
    }

    void remove(int record) {
        join(older[record], newer[record]);
        size--;
    }

    private void insert(int record, int olderOne, int newerOne) {
        join(olderOne, record);
        join(record, newerOne);
        size++;
    }

    private void join(int olderOne, int newerOne) {
        if (olderOne == NONE) {
            oldest = newerOne;
        } else {
            newer[olderOne] = newerOne;
        }
        if (newerOne == NONE) {
            newest = olderOne;
        } else {
            older[newerOne] = olderOne;
        }
    }
}
