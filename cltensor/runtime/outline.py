"""Moving each kernel's body into a function, which pip's PoCL then compiles in little more than half the time.

PoCL 3 keeps the kernel as written and copies its body into two more functions, of which cltensor calls one. All three
are optimised and compiled to machine code, which took seven tenths of a build. After outlining, a kernel has one
statement, a call of the function with its body, and that function is compiled once. What PoCL resolves only inside
kernels stays there and is passed as arguments: work-item and work-group ids and counts, and local arrays. A kernel that
needs more (several work-items per group, barriers) stays as it is. So does a program that defines CLT_WHOLE because its
loops need every register: a function has one register less, and LLVM also allocated registers worse in register tiles
of matrix products (up to 1.7 times the time), and in masks and rows that are rebuilt (1.1 to 1.3 times). All other
kernels are as fast as before. Must not know PoCL's files.
"""

from __future__ import annotations

import re

# The function is not static: else clang would propagate the local arrays' addresses, which are constants to it, into
# this function, whereas PoCL, which turns local arrays into arguments, looks for them in kernels only. PoCL makes the
# function static later, by itself. min_vector_width: in a kernel PoCL keeps 64-byte vectors whole; in a function LLVM
# would halve them on processors that prefer 256 bits.
PRELUDE = """#ifdef __AVX512F__
#define CLT_BODY __attribute__((noinline, min_vector_width(512)))
#else
#define CLT_BODY __attribute__((noinline))
#endif
"""
_WHOLE = re.compile(r"^#define CLT_WHOLE$", re.MULTILINE)
_GROUP = r"__attribute__\s*\(\(reqd_work_group_size\([^)]*\)\)\)"  # only kernels may say that
_KERNEL = re.compile(
    rf"(?P<before>(?:{_GROUP}\s*)?)__kernel\b"
    r"(?P<attributes>[^;{}]*?)\bvoid\s+(?P<name>\w+)\s*\((?P<parameters>[^{}]*?)\)\s*\{"
)
_NAME = re.compile(r"\w+(?=\s*$)")  # a parameter's name
_PLACE = re.compile(r"\b(get_(?:global_id|group_id|global_size|num_groups))\s*\(\s*([012])\s*\)")
_LOCAL = re.compile(r"\b__local\s+(\w+)\s+(\w+\s*\[[^;*=]*);")
_ARRAY = re.compile(r"(\w+)\s*\[[^\[\],]*\]\s*(?:__attribute__\s*\(\(\w+\(\w+\)\)\)\s*)?")
_OTHER_PLACE = re.compile(r"\bget_[a-z]+_[a-z]+\s*\(|\bbarrier\s*\(")
_OTHER_LOCAL = re.compile(r"\b__local\s+\w+\s+\w+\s*[\[;,]")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_BRACE = re.compile(rf"{_COMMENT.pattern}|[{{}}]", re.DOTALL)


def outlined(source: str) -> str:
    """Return a program's text with the bodies of its kernels moved into functions; line numbers are unchanged.

    Needs PRELUDE before it.
    """
    if _WHOLE.search(source):
        return source
    around: list[str] = []  # the text between the outlined kernels
    apart: list[str] = []
    end = 0
    for kernel in _KERNEL.finditer(source):
        close = _closing(source, kernel.end())
        if kernel.start() < end or close is None:
            continue
        text = _apart(kernel, source[kernel.end() : close])
        if text is not None:
            around.append(source[end : kernel.start()])
            apart.append(text)
            end = close + 1
    around.append(source[end:])
    # A macro or function outside the kernels calls get_global_id() or a barrier: PoCL allows that only if it ends up in
    # a kernel.
    if any(_OTHER_PLACE.search(_COMMENT.sub("", text)) for text in around):
        return source
    return "".join(a + b for a, b in zip(around, [*apart, ""], strict=True))


def _apart(kernel: re.Match[str], body: str) -> str | None:
    """Return a kernel as a function and a kernel that calls the function.

    None where the body must stay in the kernel.
    """
    parameters = _COMMENT.sub("", kernel["parameters"])
    line = kernel.string[kernel.string.rfind("\n", 0, kernel.start()) + 1 : kernel.end()]
    unclear = "#" in line or "//" in line.partition("__kernel")[0] or "\\\n" in kernel[0] + body[:2]
    if unclear or "__local" in parameters:
        return None
    handed = [found[0] for text in parameters.split(",") if (found := _NAME.search(text))]
    taken = [kernel["parameters"]] if handed else []
    arrays: list[str] = []
    for declaration in _LOCAL.finditer(body):
        if _ARRAY.sub("", declaration[2]).strip(", \n"):
            return None
        names = [found[1] for found in _ARRAY.finditer(declaration[2])]
        arrays.append(declaration[0])
        taken += [f"__local {declaration[1]} *restrict {name}" for name in names]
        handed += names
    body = _LOCAL.sub("", body)
    for call, dim in sorted({(found[1], found[2]) for found in _PLACE.finditer(body)}):
        taken.append(f"const size_t clt_{call}_{dim}")
        handed.append(f"{call}({dim})")
    body = _PLACE.sub(r"clt_\1_\2", body)
    plain = _COMMENT.sub("", body)
    if _OTHER_PLACE.search(plain) or _OTHER_LOCAL.search(plain):
        return None
    name, own = kernel["name"], re.sub(_GROUP, "", kernel["attributes"])
    before, attributes, parameters = (
        " ".join(text.split()) for text in (kernel["before"], kernel["attributes"], parameters)
    )
    return (
        "\n"
        * kernel["before"].count("\n")
        + f"CLT_BODY{own}void clt_{name}({', '.join(taken)}) {{{body}}} {before} __kernel {attributes} void {name}({parameters}) "
        f"{{ {' '.join(arrays)} clt_{name}({', '.join(handed)}); }}"
    )


def _closing(text: str, at: int) -> int | None:
    """Return the position of the brace that closes the one just before `at`; None if there is none."""
    depth = 1
    for found in _BRACE.finditer(text, at):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return found.start()
    return None
