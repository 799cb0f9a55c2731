package io.kvcache.transport.peer;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/// A pool whose threads are actors of a [Stage]. Interrupts nobody.
final class StageExecutor extends AbstractExecutorService {

    private final Stage stage;
    private final String name;
    private final int most;
    private final Deque<Runnable> waiting = new ArrayDeque<>();
    private int running;
    private boolean shut;

    StageExecutor(Stage stage, String name, int most) {
        this.stage = stage;
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
            stage.start(name, this::work);
        }
        stage.perhaps();
    }

    private void work() {
        try {
            for (Runnable next = waiting.poll(); next != null; next = waiting.poll()) {
                next.run();
            }
        } finally {
            synchronized (this) {
                running--;
                stage.wake(this);
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
        long until = stage.now() + unit.toNanos(timeout);
        while (running > 0 && stage.now() < until) {
            stage.await(this, until);
        }
        return running == 0;
    }
}
