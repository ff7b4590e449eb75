<%doc>
Transposes a square of registers: from vectors ${'{x}'}0, ${'{x}'}1, ..., as many as they have lanes (a power of two,
two or more), makes vectors ${'{y}'}0, ${'{y}'}1, ..., of which vector i has lane i of each. Each stage interleaves the
lanes of one half of the vectors with the other's.
</%doc>\
<%def name="turned(type, lanes, x, y)">\
<%
stages = lanes.bit_length() - 1
def name(stage, i): return f"{x}{i}" if stage == 0 else f"{y}{i}" if stage == stages else f"{x}{stage}_{i}"
%>\
% for s in range(stages):
% for i in range(lanes // 2):
<% a, b, lo, hi = name(s, i), name(s, i + lanes // 2), name(s + 1, 2 * i), name(s + 1, 2 * i + 1) %>\
            ${type} ${lo}, ${hi};
            ${lo}.even = ${a}.lo; ${lo}.odd = ${b}.lo; ${hi}.even = ${a}.hi; ${hi}.odd = ${b}.hi;
% endfor
% endfor
</%def>\
