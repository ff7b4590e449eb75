## The reductions of scatter and related functions, on the register type R. Products of complex numbers have the same
## bits as `a * b`.
<%def name="combine(dt, action)">
static inline R clt_combine(const R a, const R b) {
% if action == 'move':
    return b;
% elif action == 'add' and dt.code == 'b8':
    return (R)(a | b);
% elif action == 'add':
    return (R)(a + b);
% elif action == 'mul' and dt.code == 'b8':
    return (R)(a & b);
% elif action == 'mul' and dt.is_complex:
#pragma OPENCL FP_CONTRACT OFF
    return (R)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
% elif action == 'mul':
    return (R)(a * b);
% elif action == 'amax':
    return ${"a != a ? a : b != b ? b : " if dt.is_floating_point else ""}a < b ? b : a;
% elif action == 'amin':
    return ${"a != a ? a : b != b ? b : " if dt.is_floating_point else ""}b < a ? b : a;
% endif
}
</%def>
<%def name="scaling(dt, scale)">
% if scale and dt.is_complex:
static inline R clt_scale(const R a, const R b) {
#pragma OPENCL FP_CONTRACT OFF
    return (R)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
% elif scale:
static inline R clt_scale(const R a, const R b) { return (R)(a * b); }
% endif
</%def>
