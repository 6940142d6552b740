# Copyright 2026 The weight_sync Authors.
# SPDX-License-Identifier: Apache-2.0
"""SGLang 0.5 imports rotary_embedding from here on a CPU that has no AMX."""


def rotary_embedding(positions, query, key, head_size, cos_sin_cache, is_neox):
    """Rotates the heads of query and key (tokens, heads * head_size), in place.

    A row of cos_sin_cache is the cosines of a position, then its sines; a head's dimensions past
    those are left alone. The two numbers that are rotated together lie half a rotation apart
    (is_neox), or side by side.
    """
    cos, sin = cos_sin_cache[positions.flatten()].unsqueeze(1).chunk(2, dim=-1)
    half = cos.shape[-1]
    for heads in (query, key):
        if heads is None:
            continue
        rotated = heads.view(positions.numel(), -1, head_size)[..., : 2 * half]
        if is_neox:
            first, second = rotated[..., :half], rotated[..., half:]
        else:
            first, second = rotated[..., ::2], rotated[..., 1::2]
        first_rotated = first * cos - second * sin
        second.copy_(second * cos + first * sin)
        first.copy_(first_rotated)
