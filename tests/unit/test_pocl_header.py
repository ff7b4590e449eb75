"""The short header of builtins that kernels for pip's PoCL are compiled with."""

from __future__ import annotations

from cltensor.runtime.pocl import shorten

HEADER = """#ifndef _OPENCL_H_
#define _OPENCL_H_
#define __ovld __attribute__((overloadable))
// a comment; with a semicolon
float __ovld __cnfn exp(float);
float16 __ovld __cnfn exp(float16);
float3 __ovld __cnfn exp(float3);
half __ovld __cnfn exp(half);
float __ovld __cnfn convert_float(int);
float __ovld __cnfn convert_float_sat(int);
long16 __ovld __cnfn convert_long16_rtz(float16);
float __ovld vload_half(size_t offset, const __global half *p);
float4 __ovld __purefn read_imagef(read_only image2d_t image, sampler_t sampler, int2 coord);
event_t __ovld async_work_group_copy(__local char *dst,
                                     const __global char *src, size_t num_gentypes, event_t event);
#ifdef cl_khr_fp64
double __ovld __cnfn erf(double);
double __ovld __cnfn cospi(double);
#endif
void __ovld __conv barrier(cl_mem_fence_flags flags);
#endif
"""


def test_what_no_source_spells_is_left_out() -> None:
    kept = shorten(HEADER)
    for gone in ("_sat", "read_imagef", "async_work", "num_gentypes", "cospi", "float3", "half __ovld"):  # fmt: skip
        assert gone not in kept
    for there in ("exp(float);", "exp(float16)", "convert_float(int)", "convert_long16_rtz(float16)", "vload_half(size_t", "erf(double)", "barrier(cl_mem"):  # fmt: skip
        assert there in kept
    assert [line for line in kept.splitlines() if line.startswith(("#", "//"))] == [
        line for line in HEADER.splitlines() if line.startswith(("#", "//"))
    ]
