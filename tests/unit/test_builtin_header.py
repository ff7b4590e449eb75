"""The declarations of builtins with which programs for pip's PoCL are compiled."""

from __future__ import annotations

from cltensor.runtime.builtin_header import take_apart, with_builtins

HEADER = """#ifndef _OPENCL_H_
#define _OPENCL_H_
#define __ovld __attribute__((overloadable))
// a comment; with a semicolon
float __ovld __cnfn exp(float);
float16 __ovld __cnfn exp(float16);
float3 __ovld __cnfn exp(float3);
half __ovld __cnfn exp(half);
long16 __ovld __cnfn convert_long16_rtz(float16);
float __ovld vload_half(size_t offset, const __global half *p);
float4 __ovld __purefn read_imagef(read_only image2d_t image, sampler_t sampler, int2 coord);
event_t __ovld async_work_group_copy(__local char *dst,
                                     const __global char *src, size_t num_gentypes, event_t event);
#if defined(cl_khr_images) || \\
    defined(cl_khr_fp64)
#ifdef cl_khr_fp64
#define A_WORD
double __ovld __cnfn exp(double); /* twice
as many bits */
#else
float __ovld __cnfn only_singles(float);
#endif
#endif
#ifdef cl_khr_fp16
half __ovld __cnfn vload_half(half);
#endif
void __ovld __conv barrier(cl_mem_fence_flags flags);
#undef __ovld
#endif
"""


def test_what_stays_is_all_but_functions() -> None:
    frame, declared = take_apart(HEADER)
    assert frame == (
        "#ifndef _OPENCL_H_\n#define _OPENCL_H_\n#define __ovld __attribute__((overloadable))\n"
        "#if defined(cl_khr_images) || \\\n    defined(cl_khr_fp64)\n#ifdef cl_khr_fp64\n#define A_WORD\n"
        "#else\n#endif\n#endif\n#endif\n"
    )
    assert set(declared) == {"exp", "convert_long16_rtz", "vload_half", "async_work_group_copy", "only_singles", "barrier"}  # fmt: skip


def test_a_function_is_declared_where_it_was() -> None:
    declared = take_apart(HEADER)[1]
    outer = "#if defined(cl_khr_images) || \\\n    defined(cl_khr_fp64)\n#ifdef cl_khr_fp64\n"
    assert declared["exp"] == (
        "float __ovld __cnfn exp(float);\nfloat16 __ovld __cnfn exp(float16);\n"
        f"{outer}double __ovld __cnfn exp(double);\n#endif\n#endif\n"
    )
    assert declared["only_singles"] == (
        f"{outer}#else\nfloat __ovld __cnfn only_singles(float);\n#endif\n#endif\n"
    )
    assert declared["vload_half"].count("#ifdef cl_khr_fp16\n") == 1


def test_a_program_brings_what_it_names() -> None:
    declared = {"exp": "EXP;\n", "log": "LOG;\n", "log2": "LOG2;\n"}
    source = "__kernel void f(__global float *a) { a[0] = log2(exp(a[1])); }"
    assert with_builtins(source, declared) == f"EXP;\nLOG2;\n#line 1\n{source}"


def test_macros_name_functions_by_parts() -> None:
    names = ("convert_int4", "convert_uint4", "convert_int8", "convert_int4_rtz", "vload4", "exp")
    declared = {name: f"{name};\n" for name in names}

    def brought(source: str) -> list[str]:
        return with_builtins(source, declared).split("#line")[0].split(";\n")[:-1]

    whole = "#define TO(T) convert_##T(x)\nint4 f(uint4 x) { return TO(int4); }"
    assert brought(whole) == ["convert_int4", "convert_uint4"]
    by_lanes = "#define TO(N) int##N f(const int *x) { return vload##N(0, x); }\nTO(4)"
    assert brought(by_lanes) == ["vload4"]
    both = f"{whole[:28]}\n#define OF(N) TO(int##N)\nOF(4)"
    assert brought(both) == ["convert_int4"]
    called = "#define CALL(f) f##4\nint4 f(uint4 x) { return CALL(convert_int)(x); }"
    assert brought(called) == ["convert_int4"]


def test_what_is_an_instruction_or_two_has_a_body() -> None:
    declared = take_apart(
        "int __ovld __cnfn max(int x, int y);\nuint4 __ovld __cnfn max(uint4 x, uint y);\n"
        "float __ovld __cnfn max(float x, float y);\nfloat16 __ovld __cnfn floor(float16);\n"
        "double __ovld __cnfn sqrt(double);\nfloat2 __ovld __cnfn sqrt(float2);\n"
        "float4 __ovld __purefn vload4(size_t offset, const __private float *p);\n"
        "float4 __ovld __purefn vload4(size_t offset, const __local float *p);\n"
        "void __ovld vstore4(float4 data, size_t offset, __private float *p);\n"
    )[1]
    assert declared["max"] == (
        "static inline int __ovld max(int x, int y) { return __builtin_elementwise_max(x, (int)y); }\n"
        "static inline uint4 __ovld max(uint4 x, uint y) { return __builtin_elementwise_max(x, (uint4)y); }\n"
        "float __ovld __cnfn max(float x, float y);\n"
    )
    assert declared["floor"] == (
        "static inline float16 __ovld floor(float16 x) { return __builtin_elementwise_floor(x); }\n"
    )
    assert declared["sqrt"] == (
        "static inline double __ovld sqrt(double x) { return __builtin_sqrt(x); }\n"
        "static inline float2 __ovld sqrt(float2 x) "
        "{ return (float2)(__builtin_sqrtf(x.s0), __builtin_sqrtf(x.s1)); }\n"
    )
    assert declared["vload4"] == (
        "typedef float4 clt_vload_float4 __attribute__((aligned(sizeof(float))));\n"
        "static inline float4 __ovld vload4(size_t offset, const __private float *p) "
        "{ return *(const __private clt_vload_float4 *)(p + 4 * offset); }\n"
        "float4 __ovld __purefn vload4(size_t offset, const __local float *p);\n"
    )
    assert declared["vstore4"] == (
        "typedef float4 clt_vstore_float4 __attribute__((aligned(sizeof(float))));\n"
        "static inline void __ovld vstore4(float4 data, size_t offset, __private float *p) "
        "{ *(__private clt_vstore_float4 *)(p + 4 * offset) = data; }\n"
    )


def test_float16s_are_converted_by_instructions_where_there_are_such() -> None:
    one, two = (
        "size_t offset, const __global half *p",
        "float2 data, size_t offset, __local half *p",
    )
    declared = take_apart(
        f"float __ovld __purefn vload_half({one});\nfloat16 __ovld __purefn vload_half16({one});\n"
        f"void __ovld vstore_half2_rte({two});\nvoid __ovld vstore_half_rtz({two});\n"
        "#ifdef cl_khr_fp64\nvoid __ovld vstore_half(double data, size_t offset, __global half *p);\n#endif\n"
    )[1]
    assert declared["vload_half"].endswith(
        f"#ifdef CLT_HALF\nstatic inline float __ovld vload_half({one}) "
        "{ return (float)(clt_of_half(*(const __global ushort *)(p + 1 * offset + 0))); }\n"
        f"#else\nfloat __ovld __purefn vload_half({one});\n#endif\n"
    )
    assert (
        f"static inline void __ovld vstore_half2_rte({two}) "
        "{ *(__local ushort *)(p + 2 * offset + 0) = clt_to_half(data.s0); "
        "*(__local ushort *)(p + 2 * offset + 1) = clt_to_half(data.s1); }\n"
    ) in declared["vstore_half2_rte"]
    for name in ("vload_half16", "vstore_half_rtz", "vstore_half"):
        assert "CLT_HALF" not in declared[name]
