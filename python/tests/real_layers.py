"""Convolution-like layers in float64, tap by tap: what plans are held against."""

import numpy as np


def real_layer(x, weights, stride=1, dilation=1, padding=0, transposed=False):
    """The layer in float64, tap by tap."""
    *kernel, n_in, groups, n_out = weights.shape
    if x.ndim == 2:
        return x @ weights.reshape(n_in, n_out)
    n_axes = len(kernel)
    stride, dilation = np.broadcast_to(stride, n_axes), np.broadcast_to(dilation, n_axes)
    sides = [(padding, padding)] * n_axes if np.ndim(padding) == 0 else padding
    if transposed:  # a convolution of the spread input with the reversed kernel
        spread = np.zeros((x.shape[0], *[(e - 1) * s + 1 for e, s in zip(x.shape[1:-1], stride)], x.shape[-1]))
        spread[(slice(None), *[slice(None, None, s) for s in stride])] = x
        x, weights = spread, weights[tuple([slice(None, None, -1)] * n_axes)]
        sides = [(k - 1 - before, k - 1 - after) for k, (before, after) in zip(kernel, sides)]
        stride = np.ones(n_axes, int)
    x = np.pad(x, [(0, 0), *sides, (0, 0)])
    extents = [(e - (k - 1) * d - 1) // s + 1 for e, k, d, s in zip(x.shape[1:-1], kernel, dilation, stride)]
    y = np.zeros((x.shape[0], *extents, groups, n_out))
    for tap in np.ndindex(*kernel):
        at = [slice(t * d, t * d + (e - 1) * s + 1, s) for t, d, e, s in zip(tap, dilation, extents, stride)]
        part = x[(slice(None), *at)].reshape(x.shape[0], *extents, groups, n_in)
        y += np.einsum("...gi,igo->...go", part, weights[tap].astype(np.float64))
    return y.reshape(*y.shape[:-2], groups * n_out)
