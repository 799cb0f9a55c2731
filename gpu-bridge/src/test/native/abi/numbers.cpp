// The structures and numbers that the bridge, and the stand-in, take for those of NVIDIA's header: compiled against
// it where there is one, and never run.
#include <cstddef>
#include <cuda.h>

static_assert(sizeof(CUmemAllocationProp) == 32);
static_assert(offsetof(CUmemAllocationProp, type) == 0);
static_assert(offsetof(CUmemAllocationProp, requestedHandleTypes) == 4);
static_assert(offsetof(CUmemAllocationProp, location) == 8);
static_assert(offsetof(CUmemLocation, type) == 0 && offsetof(CUmemLocation, id) == 4 && sizeof(CUmemLocation) == 8);
static_assert(offsetof(CUmemAllocationProp, win32HandleMetaData) == 16);
static_assert(offsetof(CUmemAllocationProp, allocFlags) == 24);
static_assert(CU_MEM_ALLOCATION_TYPE_PINNED == 1 && CU_MEM_LOCATION_TYPE_DEVICE == 1);
static_assert(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR == 1 && CU_MEM_ALLOC_GRANULARITY_MINIMUM == 0);

static_assert(sizeof(CUmemAccessDesc) == 12 && offsetof(CUmemAccessDesc, location) == 0);
static_assert(offsetof(CUmemAccessDesc, flags) == 8 && CU_MEM_ACCESS_FLAGS_PROT_READWRITE == 3);

static_assert(sizeof(CUmemcpyAttributes) == 24);
static_assert(offsetof(CUmemcpyAttributes, srcAccessOrder) == 0 && CU_MEMCPY_SRC_ACCESS_ORDER_STREAM == 1);
static_assert(offsetof(CUmemcpyAttributes, srcLocHint) == 4 && offsetof(CUmemcpyAttributes, dstLocHint) == 12);
static_assert(offsetof(CUmemcpyAttributes, flags) == 20);

static_assert(sizeof(CUipcMemHandle) == 64 && sizeof(CUipcEventHandle) == 64 && sizeof(CUuuid) == 16);
static_assert(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS == 1);
static_assert(CU_EVENT_DISABLE_TIMING == 2 && CU_EVENT_INTERPROCESS == 4 && CU_STREAM_NON_BLOCKING == 1);

static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == 75 && CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == 76);
static_assert(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM == 91);

static_assert(CUDA_ERROR_INVALID_VALUE == 1 && CUDA_ERROR_OUT_OF_MEMORY == 2 && CUDA_ERROR_NOT_INITIALIZED == 3);
static_assert(CUDA_ERROR_DEINITIALIZED == 4 && CUDA_ERROR_STUB_LIBRARY == 34);
static_assert(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER == 36 && CUDA_ERROR_DEVICE_UNAVAILABLE == 46);
static_assert(CUDA_ERROR_NO_DEVICE == 100 && CUDA_ERROR_INVALID_DEVICE == 101);
static_assert(CUDA_ERROR_INVALID_IMAGE == 200 && CUDA_ERROR_INVALID_CONTEXT == 201 && CUDA_ERROR_MAP_FAILED == 205);
static_assert(CUDA_ERROR_ALREADY_MAPPED == 208 && CUDA_ERROR_NO_BINARY_FOR_GPU == 209);
static_assert(CUDA_ERROR_ECC_UNCORRECTABLE == 214 && CUDA_ERROR_PEER_ACCESS_UNSUPPORTED == 217);
static_assert(CUDA_ERROR_INVALID_PTX == 218 && CUDA_ERROR_NVLINK_UNCORRECTABLE == 220);
static_assert(CUDA_ERROR_JIT_COMPILER_NOT_FOUND == 221 && CUDA_ERROR_UNSUPPORTED_PTX_VERSION == 222);
static_assert(CUDA_ERROR_JIT_COMPILATION_DISABLED == 223 && CUDA_ERROR_CONTAINED == 226);
static_assert(CUDA_ERROR_INVALID_SOURCE == 300 && CUDA_ERROR_FILE_NOT_FOUND == 301);
static_assert(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND == 302 && CUDA_ERROR_SHARED_OBJECT_INIT_FAILED == 303);
static_assert(CUDA_ERROR_OPERATING_SYSTEM == 304 && CUDA_ERROR_INVALID_HANDLE == 400 && CUDA_ERROR_NOT_FOUND == 500);
static_assert(CUDA_ERROR_NOT_READY == 600 && CUDA_ERROR_ILLEGAL_ADDRESS == 700);
static_assert(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES == 701 && CUDA_ERROR_LAUNCH_TIMEOUT == 702);
static_assert(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE == 708 && CUDA_ERROR_CONTEXT_IS_DESTROYED == 709);
static_assert(CUDA_ERROR_ASSERT == 710 && CUDA_ERROR_TOO_MANY_PEERS == 711);
static_assert(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED == 712 && CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED == 713);
static_assert(CUDA_ERROR_HARDWARE_STACK_ERROR == 714 && CUDA_ERROR_MISALIGNED_ADDRESS == 716);
static_assert(CUDA_ERROR_INVALID_PC == 718 && CUDA_ERROR_LAUNCH_FAILED == 719);
static_assert(CUDA_ERROR_NOT_PERMITTED == 800 && CUDA_ERROR_NOT_SUPPORTED == 801);
static_assert(CUDA_ERROR_SYSTEM_NOT_READY == 802 && CUDA_ERROR_SYSTEM_DRIVER_MISMATCH == 803);
static_assert(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE == 804);
