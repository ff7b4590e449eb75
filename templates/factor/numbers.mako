## Shared by the kernels of factorizations: vectors of V real or complex numbers (V = 1 where a work-item is a lane),
## and which lane takes which rows. A complex vector has its real parts first (.lo), then its imaginary parts (.hi), as
## a single complex number does.
<%def name="helpers(dt, memory, lane_memory, gpu, lanes, needed, sums=False, apart=True)">\
<%
T, F, V, complex_ = dt.reg, memory.reg, memory.lanes, dt.is_complex
R = dt.to_real().reg if complex_ else T
J = "long" if R == "double" else "int"
def vector(t): return t if V == 1 else f"{t}{V}"
%>\
${lane_memory.helpers({dt.code: memory}, V, [(dt.code, h) for h in needed], apart=apart)}\
typedef ${T} T;
typedef ${F} F;
typedef ${R} R;
typedef ${vector(R)} RV;
typedef ${vector(J)} JV;
#define SPREAD(x) ${memory.spread('x')}
## APART keeps a CPU's compiler from inlining a function: inlined in many places, such functions would take most of a
## kernel's build time.
% if gpu:
#define APART inline
% else:
#ifdef __AVX512F__
#define APART __attribute__((noinline, min_vector_width(512)))
#else
#define APART __attribute__((noinline))
#endif
% endif
% if V == 1:
#define LOAD(p, m) (*(p))
#define STORE(p, v, m) (*(p) = (v))
#define GATHER(p, step, m) (*(p))
#define SCATTER(p, step, v, m) (*(p) = (v))
#define IDS 0
% else:
#define LOAD(p, m) load_${dt.code}(p, m)
#define STORE(p, v, m) store_${dt.code}(p, v, m)
#define GATHER(p, step, m) gather_${dt.code}(p, step, m)
#define SCATTER(p, step, v, m) scatter_${dt.code}(p, step, v, m)
#define IDS (JV)(${', '.join(map(str, range(V)))})
% endif
% if complex_:
#define ONE (T)(1, 0)
#define REAL(z) (z).x
#define OF_REAL(r) (T)(r, 0)
#define CONJ(z) (T)((z).x, -(z).y)
#define IS_ZERO(z) ((z).x == 0 && (z).y == 0)
#define DIV(a, b) cdiv_${T}(a, b)
#define SIZE(z) (fabs((z).lo) + fabs((z).hi))
static inline F clt_less(const F c, const F a, const F b) {
    F r;
    r.lo = c.lo - a.lo * b.lo + a.hi * b.hi;
    r.hi = c.hi - a.lo * b.hi - a.hi * b.lo;
    return r;
}
static inline T clt_less_one(const T c, const T a, const T b) {
    return (T)(c.x - a.x * b.x + a.y * b.y, c.y - a.x * b.y - a.y * b.x);
}
static inline F clt_times(const F a, const F b) {
    F r;
    r.lo = a.lo * b.lo - a.hi * b.hi;
    r.hi = a.lo * b.hi + a.hi * b.lo;
    return r;
}
% else:
#define ONE (T)(1)
#define REAL(z) (z)
#define OF_REAL(r) (r)
#define CONJ(z) (z)
#define IS_ZERO(z) ((z) == 0)
#define DIV(a, b) ((a) / (b))
#define SIZE(z) fabs(z)
#define clt_less(c, a, b) ((c) - (a) * (b))
#define clt_less_one(c, a, b) ((c) - (a) * (b))
#define clt_times(a, b) ((a) * (b))
% endif
% if sums:
#define clt_clip(v, n) ${'clt_clip_lanes(v, n)' if V > 1 else '(v)'}
% if V > 1:
## v with zeros from lane n on.
static inline F clt_clip_lanes(const F v, const int n) {
    const JV known = IDS < (JV)(n);
% if complex_:
    F r;
    r.lo = known ? v.lo : (RV)(0);
    r.hi = known ? v.hi : (RV)(0);
    return r;
% else:
    return known ? v : (F)(0);
% endif
}
% endif
static APART R clt_lane_sum(const RV v) {
% if V > 1:
    R sum = 0;
    for (int s = 0; s < ${V}; ++s) sum += v[s];
    return sum;
% else:
    return v;
% endif
}
static APART R clt_lane_max(const RV v) {
% if V > 1:
    R most = v[0];
    for (int s = 1; s < ${V}; ++s) most = fmax(most, v[s]);
    return most;
% else:
    return v;
% endif
}
/* c + conj(a) b */
% if complex_:
static inline F clt_plus_conj(const F c, const F a, const F b) {
    F r;
    r.lo = c.lo + a.lo * b.lo + a.hi * b.hi;
    r.hi = c.hi + a.lo * b.hi - a.hi * b.lo;
    return r;
}
#define SUM(z) (T)(clt_lane_sum((z).lo), clt_lane_sum((z).hi))
#define LARGEST(z) fmax(fabs((z).lo), fabs((z).hi))
% else:
#define clt_plus_conj(c, a, b) ((c) + (a) * (b))
#define SUM(z) clt_lane_sum(z)
#define LARGEST(z) fabs(z)
% endif
% endif
#define V ${V}
% if gpu:
#define LANE (I)get_local_id(0)
#define LANES ${lanes}
#define SYNC barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
% else:
#define LANE 0
#define LANES 1
#define SYNC
% endif
#define COUNT(i) (int)min(m - (i), (I)V)
</%def>\
## Run the body for each of this lane's vectors of rows in [first, m): i is the vector's first row, n the number of its
## rows before m. On a CPU whole vectors have a loop of their own, which calls no functions.
<%def name="rows(first)">\
                {
                    I i = (${first}) + LANE * V;
% if not gpu:
#ifndef CLT_MASKS
                    _Pragma("clang loop unroll(disable)")
                    for (; i + V <= m; i += V) {
                        const int n = V;
${caller.body()}\
                    }
#endif
                    _Pragma("clang loop unroll(disable)")
% endif
                    for (; i < m; i += LANES * V) {
                        const int n = COUNT(i);
${caller.body()}\
                    }
                }
</%def>\
## Declare `one`, the largest size of a column's numbers from row `first` on, and `place`, the first row with that size.
## If all numbers are nan, or there are none, `one` is negative and `place` is `first`. On a GPU `sizes` and `places`
## are in local memory.
<%def name="largest(memory, gpu, column, first)">\
                    RV most = -1;
                    JV at = (JV)(${first});
<%self:rows first="${first}">\
                        const F y = LOAD(&${column} + i, n);
                        const RV size = SIZE(y);
                        const JV larger = size > most && IDS < (JV)(n);
                        most = larger ? size : most;
                        at = larger ? (JV)(i) + IDS : at;
</%self:rows>\
% if memory.lanes > 1:
                    R one = -1;
                    I place = ${first};
                    for (int s = 0; s < V; ++s)
                        if (most[s] > one || (most[s] == one && at[s] < place)) one = most[s], place = at[s];
% else:
                    R one = most;
                    I place = at;
% endif
% if gpu:
                    sizes[LANE] = one;
                    places[LANE] = place;
                    SYNC;
                    for (int s = 0; s < LANES; ++s)
                        if (sizes[s] > one || (sizes[s] == one && places[s] < place)) one = sizes[s], place = places[s];
                    SYNC;
% endif
</%def>\
