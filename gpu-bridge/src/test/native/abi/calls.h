// Compares how a function is called with how NVIDIA's header declares it: see DriverHeaderTest.
#pragma once

#include <cstddef>
#include <type_traits>

#define __CUDA_API_VERSION_INTERNAL // declares older functions too, each by its own name
#include <cuda.h>

template <char Kind, class Declared>
constexpr bool passes() {
    if (Kind == 'p') return std::is_pointer_v<Declared>;
    if (Kind == 'l') return !std::is_class_v<Declared> && sizeof(Declared) == 8; // a number, or a handle as one
    if (Kind == 'i') return !std::is_class_v<Declared> && !std::is_pointer_v<Declared> && sizeof(Declared) == 4;
    return std::is_class_v<Declared> && sizeof(Declared) == 64; // a token, by value
}

template <class Function>
struct Declared;

template <class... Arguments>
struct Declared<CUresult (*)(Arguments...)> {
    template <char... Kinds>
    static constexpr bool as() {
        if constexpr (sizeof...(Kinds) != sizeof...(Arguments)) {
            return false;
        } else {
            return (passes<Kinds, Arguments>() && ...);
        }
    }
};

#define CALLED(function, ...) static_assert(Declared<decltype(&function)>::as<__VA_ARGS__>(), #function)
