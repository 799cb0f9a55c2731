package io.kvcache.engines.jlama;

import io.kvcache.core.KvCache;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.concurrent.CountDownLatch;

/// A store whose puts wait until the test lets them go, so that a test decides what a store under way has done.
///
/// @param cache the store; all but `put` goes straight to the one below it
public record GatedStore(KvCache cache, CountDownLatch gate) {

    /// A gate that is shut.
    public static GatedStore over(KvCache below) {
        CountDownLatch gate = new CountDownLatch(1);
        KvCache cache = (KvCache) Proxy.newProxyInstance(
                GatedStore.class.getClassLoader(), new Class<?>[] {KvCache.class}, (_, method, arguments) -> {
                    if (method.getName().equals("put")) {
                        gate.await();
                    }
                    try {
                        return method.invoke(below, arguments);
                    } catch (InvocationTargetException thrown) {
                        throw thrown.getCause();
                    }
                });
        return new GatedStore(cache, gate);
    }
}
