"""Fourier transforms of lines of smooth length, in one pass or several, along one dim or several."""
