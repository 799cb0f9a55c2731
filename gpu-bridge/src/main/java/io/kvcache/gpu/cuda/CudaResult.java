package io.kvcache.gpu.cuda;

import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceException;
import jcuda.driver.CUresult;

/// Maps the driver's result codes.
final class CudaResult {

    static final int SUCCESS = 0;
    static final int INVALID_VALUE = 1;
    static final int INVALID_DEVICE = 101;
    static final int NOT_READY = 600;
    static final int NOT_SUPPORTED = 801;

    private CudaResult() {}

    /// @throws DeviceException unless the call was answered with success
    static void check(String call, int result) {
        if (result != SUCCESS) {
            throw new DeviceException(error(result), call, describe(result));
        }
    }

    /// Likewise for handles of other processes and for what the machine may forbid: this fails in more ways than
    /// drivers document, and leaves the device usable.
    static void checkFallible(String call, int result) {
        if (result != SUCCESS) {
            DeviceError error = error(result);
            boolean vague = error == DeviceError.OTHER || error == DeviceError.NO_DEVICE;
            throw new DeviceException(vague ? DeviceError.REFUSED : error, call, describe(result));
        }
    }

    static String describe(int result) {
        return CUresult.stringFor(result) + ", " + result;
    }

    private static DeviceError error(int result) {
        return switch (result) {
            case 2, 701 -> DeviceError.OUT_OF_MEMORY;
            case 34, 35, 803, 804 -> DeviceError.NO_DRIVER;
            case 100, INVALID_DEVICE -> DeviceError.NO_DEVICE;
            case INVALID_VALUE, 201, 208, 400, 500, 708 -> DeviceError.BAD_REQUEST;
            case 200, 209, 218, 221, 222, 223, 300, 301, 302, 303 -> DeviceError.BAD_CODE;
            case 205, 711 -> DeviceError.NOT_REACHABLE;
            case 712 -> DeviceError.ALREADY_REGISTERED;
            case 713 -> DeviceError.NOT_REGISTERED;
            case 304, 800 -> DeviceError.NOT_PERMITTED;
            case 36, 217, NOT_SUPPORTED -> DeviceError.NOT_SUPPORTED;
            case 802 -> DeviceError.NOT_UP;
            case 214, 220, 226 -> DeviceError.MEMORY_DAMAGED;
            case 700, 710, 714, 715, 716, 717, 718, 719 -> DeviceError.ILLEGAL_ACCESS;
            case 4, 46, 702, 709 -> DeviceError.DEVICE_LOST;
            default -> DeviceError.OTHER;
        };
    }
}
