"""An engine in Python, with nothing but its standard library: it has blocks of its pool stored by a KVCache
process, and loaded into other pages. ENGINES.md says what goes over the socket.

engine.py DOOR LIBCUDA [torch]: the path of the socket, and the driver's library. Prints a line for each step that went
well. With `torch`, half of the pool is a tensor of PyTorch's, as it is in vLLM and SGLang.
"""
import ctypes
import os
import socket
import struct
import sys

HELLO, REGION, EVENT, POOL, CHAIN, LOAD, STORE, SEAL, DONE, REFUSED = 1, 2, 3, 4, 5, 6, 7, 8, 100, 101
NAME, LAYERS, SIDES, PAGES, PIECE, PAGES_PER_BLOCK, BLOCK_TOKENS = b"small model", 2, 2, 40, 2048, 2, 16
SIDE, LAYER, REGION_BYTES, OFFSET = PAGES * PIECE, SIDES * PAGES * PIECE, 2 << 20, 4096

u64, i32, vp = ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p


class Token(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]


class Driver:
    """As much of the driver as this needs. Engines have it by their framework."""

    def __init__(self, library):
        self.cuda = ctypes.CDLL(library)
        device, context = i32(), vp()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.uuid = ctypes.create_string_buffer(16)
        self.call("cuDeviceGetUuid_v2", self.uuid, device)
        self.stream = vp()
        self.call("cuStreamCreateWithPriority", ctypes.byref(self.stream), 1, 0)

    def call(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {result}")

    def allocate(self, size):
        at = u64()
        self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size))
        return at.value

    def base_of(self, at):
        """Where the allocation begins that this address is in: its token is of all of it."""
        base, size = u64(), ctypes.c_size_t()
        self.call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), u64(at))
        return base.value

    def map_shared(self, size):
        """CUmemAllocationProp: pinned, to be shared by descriptor, on device 0. Returns address and descriptor."""
        wanted = ctypes.create_string_buffer(struct.pack("<iiiiQQ", 1, 1, 1, 0, 0, 0), 32)
        access = ctypes.create_string_buffer(struct.pack("<iii", 1, 0, 3), 12)
        handle, at, descriptor, whole = u64(), u64(), i32(), ctypes.c_size_t(size)
        self.call("cuMemCreate", ctypes.byref(handle), whole, wanted, u64(0))
        self.call("cuMemAddressReserve", ctypes.byref(at), whole, ctypes.c_size_t(0), u64(0), u64(0))
        self.call("cuMemMap", at, whole, ctypes.c_size_t(0), handle, u64(0))
        self.call("cuMemSetAccess", at, whole, access, ctypes.c_size_t(1))
        self.call("cuMemExportToShareableHandle", ctypes.byref(descriptor), handle, 1, u64(0))
        return at.value, descriptor.value

    def memory_token(self, at):
        token = Token()
        self.call("cuIpcGetMemHandle", ctypes.byref(token), u64(at))
        return ctypes.string_at(ctypes.byref(token), 64)

    def shared_event(self):
        """Between processes (4) and without a time (2)."""
        event, token = vp(), Token()
        self.call("cuEventCreate", ctypes.byref(event), 6)
        self.call("cuIpcGetEventHandle", ctypes.byref(token), event)
        return event, ctypes.string_at(ctypes.byref(token), 64)

    def open_event(self, token):
        event, told = vp(), Token()
        ctypes.memmove(ctypes.byref(told), token, 64)
        self.cuda.cuIpcOpenEventHandle.argtypes = [vp, Token]
        self.call("cuIpcOpenEventHandle", ctypes.byref(event), told)
        return event

    def write(self, at, content):
        self.call("cuMemcpyHtoDAsync_v2", u64(at), content, ctypes.c_size_t(len(content)), self.stream)

    def read(self, at, size):
        content = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoHAsync_v2", content, u64(at), ctypes.c_size_t(size), self.stream)
        return content

    def record(self, event):
        self.call("cuEventRecord", event, self.stream)

    def wait_for(self, event):
        self.call("cuStreamWaitEvent", self.stream, event, 0)

    def until(self, event):
        """Until it is reached: 600 is "not ready"."""
        while (result := self.cuda.cuEventQuery(event)) == 600:
            pass
        if result != 0:
            raise RuntimeError(f"cuEventQuery: {result}")


class TorchDriver(Driver):
    """Memory from PyTorch's allocator, which puts several tensors into one allocation of the driver's."""

    def allocate(self, size):
        import torch
        self.tensors = [torch.zeros(some, dtype=torch.uint8, device="cuda") for some in (3 << 20, size)]
        torch.cuda.synchronize()
        return self.tensors[-1].data_ptr()


class Door:
    """A request is a kind, a number and a body; so is an answer."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.number = 0

    def ask(self, kind, body, descriptors=()):
        self.number += 1
        message = struct.pack("<ii", kind, self.number) + body
        if descriptors:
            socket.send_fds(self.socket, [message], descriptors)
        else:
            self.socket.send(message)
        answer = self.socket.recv(65536)
        outcome, number = struct.unpack_from("<ii", answer)
        if outcome == REFUSED:
            raise ValueError(answer[8:].decode())
        assert outcome == DONE and number == self.number
        return answer[8:]

    def numbers(self, kind, body, descriptors=()):
        answer = self.ask(kind, body, descriptors)
        return struct.unpack(f"<{len(answer) // 8}q", answer)


def pages_of(layers, pages):
    """The pieces of pages, as a block has them: [layer][side][page]."""
    return b"".join(layer[side * SIDE + page * PIECE:][:PIECE] for layer in layers for side in range(SIDES) for page in pages)


def wanted(first, count, event, pages):
    return struct.pack(f"<iiiii{len(pages)}i", 0, first, count, event, 0, *pages)


def main(path, library, allocator=""):
    driver, door = (TorchDriver if allocator == "torch" else Driver)(library), Door(path)
    greeting = door.ask(HELLO, struct.pack("<i", 1) + driver.uuid.raw)
    loaded, stored = driver.open_event(greeting[8:72]), driver.open_event(greeting[72:136])
    print("greeted", flush=True)

    slab = driver.allocate(REGION_BYTES)  # what is no multiple of 2 MiB, drivers share with what lies beside it
    mapped, descriptor = driver.map_shared(REGION_BYTES)
    base = driver.base_of(slab)
    by_token, size = door.numbers(REGION, struct.pack("<i", 0) + driver.memory_token(base))
    assert size >= slab - base + REGION_BYTES
    by_descriptor, _ = door.numbers(REGION, struct.pack("<iq", 1, REGION_BYTES), [descriptor])
    os.close(descriptor)
    described = struct.pack("<i", len(NAME)) + NAME
    described += struct.pack("<iiiiqqq", LAYERS, SIDES, PAGES, PAGES_PER_BLOCK, SIDE, PIECE, PIECE)
    described += struct.pack("<qqqqqq", by_token, slab - base + OFFSET, LAYER, by_descriptor, OFFSET, LAYER)
    pool, tokens_per_block = door.numbers(POOL, described)
    assert tokens_per_block == BLOCK_TOKENS
    event, token = driver.shared_event()
    number, = door.numbers(EVENT, token)
    print("introduced", flush=True)

    tokens = [3 * i + 1 for i in range(2 * BLOCK_TOKENS)]
    blocks, here = door.numbers(CHAIN, struct.pack(f"<iiii{len(tokens)}i", 0, pool, 0, len(tokens), *tokens))
    assert (blocks, here) == (2, 0)
    layers = [os.urandom(LAYER), os.urandom(LAYER)]
    for at, layer in zip((slab, mapped), layers):
        driver.write(at + OFFSET, layer)
    driver.record(event)
    count, store = door.numbers(STORE, wanted(0, 2, number, [3, 17, 0, 39]))
    assert count == 2
    driver.until(stored)
    assert door.numbers(SEAL, struct.pack("<i", store)) == (2,)
    print("stored", flush=True)

    zeroes = bytes(LAYER)  # stays until it was copied
    for at in (slab, mapped):
        driver.write(at + OFFSET, zeroes)
    driver.record(event)
    assert door.numbers(LOAD, wanted(0, 2, number, [8, 9, 21, 20])) == (2,)
    driver.wait_for(loaded)
    found = [driver.read(at + OFFSET, LAYER) for at in (slab, mapped)]
    driver.record(event)
    driver.until(event)
    found = [content.raw for content in found]
    assert pages_of(found, [8, 9]) == pages_of(layers, [3, 17])
    assert pages_of(found, [21, 20]) == pages_of(layers, [0, 39])
    assert pages_of(found, [10, 19]) == bytes(LAYERS * SIDES * 2 * PIECE)
    print("loaded", flush=True)

    try:
        door.ask(LOAD, wanted(0, 1, number, [8, PAGES]))
    except ValueError as refused:
        print(refused, flush=True)


main(*sys.argv[1:])
