"""Lengths of Fourier transforms: which are smooth, their radices, and how a long one is split. Host integers only."""

from __future__ import annotations

PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31)


def factors(n: int) -> list[int] | None:
    """Return the radices whose product is a length, or None where a prime factor is too large."""
    twos = (n & -n).bit_length() - 1
    n >>= twos
    # A remaining factor of 16 becomes 4 * 4, which costs less than 8 * 2.
    fours = 0 if twos < 2 else (0, 2, 1)[twos % 3]
    found = [8] * ((twos - 2 * fours) // 3) + [4] * fours + [2] * (twos == 1)
    for r in PRIMES:
        while n % r == 0:
            found.append(r)
            n //= r
    return found if n == 1 else None


def is_smooth(n: int) -> bool:
    """Return whether this family transforms lines of length n."""
    return factors(n) is not None


def next_smooth(n: int) -> int:
    """Return the smallest 2^a 3^b 5^c not below n."""
    best = 1 << (n - 1).bit_length() if n > 1 else 1
    five = 1
    while five < best:
        three = five
        while three < best:
            quotient = -(-n // three)
            best = min(best, three << (quotient - 1).bit_length() if quotient > 1 else three)
            three *= 3
        five *= 5
    return best


def radices(n: int) -> int:
    """Pack the radices of a length into an integer, five bits each, the first one lowest."""
    packed = 0
    for r in reversed(factors(n) or []):
        packed = packed << 5 | r
    return packed


def divisor(n: int, longest: int) -> int:
    """Return the divisor of n, nearest to its square root, that one pass can transform; 1 where there is none."""
    found = {1}
    for radix in factors(n) or []:
        for p in {8: (2, 2, 2), 4: (2, 2)}.get(radix, (radix,)):
            found |= {d * p for d in found}
    fits = [d for d in found if d <= longest]
    both = [d for d in fits if n // d <= longest]
    return max(both, key=lambda d: min(d, n // d)) if both else max(fits)
