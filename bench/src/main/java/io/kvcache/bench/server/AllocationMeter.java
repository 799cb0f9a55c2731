package io.kvcache.bench.server;

import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import javax.management.JMX;
import javax.management.MBeanServerConnection;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/// Heap bytes that all threads of another JVM on this machine have allocated since its start.
final class AllocationMeter implements AutoCloseable {

    private final JMXConnector connector;
    private final ThreadAllocations threadAllocations;

    private AllocationMeter(JMXConnector connector, ThreadAllocations threadAllocations) {
        this.connector = connector;
        this.threadAllocations = threadAllocations;
    }

    /// What is asked of the other JVM's management bean of threads.
    public interface ThreadAllocations {

        long getTotalThreadAllocatedBytes();
    }

    /// Has a JVM start its management agent.
    ///
    /// @throws IOException when there is no such JVM of this user, or it does not let itself be looked at
    @SuppressWarnings("BanJNDI") // the other end is a process that we have started ourselves
    static AllocationMeter attach(long processId) throws IOException {
        String address = agent(Long.toString(processId));
        JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(address));
        MBeanServerConnection beans = connector.getMBeanServerConnection();
        return new AllocationMeter(connector, JMX.newMXBeanProxy(beans, name(), ThreadAllocations.class));
    }

    private static String agent(String processId) throws IOException {
        try {
            VirtualMachine machine = VirtualMachine.attach(processId);
            try {
                return machine.startLocalManagementAgent();
            } finally {
                machine.detach();
            }
        } catch (AttachNotSupportedException refused) {
            throw new IOException("process " + processId + " cannot be attached to", refused);
        }
    }

    private static ObjectName name() {
        try {
            return new ObjectName(ManagementFactory.THREAD_MXBEAN_NAME);
        } catch (MalformedObjectNameException bug) {
            throw new AssertionError(bug);
        }
    }

    long allocatedBytes() {
        return threadAllocations.getTotalThreadAllocatedBytes();
    }

    @Override
    public void close() throws IOException {
        connector.close();
    }
}
