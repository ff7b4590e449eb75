## Combine the results that groups computed from their parts of the keys; a work-item makes one number of a row.
## `partial` holds rows x parts x EV weighted sums of values, then rows x parts largest scores, then rows x parts sums
## of exponentials.
% for h in headers:
${h}
% endfor
typedef ${acc} T;
__kernel __attribute__((reqd_work_group_size(${GROUP}, 1, 1)))
void ${fn}(__global const T *partial, __global ${to} *out, __global T *sums,
    const long out_0, const long out_1, const long out_2, const long out_r,
    const int n1, const int n2, const long rows, const int parts, const int L, const int EV)
{
    const long id = get_global_id(0), row = id / EV, all = rows * parts;
    if (row >= rows) return;
    const int c = id % EV;
    __global const T *found = partial + row * parts * EV + c, *tops = partial + all * EV + row * parts, *totals = tops + all;
    T top = -INFINITY, total = 0, sum = 0;
#pragma unroll 8
    for (int i = 0; i < parts; i++) {
        const T t = tops[i];
        top = t > top ? t : top;
    }
    const T base = top == -INFINITY ? 0 : top;
#pragma unroll 8
    for (int i = 0; i < parts; i++) {
        const T less = exp(tops[i] - base);
        total += less * totals[i];
        sum += less * found[i * EV];
    }
    const long z = row / L, z2 = z % n2, z1 = z / n2 % n1, z0 = z / n2 / n1;
    __global ${to} *o = out + z0 * out_0 + z1 * out_1 + z2 * out_2 + row % L * out_r;
    ${store("(total == 0 ? 0 : sum / total)", "o", "c")};
    if (c == 0) sums[row] = total == 0 ? (T)INFINITY : top + log(total);
}
