package io.kvcache.bench.server;

import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import javax.management.JMX;
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

    /// The part of the other JVM's thread bean that is read.
    public interface ThreadAllocations {

        long getTotalThreadAllocatedBytes();
    }

    /// Attaches to a JVM and starts its management agent.
    ///
    /// @throws IOException when this user has no such JVM, or the JVM refuses the attachment
    @SuppressWarnings("BanJNDI") // the other end is a process that we have started ourselves
    static AllocationMeter attach(long processId) throws IOException {
        JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(agent(Long.toString(processId))));
        try {
            return new AllocationMeter(
                    connector,
                    JMX.newMXBeanProxy(
                            connector.getMBeanServerConnection(),
                            new ObjectName(ManagementFactory.THREAD_MXBEAN_NAME),
                            ThreadAllocations.class));
        } catch (MalformedObjectNameException bug) {
            throw new AssertionError(bug);
        }
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

    long allocatedBytes() {
        return threadAllocations.getTotalThreadAllocatedBytes();
    }

    @Override
    public void close() throws IOException {
        connector.close();
    }
}
