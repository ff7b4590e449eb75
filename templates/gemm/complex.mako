<%doc>
Expands complex matrices of M rows of N numbers to real ones, so that a real product multiplies them: each row of
interleaved real and imaginary parts becomes two rows, (re, even * im, ...) and (odd_re * im, odd_im * re, ...), where
even, odd_re and odd_im are signs given as arguments. The result is dense, [count, 2 M, 2 N]. On a CPU a work-item owns
some rows; on a GPU each lane converts single numbers.
</%doc>\
<%
swapped = ''.join(f'{k ^ 1:x}' for k in range(V))
%>\
typedef ${I} I;
typedef ${T} T;
% if not gpu:
typedef ${T}${V} F;
typedef F U __attribute__((aligned(${size})));
% endif
__kernel void ${fn}(__global const T *b, __global T *out, const I count, const I M, const I N, const I offset, const I batch, const I row, const I col,
                    const I even, const I odd_re, const I odd_im) {
% if gpu:
    for (I g = (I)get_global_id(0); g < count * M * N; g += (I)get_global_size(0)) {
        const I r = g / N, j = g % N;
% else:
    const I total = count * M, parts = (I)get_global_size(0), part = (I)get_global_id(0);
    const I begin = total / parts * part + min(part, (I)(total % parts)), end = begin + total / parts + (part < total % parts);
    const F of_even = (F)(${', '.join(['1', '(T)even'] * (V // 2))}), of_odd = (F)(${', '.join(['(T)odd_re', '(T)odd_im'] * (V // 2))});
    for (I r = begin; r < end; ++r) {
        I j = 0;
% endif
        __global const T *from = b + 2 * (offset + r / M * batch + r % M * row);
        __global T *to = out + r * 4 * N;
% if not gpu:
        for (; col == 1 && j + ${V // 2} <= N; j += ${V // 2}) {
            const F x = *(__global const U *)(from + 2 * j);
            *(__global U *)(to + 2 * j) = x * of_even;
            *(__global U *)(to + 2 * (N + j)) = x.s${swapped} * of_odd;
        }
        for (; j < N; ++j)
% endif
        {
            const T re = from[2 * j * col], im = from[2 * j * col + 1];
            to[2 * j] = re, to[2 * j + 1] = im * (T)even;
            to[2 * (N + j)] = im * (T)odd_re, to[2 * (N + j) + 1] = re * (T)odd_im;
        }
    }
}
