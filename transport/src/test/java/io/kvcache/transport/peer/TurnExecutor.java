package io.kvcache.transport.peer;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/// A pool whose threads are actors of a [TurnScheduler]. Interrupts nobody.
final class TurnExecutor extends AbstractExecutorService {

    private final TurnScheduler turnScheduler;
    private final String name;
    private final int most;
    private final Deque<Runnable> waiting = new ArrayDeque<>();
    private int running;
    private boolean shut;

    TurnExecutor(TurnScheduler turnScheduler, String name, int most) {
        this.turnScheduler = turnScheduler;
        this.name = name;
        this.most = most;
    }

    @Override
    public void execute(Runnable work) {
        if (shut) {
            throw new RejectedExecutionException(name + " is shut");
        }
        waiting.add(work);
        if (running < most) {
            running++;
            turnScheduler.start(name, this::work);
        }
        turnScheduler.maybeYield();
    }

    private void work() {
        try {
            for (Runnable next = waiting.poll(); next != null; next = waiting.poll()) {
                next.run();
            }
        } finally {
            synchronized (this) {
                running--;
                turnScheduler.wake(this);
            }
        }
    }

    @Override
    public void shutdown() {
        shut = true;
    }

    @Override
    public List<Runnable> shutdownNow() {
        shut = true;
        List<Runnable> never = new ArrayList<>(waiting);
        waiting.clear();
        return never;
    }

    @Override
    public boolean isShutdown() {
        return shut;
    }

    @Override
    public boolean isTerminated() {
        return shut && running == 0;
    }

    @Override
    public synchronized boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
        long until = turnScheduler.now() + unit.toNanos(timeout);
        while (running > 0 && turnScheduler.now() < until) {
            turnScheduler.await(this, until);
        }
        return running == 0;
    }
}
