package io.kvcache.tiers.os;

/// Error numbers of Linux that mapping memory and using files can meet, with what an operator can do
/// about each.
public enum Errno {
    EPERM(1, "a container profile (seccomp) or a seal forbids it"),
    ENOENT(2, "check the path; the folder must be there"),
    EINTR(4, "a signal interrupted it"),
    EIO(5, "the disk failed; see dmesg and its SMART values"),
    ENXIO(6, "the device is not there any more"),
    EBADF(9, "the file was closed"),
    EAGAIN(11, "too much memory is locked, or the kernel is short of it; try again or raise ulimit -l"),
    ENOMEM(12, "ask for less, or raise the memory limit (free memory, vm.overcommit_memory, ulimit -v)"),
    EACCES(13, "check the owner and the mode of the folder, and vm.memfd_noexec"),
    EFAULT(14, "the memory was unmapped"),
    EBUSY(16, "something else uses it"),
    EEXIST(17, "remove the files that stayed behind"),
    ENODEV(19, "the device is not there any more"),
    EISDIR(21, "name a file in that folder"),
    EINVAL(22, "this kernel was built without it"),
    ENFILE(23, "the machine has too many open files; raise fs.file-max"),
    EMFILE(24, "this process has too many open files; raise ulimit -n"),
    EFBIG(27, "the file is larger than allowed; raise ulimit -f"),
    ENOSPC(28, "free space there, or enlarge it (mount -o remount,size=…; docker run --shm-size=…)"),
    EROFS(30, "choose a folder that can be written to"),
    ENOSYS(38, "this platform lacks the call; anonymous memory works everywhere"),
    ELOOP(40, "name the file itself, not a link to it"),
    ENODATA(61, "the disk lost the data; see dmesg and its SMART values"),
    ETIME(62, "it took too long"),
    EILSEQ(84, "the disk found its own checksum wrong; see dmesg and its SMART values"),
    EOPNOTSUPP(95, "the file system of that folder cannot reserve space; choose one under /dev/shm"),
    ETIMEDOUT(110, "the disk did not answer in time; see dmesg"),
    EUCLEAN(117, "the file system is damaged; check it"),
    EREMOTEIO(121, "the disk failed; see dmesg and its SMART values"),
    EDQUOT(122, "raise the quota, or ask for less"),
    ECANCELED(125, "it was cancelled");

    private final int number;
    private final String advice;

    Errno(int number, String advice) {
        this.number = number;
        this.advice = advice;
    }

    /// The number, positive.
    public int number() {
        return number;
    }

    /// Returns whether a call returned this error, in the convention of [Libc#call].
    public boolean isResult(long result) {
        return result == -number;
    }

    /// `ENOMEM (12): ask for less, …` for the result of a failed call.
    public static String explain(long result) {
        for (Errno errno : values()) {
            if (errno.isResult(result)) {
                return "%s (%s): %s".formatted(errno.name(), errno.number, errno.advice);
            }
        }
        return "errno " + -result;
    }

    /// `ENOMEM` for the result of a failed call.
    public static String nameOf(long result) {
        for (Errno errno : values()) {
            if (errno.isResult(result)) {
                return errno.name();
            }
        }
        return "errno " + -result;
    }
}
