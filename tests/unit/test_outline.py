"""The text of kernels whose body is outlined to a function, so that PoCL compiles it once."""

from __future__ import annotations

import pytest

from cltensor.runtime.outline import outlined

PLAIN = """// __kernel void in_a_comment(int a) { return; }
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void add(__global const float *restrict a,
                  __global float *b /* what is added, to */, const long n) {
  __local float line[8] __attribute__((aligned(64))), more[4];
  for (long i = get_global_id(0) * n; i < n * (get_global_id(0) + 1); i++) { // one } too many
    line[i % 8] = a[i];
    b[i] += line[i % 8] * get_num_groups(1);
  }
}
float after(float x) { return x; }
"""


def plain(text: str) -> str:
    return " ".join(text.split())


def test_a_body_becomes_a_function_that_is_handed_what_only_a_kernel_has() -> None:
    made = outlined(PLAIN)
    head, _, tail = made.partition("CLT_BODY")
    assert head == PLAIN[: PLAIN.index("__attribute__")] + "\n"
    function, _, kernel = tail.partition("__attribute__((reqd")
    assert plain(function).startswith(
        "void clt_add(__global const float *restrict a, __global float *b /* what is added, to */, const long n, "
        "__local float *restrict line, __local float *restrict more, "
        "const size_t clt_get_global_id_0, const size_t clt_get_num_groups_1) {"
    )
    assert "line[i % 8] * clt_get_num_groups_1;" in function
    assert plain(kernel).startswith(
        "_work_group_size(1, 1, 1))) __kernel void add(__global const float *restrict a, __global float *b , const long n) "
        "{ __local float line[8] __attribute__((aligned(64))), more[4]; "
        "clt_add(a, b, n, line, more, get_global_id(0), get_num_groups(1)); }"
    )
    assert kernel.endswith("\nfloat after(float x) { return x; }\n")


def test_lines_of_a_body_stay_where_they_were() -> None:
    was, now = PLAIN.split("\n"), outlined(PLAIN).split("\n")
    assert len(now) == len(was)
    for number in (5, 6, 7):
        assert (
            was[number].replace("get_", "clt_get_").replace("(0)", "_0").replace("(1)", "_1")
            == now[number]
        )


@pytest.mark.parametrize(
    "body",
    [
        "b[get_local_id(0)] = 1;",
        "barrier(CLK_LOCAL_MEM_FENCE); b[0] = 1;",
        "for (int d = 0; d < 2; d++) b[d] = get_global_id(d);",
        "__local float square[4][4]; b[0] = square[0][0];",
        "__local int alike; b[0] = alike;",
    ],
)
def test_what_only_a_kernel_may_do_stays_in_it(body: str) -> None:
    text = f"__kernel void f(__global int *b) {{ {body} }}\n"
    assert outlined(text) == text


def test_a_function_or_a_macro_may_ask_for_its_kernel() -> None:
    for helper in ("#define LANE get_local_id(0)", "int lane() { return get_local_id(0); }"):
        text = f"{helper}\n__kernel void f(__global int *b) {{ b[0] = 1; }}\n"
        assert outlined(text) == text


def test_local_memory_of_the_caller_and_macros_are_left_alone() -> None:
    for text in (
        "__kernel void f(__global int *b, __local int *room) { b[0] = room[0]; }\n",
        "#define F(T) __kernel void f_##T(__global T *b) { b[0] = 1; }\nF(int)\n",
        "#define F(T) \\\n__kernel void f_##T(__global T *b) { \\\n b[0] = 1; \\\n}\nF(int)\n",
        "__kernel void f(__global int *b) { b[0] = 1;",
    ):
        assert outlined(text) == text


def test_each_kernel_of_a_program_is_seen_by_itself() -> None:
    apart = "__kernel void f(__global int *b) { b[0] = 1; }\n"
    both = apart + apart.replace("void f", "__attribute__((vec_type_hint(int)))\nvoid g")
    made = outlined(both)
    assert made.count("CLT_BODY") == 2
    assert "void clt_f(__global int *b) {" in made and "void clt_g(__global int *b) {" in made
