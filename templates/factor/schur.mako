<%doc>
The eigenvalues of upper Hessenberg matrices by implicit QR steps (Francis, Comput. J. 4, 1961 and 1962; Golub and Van
Loan, "Matrix Computations", 7.5): two shifts at once where the matrix is real, so that all stays real, else one. A
work-item, on a GPU a work-group, takes a matrix (column-major, columns `step` numbers apart) and finds the values one
or two at a time at its lower end. A subdiagonal number is taken as zero where it is negligible beside its neighbours
(Ahues and Tisseur, LAPACK Working Note 122, 1997).

`kept`: the whole matrix becomes upper triangular, with 2 x 2 blocks on the diagonal for pairs of conjugate values, and
the steps' products are multiplied onto the columns of `z`. `values`: real and imaginary parts. `states`: whether a
matrix is done (0), not yet as `most` steps were made in this launch (1), does not converge (2) or is not finite (3);
how many values are known; the steps made for the next one.
</%doc>\
<%namespace name="lane_memory" file="/lanes.mako"/>\
<%namespace name="numbers" file="/factor/numbers.mako"/>\
<%
complex_ = dt.is_complex
one = "f" if dt.to_real().itemsize == 4 else ""
%>\
${headers}\
typedef ${I} I;
${numbers.helpers(dt, memory, lane_memory, gpu, lanes, ('load', 'store'))}\
#define EPSILON ${epsilon}
#define H(i, j) h[(i) + (j) * step]
% if complex_:
#define ABS(z) (fabs((z).x) + fabs((z).y))
#define TIMES(a, b) cmul_${dt.reg}(a, b)
/* The square root whose real part is not negative. Numbers are finite here, and not large: the text of
   complex_functions.cl, which csqrt is part of, would only take time to compile. */
static inline T clt_root(const T x) {
    const R size = hypot(x.x, x.y), large = sqrt(${'0.5' + one} * (size + fabs(x.x)));
    if (large == 0) return (T)(0, 0);
    const R other = ${'0.5' + one} * fabs(x.y) / large;
    return x.x < 0 ? (T)(other, copysign(large, x.y)) : (T)(large, copysign(other, x.y));
}
% else:
#define ABS(z) fabs(z)
% endif
/* Whether the subdiagonal number in row k is negligible. */
static APART int clt_negligible(__global const T *h, const I step, const I n, const I k, const R tiny) {
    const R low = ABS(H(k, k - 1)), high = ABS(H(k - 1, k)), last = ABS(H(k, k)), apart = ABS(H(k - 1, k - 1) - H(k, k));
    if (low <= tiny) return 1;
    R size = ABS(H(k - 1, k - 1)) + last;
    if (size == 0) {
        if (k > 1) size += ABS(H(k - 1, k - 2));
        if (k + 1 < n) size += ABS(H(k + 1, k));
    }
    if (!(low <= EPSILON * size)) return 0;
    const R more = fmax(last, apart), less = fmin(last, apart), sum = more + fmax(low, high);
    return fmin(low, high) * (fmax(low, high) / sum) <= fmax(tiny, EPSILON * (less * (more / sum)));
}
## A step's reflector or rotation from the left on rows k, k + 1, ... of column j, and from the right on vectors of rows
## of columns k, k + 1, ...
% if complex_:
static APART void clt_rows(__global T *h, const I step, const I k, const I first, const I end, const R c, const T s) {
    for (I j = first + LANE; j < end; j += LANES) {
        const T x = H(k, j), y = H(k + 1, j);
        H(k, j) = c * x + TIMES(s, y);
        H(k + 1, j) = c * y - TIMES(CONJ(s), x);
    }
}
static APART void clt_columns(__global T *h, const I step, const I first, const I m, const R c, const T s) {
    const F plus = SPREAD(-CONJ(s)), minus = SPREAD(s);
<%numbers:rows first="first">\
        const F x = LOAD(h + i, n), y = LOAD(h + i + step, n);
        STORE(h + i, clt_less(x * c, y, plus), n);
        STORE(h + i + step, clt_less(y * c, x, minus), n);
</%numbers:rows>\
}
% else:
static APART void clt_rows(__global T *h, const I step, const I k, const I first, const I end, const int three, const T v, const T w, const T tau) {
    for (I j = first + LANE; j < end; j += LANES) {
        __global T *x = &H(k, j);
        const T sum = (x[0] + v * x[1] + (three ? w * x[2] : 0)) * tau;
        x[0] -= sum;
        x[1] -= sum * v;
        if (three) x[2] -= sum * w;
    }
}
static APART void clt_columns(__global T *h, const I step, const I first, const I m, const int three, const T v, const T w, const T tau) {
    const F a = SPREAD(v), b = SPREAD(w), scale = SPREAD(tau);
    if (three) {
<%numbers:rows first="first">\
        const F x = LOAD(h + i, n), y = LOAD(h + i + step, n), u = LOAD(h + i + 2 * step, n);
        const F sum = (x + a * y + b * u) * scale;
        STORE(h + i, x - sum, n);
        STORE(h + i + step, y - sum * a, n);
        STORE(h + i + 2 * step, u - sum * b, n);
</%numbers:rows>\
    } else {
<%numbers:rows first="first">\
        const F x = LOAD(h + i, n), y = LOAD(h + i + step, n);
        const F sum = (x + a * y) * scale;
        STORE(h + i, x - sum, n);
        STORE(h + i + step, y - sum * a, n);
</%numbers:rows>\
    }
}
/* The same for the rotation (c s; -s c) of two rows or columns. */
static APART void clt_turn_rows(__global T *h, const I step, const I k, const I first, const I end, const T c, const T s) {
    for (I j = first + LANE; j < end; j += LANES) {
        const T x = H(k, j), y = H(k + 1, j);
        H(k, j) = c * x + s * y;
        H(k + 1, j) = c * y - s * x;
    }
}
static APART void clt_turn_columns(__global T *h, const I step, const I first, const I m, const T c, const T s) {
    const F cosine = SPREAD(c), sine = SPREAD(s);
<%numbers:rows first="first">\
        const F x = LOAD(h + i, n), y = LOAD(h + i + step, n);
        STORE(h + i, cosine * x + sine * y, n);
        STORE(h + i + step, cosine * y - sine * x, n);
</%numbers:rows>\
}
% endif
#define CLT_WHOLE
__attribute__((reqd_work_group_size(${lanes if gpu else 1}, 1, 1)))
__kernel void ${fn}(__global T *matrices, __global R *all_values, __global int *states\
% if kept:
, __global T *vectors\
% endif
, const I count, const I n, const I step, const I most\
% if kept:
, const I z_step\
% endif
) {
    const R tiny = ${tiny} * (n / EPSILON);
    for (I at = (I)get_group_id(0); at < count; at += (I)get_num_groups(0)) {
        __global T *h = matrices + at * n * step;
        __global R *values = all_values + at * 2 * n;
        __global int *state = states + 3 * at;
% if kept:
        __global T *z = vectors + at * n * z_step;
% endif
        I found = state[1], left = most;
        int steps = state[2], code = 0;
        if (found == 0 && steps == 0) {
            R zero = 0;
            for (I j = 0; j < n; ++j)
                for (I i = 0; i < min(j + 2, n); ++i) zero += ${'H(i, j).x * 0 + H(i, j).y * 0' if complex_ else 'H(i, j) * 0'};
            if (zero != 0) code = 3;
        }
        while (found < n && !code) {
            const I hi = n - 1 - found;
            I lo = hi;
            while (lo > 0 && !clt_negligible(h, step, n, lo, tiny)) --lo;
            SYNC;
            if (LANE == 0 && lo > 0) H(lo, lo - 1) = 0;
            SYNC;
            const I first = ${'0' if kept else 'lo'}, end = ${'n' if kept else 'hi + 1'};
            if (lo == hi) {
                if (LANE == 0) {
                    const T value = H(hi, hi);
                    values[2 * hi] = REAL(value), values[2 * hi + 1] = ${'value.y' if complex_ else '0'};
                }
                found += 1, steps = 0;
                continue;
            }
% if not complex_:
            if (lo == hi - 1) {
                ## The block (a b; c d): real values make it triangular by a rotation.
                const R a = H(lo, lo), b = H(lo, hi), c = H(hi, lo), d = H(hi, hi), gap = ${'0.5' + one} * (a - d);
                const R large = fmax(fabs(b), fabs(c)), less = fmin(fabs(b), fabs(c)) * (b < 0 ? -1 : 1) * (c < 0 ? -1 : 1);
                const R scale = fmax(fabs(gap), large), square = gap / scale * gap + large / scale * less;
                R re = a, im = 0, other = d, cosine = 1, sine = 0;
                if (square < 0) {
                    re = other = d + gap, im = scale * sqrt(-square / scale);
                } else if (b == 0) {
                    re = d, other = a, cosine = 0, sine = 1;
                } else {
                    const R more = gap + copysign(scale * sqrt(square / scale), gap), size = hypot(c, more);
                    re = d + more, other = more == 0 ? d : d - large / more * less;
                    if (size > 0) cosine = more / size, sine = c / size;
                }
                SYNC;
                if (square >= 0) {
                    clt_turn_rows(h, step, lo, lo, end, cosine, sine);
                    SYNC;
                    clt_turn_columns(h + lo * step, step, first, hi + 1, cosine, sine);
% if kept:
                    clt_turn_columns(z + lo * z_step, z_step, 0, n, cosine, sine);
% endif
                    SYNC;
                }
                if (LANE == 0) {
                    if (square >= 0) H(hi, lo) = 0;
                    values[2 * lo] = re, values[2 * lo + 1] = im;
                    values[2 * hi] = other, values[2 * hi + 1] = -im;
                }
                found += 2, steps = 0;
                SYNC;
                continue;
            }
% endif
            if (steps >= 30 * max(n, (I)10)) {
                code = 2;
                break;
            }
            if (left-- == 0) {
                code = 1;
                break;
            }
            ++steps;
            ## After 10 and 20 steps without success, and so on, the shifts are exceptional.
            const int strange = steps % 20 == 0 ? 2 : steps % 10 == 0 ? 1 : 0;
            I start = hi - 1;
% if complex_:
            T shift = H(hi, hi);
            if (strange) {
                const R size = strange == 1 ? ABS(H(lo + 1, lo)) : ABS(H(hi, hi - 1));
                shift = (strange == 1 ? H(lo, lo) : shift) + OF_REAL(${'0.75' + one} * size);
            } else {
                ## The eigenvalue of the last 2 x 2 block that is closer to its last number.
                const T product = TIMES(clt_root(H(hi - 1, hi)), clt_root(H(hi, hi - 1)));
                R size = ABS(product);
                if (size != 0) {
                    const T gap = ${'0.5' + one} * (H(hi - 1, hi - 1) - shift);
                    size = fmax(size, ABS(gap));
                    T root = size * clt_root(TIMES(gap / size, gap / size) + TIMES(product / size, product / size));
                    if (gap.x * root.x + gap.y * root.y < 0) root = -root;
                    shift -= TIMES(product, DIV(product, gap + root));
                }
            }
            T f, g;
            for (;; --start) {
                f = H(start, start) - shift, g = H(start + 1, start);
                const R sum = ABS(f) + ABS(g);
                f /= sum, g /= sum;
                if (start == lo || ABS(H(start, start - 1)) * ABS(g) <= EPSILON * ABS(f) * (ABS(H(start, start)) + ABS(H(start + 1, start + 1)))) break;
            }
            SYNC;
            for (I k = start; k < hi; ++k) {
                if (k > start) f = H(k, k - 1), g = H(k + 1, k - 1);
                ## The rotation (c s; -conj(s) c) maps (f, g) to (r, 0).
                const R size = fmax(ABS(f), ABS(g)), a = size == 0 ? 0 : hypot(f.x / size, f.y / size), b = size == 0 ? 0 : hypot(g.x / size, g.y / size);
                const R whole = hypot(a, b), c = whole == 0 ? 1 : a / whole;
                const T unit = a == 0 ? ONE : f / size / a, s = whole == 0 ? (T)(0, 0) : TIMES(unit, CONJ(g / size)) / whole;
                clt_rows(h, step, k, k, end, c, s);
                SYNC;
                if (LANE == 0) {
                    if (k > start)
                        H(k, k - 1) = unit * (whole * size), H(k + 1, k - 1) = 0;
                    else if (k > lo)
                        H(k, k - 1) *= c;
                }
                clt_columns(h + k * step, step, first, min(k + 2, hi) + 1, c, s);
% if kept:
                clt_columns(z + k * z_step, z_step, 0, n, c, s);
% endif
                SYNC;
            }
% else:
            R s1 = H(hi - 1, hi - 1), s2 = H(hi, hi - 1), s3 = H(hi - 1, hi), s4 = H(hi, hi);
            if (strange) {
                const R size = strange == 1 ? fabs(H(lo + 1, lo)) + fabs(H(lo + 2, lo + 1)) : fabs(s2) + fabs(H(hi - 1, hi - 2));
                s1 = s4 = ${'0.75' + one} * size + (strange == 1 ? H(lo, lo) : s4);
                s3 = ${'-0.4375' + one} * size, s2 = size;
            }
            R re1 = 0, im1 = 0, re2 = 0, im2 = 0;
            const R size = fabs(s1) + fabs(s2) + fabs(s3) + fabs(s4);
            if (size != 0) {
                s1 /= size, s2 /= size, s3 /= size, s4 /= size;
                const R mean = ${'0.5' + one} * (s1 + s4), det = (s1 - mean) * (s4 - mean) - s3 * s2, root = sqrt(fabs(det));
                if (det >= 0) {
                    re1 = re2 = mean * size, im1 = root * size, im2 = -im1;
                } else {
                    ## Of two real shifts the one that is closer to the last number is taken twice.
                    const R more = mean + root, less = mean - root;
                    re1 = re2 = (fabs(more - s4) <= fabs(less - s4) ? more : less) * size;
                }
            }
            R p, q, r;
            for (start = hi - 2;; --start) {
                const R top = H(start, start), next = H(start + 1, start + 1);
                R below = fabs(H(start + 1, start)), sum = fabs(top - re2) + fabs(im2) + below;
                below = H(start + 1, start) / sum;
                p = below * H(start, start + 1) + (top - re1) * ((top - re2) / sum) - im1 * (im2 / sum);
                q = below * (top + next - re1 - re2), r = below * H(start + 2, start + 1);
                sum = fabs(p) + fabs(q) + fabs(r);
                p /= sum, q /= sum, r /= sum;
                if (start == lo) break;
                if (fabs(H(start, start - 1)) * (fabs(q) + fabs(r)) <= EPSILON * fabs(p) * (fabs(H(start - 1, start - 1)) + fabs(top) + fabs(next))) break;
            }
            SYNC;
            for (I k = start; k < hi; ++k) {
                const int three = k < hi - 1;
                R unit = 1;
                if (k > start) {
                    p = H(k, k - 1), q = H(k + 1, k - 1), r = three ? H(k + 2, k - 1) : 0;
                    unit = fabs(p) + fabs(q) + fabs(r);
                    if (unit == 0) continue;
                    p /= unit, q /= unit, r /= unit;
                }
                ## The reflector I - tau (1 v w)^T (1 v w) maps (p, q, r) to (-size, 0, 0).
                const R size = copysign(sqrt(p * p + q * q + r * r), p), tau = (p + size) / size, v = q / (p + size), w = r / (p + size);
                clt_rows(h, step, k, k, end, three, v, w, tau);
                SYNC;
                if (LANE == 0) {
                    if (k > start) {
                        H(k, k - 1) = -size * unit, H(k + 1, k - 1) = 0;
                        if (three) H(k + 2, k - 1) = 0;
                    } else if (k > lo)
                        H(k, k - 1) *= 1 - tau;
                }
                clt_columns(h + k * step, step, first, min(k + 3, hi) + 1, three, v, w, tau);
% if kept:
                clt_columns(z + k * z_step, z_step, 0, n, three, v, w, tau);
% endif
                SYNC;
            }
% endif
        }
        SYNC;
        if (LANE == 0) state[0] = code, state[1] = (int)found, state[2] = steps;
    }
}
