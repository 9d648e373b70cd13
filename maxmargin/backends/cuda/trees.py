"""Orders of points along random trees, in which neighbours are near each other.

Reference: Dasgupta and Freund, STOC 2008.
"""

from __future__ import annotations

import math

import torch

from maxmargin.backends.cuda.points import Vectors


def tree_order(points: Vectors, leaf: int, generator: torch.Generator) -> torch.Tensor:
    """Order rows by a random tree: each node is halved along the line between two of its points."""
    n, device = points.n, points.X.device
    depth = max(math.ceil(math.log2(max(n / leaf, 1))), 0)
    width = -(-n // (1 << depth))
    total = width << depth
    place = torch.arange(total, device=device)
    filled = place >= n
    place = place.clamp(max=n - 1)
    rows = points.panel(slice(None), torch.float32).rows
    for level in range(depth):
        nodes, wide = 1 << level, total >> level
        member = place.view(nodes, wide)
        ends = [
            member.gather(1, torch.randint(wide, (nodes, 1), generator=generator, device=device))
            for _ in range(2)
        ]
        line = rows[ends[0][:, 0]] - rows[ends[1][:, 0]]
        along = torch.bmm(rows[member.reshape(-1)].view(nodes, wide, -1), line[:, :, None])[:, :, 0]
        along = along.masked_fill(filled.view(nodes, wide), torch.inf)
        order = along.argsort(dim=1, stable=True)
        place = member.gather(1, order).reshape(-1)
        filled = filled.view(nodes, wide).gather(1, order).reshape(-1)
    return place[~filled]
