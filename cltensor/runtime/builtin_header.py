"""Clang's header of OpenCL builtins, split into the part every program needs and the declarations of each function.

Parsing all 14,000 declarations took PoCL 0.1 s per kernel; parsing only the 2,800 that cltensor's sources may call
still took a third of a small kernel's build. So a program gets only the declarations of the functions that its own text
names; some of these come with a body. Must not know PoCL's files.
"""

from __future__ import annotations

import re

_COMMENT = re.compile(r"[ \t]*(?:/\*.*?\*/|//[^\n]*)", re.DOTALL)
_PIECE = re.compile(
    r"^#\s*(?P<directive>\w+)(?:[^\n\\]|\\.)*\n"
    r"|^[a-z][^#;{}]*?__ovld[^#;{}]*?(?P<name>\w+)\s*\([^;]*\)\s*;\n",
    re.MULTILINE | re.DOTALL,
)
# Bodies for builtins that are calls in PoCL's library although they are one or two instructions: a call clobbers the
# registers, keeps a loop from being unrolled, and forces values into memory. Name -> (pattern of the return types that
# get a body, the body in terms of x, y and the type T). A body with an F (which becomes "f" for float, nothing for
# double) computes one SIMD lane; LLVM joins the lanes.
_INTEGERS, _FLOATS = r"u?(?:char|short|int|long)\d*", r"(?:float|double)\d*"
_BODIES = {
    "min": (_INTEGERS, "__builtin_elementwise_min(x, (T)y)"),
    "max": (_INTEGERS, "__builtin_elementwise_max(x, (T)y)"),
    "fmin": (_FLOATS, "__builtin_elementwise_min(x, (T)y)"),
    "fmax": (_FLOATS, "__builtin_elementwise_max(x, (T)y)"),
    "fabs": (_FLOATS, "__builtin_elementwise_abs(x)"),
    "floor": (_FLOATS, "__builtin_elementwise_floor(x)"),
    "rint": (_FLOATS, "__builtin_elementwise_roundeven(x)"),
    "sqrt": (_FLOATS, "__builtin_sqrtF(x)"),
    "copysign": (_FLOATS, "__builtin_copysignF(x, y)"),
    "isfinite": ("int", "__builtin_isfinite(x)"),
    "isinf": ("int", "__builtin_isinf(x)"),
    "isnan": ("int", "__builtin_isnan(x)"),
}
# PoCL converts a single float16 in 20 to 100 instructions; x86 (F16C) has one instruction for it. An empty asm
# statement hides from the compiler that the loaded float came from a float16, as in half.cl. Name -> the body, given
# the address and the stored lane.
_HALVES = {
    "vload_half": "clt_of_half(*(const {space} ushort *)({at}))",
    "vstore_half": "*({space} ushort *)({at}) = clt_to_half({lane})",
}
_HALVES["vstore_half_rte"] = _HALVES["vstore_half"]
_BY_HALVES = """#if defined(__F16C__) && defined(__has_builtin) && !defined(CLT_NO_ASSEMBLY)
#if __has_builtin(__builtin_ia32_vcvtph2ps) && __has_builtin(__builtin_ia32_vcvtps2ph)
#ifndef CLT_HALF
#define CLT_HALF
typedef short clt_halves __attribute__((vector_size(16)));
typedef float clt_singles __attribute__((vector_size(16)));
static inline float clt_of_half(ushort bits) {
  const clt_halves v = {(short)bits, 0, 0, 0, 0, 0, 0, 0};
  float number = __builtin_ia32_vcvtph2ps(v)[0];
  __asm__("" : "+x"(number));
  return number;
}
static inline ushort clt_to_half(float number) {
  const clt_singles v = {number, 0, 0, 0};
  return (ushort)__builtin_ia32_vcvtps2ph(v, 0)[0];
}
#endif
#endif
#endif
#ifdef CLT_HALF
"""
_DECLARATION = re.compile(
    r"^(?P<type>\w+) __ovld (?:__\w+ )?(?P<name>\w+?)(?P<lanes>\d*)\((?P<parameters>[^)]*)\);\n",
    re.MULTILINE,
)
_EMPTY = re.compile(r"^#if(?:[^\n\\]|\\.)*\n#endif\n", re.MULTILINE | re.DOTALL)
# Declarations that no kernel uses: 3-element vectors, half as an arithmetic type, images and the like.
_NEVER = re.compile(r"\w3\b|\bhalf\d*\b|image|atomic_(half|float|double)|__generic|intel|pipe")


def take_apart(header: str) -> tuple[str, dict[str, str]]:
    """Return the header without its functions, and a dict: function name -> its declarations inside their `#if`s."""
    frame: list[str] = []
    declared: dict[str, dict[tuple[str, ...], list[str]]] = {}
    conditions: list[str] = []  # the first is the guard against reading the header twice
    text = _COMMENT.sub("", header)
    end = 0
    for piece in _PIECE.finditer(text):
        frame.append(text[end : piece.start()].strip())
        end = piece.end()
        match piece["directive"]:
            case None:
                name = piece["name"]
                if name.startswith("v") or not _NEVER.search(piece[0]):
                    under = tuple(conditions[1:])
                    declared.setdefault(name, {}).setdefault(under, []).append(piece[0])
                continue
            case "if" | "ifdef" | "ifndef":
                conditions.append(piece[0])
            case "else" | "elif":
                conditions[-1] += piece[0]
            case "endif":
                conditions.pop()
            case "undef":  # of macros that the declarations use (`__ovld`): programs need them
                continue
        frame.append(piece[0].rstrip())
    frame.append(text[end:].strip())
    blocks = {
        name: "".join(
            "".join((*under, *lines, "#endif\n" * len(under))) for under, lines in groups.items()
        )
        for name, groups in declared.items()
    }
    blocks = {name: _DECLARATION.sub(_defined, text) for name, text in blocks.items()}
    kept = "\n".join(filter(None, frame)) + "\n"
    while (shorter := _EMPTY.sub("", kept)) != kept:
        kept = shorter
    return kept, blocks


def _defined(declaration: re.Match[str]) -> str:
    """Return a declaration with its body where `_BODIES` or `_HALVES` has one or where it is a vload or vstore of
    private memory, else as it is.
    """
    kind, name, lanes, parameters = declaration.group("type", "name", "lanes", "parameters")
    given = [p.replace("*", "* ").split() for p in parameters.split(",")]
    types, body = _BODIES.get(name, ("", ""))
    if body and re.fullmatch(types, kind):
        named = ", ".join(f"{p[0]} {x}" for p, x in zip(given, "xy"))
        return f"static inline {kind} __ovld {name}({named}) {{ return {_of_type(body, kind)}; }}\n"
    single = (name + lanes).replace("half2", "half")
    if (
        single in _HALVES
        and "half *" in parameters
        and not re.search("double|__generic", declaration[0])
    ):
        return _by_halves(declaration[0], single, kind, parameters, given[-1])
    if name not in ("vload", "vstore") or "__private" not in parameters:
        return declaration[0]
    vector = kind if name == "vload" else given[0][0]
    place = f"*(const __private clt_{name}_{vector} *)(p + {lanes} * offset)"
    body = f"return {place};" if name == "vload" else f"{place.replace('const ', '')} = data;"
    return (
        f"typedef {vector} clt_{name}_{vector} __attribute__((aligned(sizeof({given[-1][-3]}))));\n"
        f"static inline {kind} __ovld {name}{lanes}({parameters}) {{ {body} }}\n"
    )


def _by_halves(declaration: str, name: str, kind: str, parameters: str, pointer: list[str]) -> str:
    """Return text that defines a conversion of one or two float16s by F16C instructions, and else declares it."""
    space = next((word for word in pointer if word.startswith("__")), "")
    two = "half2" in declaration
    each = [
        _HALVES[name].format(
            space=space,
            at=f"p + {2 if two else 1} * offset + {k}",
            lane=f"data.s{k}" if two else "data",
        )
        for k in range(1 + two)
    ]
    joined = "; ".join(each) if kind == "void" else f"return ({kind})({', '.join(each)})"
    head = declaration.partition("(")[0].replace("__purefn ", "")
    return f"{_BY_HALVES}static inline {head}({parameters}) {{ {joined}; }}\n#else\n{declaration}#endif\n"


def _of_type(body: str, kind: str) -> str:
    """Return a body of `_BODIES` as an expression for the type `kind`."""
    lanes = kind.lstrip("abcdefghijklmnopqrstuvwxyz")
    if "F" in body:
        body = body.replace("F", "f" if kind.startswith("float") else "")
        if lanes:
            each = [re.sub(r"\b([xy])\b", rf"\1.s{k:x}", body) for k in range(int(lanes))]
            body = f"(T)({', '.join(each)})"
    return body.replace("T", kind)


def with_builtins(source: str, declared: dict[str, str]) -> str:
    """Return the declarations of the builtins that `source` names, then `source`; a `#line` keeps its line numbers."""
    words = set(re.findall(r"\w+", source))
    named = words & declared.keys()
    if "##" in source:
        parts = set(re.findall(r"\b([a-z]\w*_)##", source))
        named |= {name for name in declared if _pasted(name, words, parts)}
    return "".join(declared[name] for name in sorted(named)) + f"#line 1\n{source}"


def _pasted(name: str, words: set[str], parts: set[str]) -> bool:
    """Return whether a macro may paste `name` from tokens of the source: `convert_int##N`, `convert_##T`, or the latter
    with T as `int##N`.
    """
    stem = name.rstrip("0123456789")
    lanes = name[len(stem) :]
    rests = [name[len(part) :] for part in parts if name.startswith(part)]
    if any(rest in words for rest in rests):
        return True
    return lanes in words and (stem in words or any(r.removesuffix(lanes) in words for r in rests))
