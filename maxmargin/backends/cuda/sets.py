"""Working sets on a GPU: select, block, solve and update for many of them at once.

The policy is in :mod:`maxmargin.solvers.dual.parallel_sets`; here are its verbs. Problems lie side
by side in arrays (problems, variables), padded with variables that cannot move; the last one always
is of that kind. The orientation of a variable is the sign of its kernel row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from maxmargin.backends import interior_point as interior
from maxmargin.backends.cpu import DEVIATION32
from maxmargin.backends.cuda import kernels
from maxmargin.backends.cuda.matrix import Matrix
from maxmargin.backends.cuda.points import Vectors
from maxmargin.backends.cuda.trees import tree_order
from maxmargin.backends.device import on_host

_ARRAYS = ("row", "orientation", "group", "b", "lower", "upper", "v", "v_at_zero")
_NONE, _LEAST_SET = -1e29, 16  # less is padding; variables of a set at least
_AT_WALL = 1e-7  # distance from a wall, over that between the two, that counts as none
_ROUNDING = 1e-12  # of the sizes of all variables, that a sum may be off
_WORST = 0.1  # share of the violators of a part that are the worst, if there are too many for all


class Changes(NamedTuple):
    """What working sets have become, (sets, q): in each, the ``counts`` that moved come first."""

    members: torch.Tensor
    before: torch.Tensor
    after: torch.Tensor
    counts: torch.Tensor


class Snapshot(NamedTuple):
    """Where problems are, on the host, (problems,): see the methods of :class:`Variables`.

    ``movable`` variables are free, or on the wrong side of their level; ``chain`` is how many
    steps have waited for one another, of all problems together.
    """

    violation: np.ndarray
    steps: np.ndarray
    objective: np.ndarray
    uncertainty: np.ndarray
    movable: np.ndarray
    chain: int


class Variables:
    """The variables of some problems with the same number of constraints, and where they stand.

    Parameters
    ----------
    matrix : Matrix
    row : int array (problems, variables)
        Row of the matrix; -1 for a variable that only fills up.
    orientation, group, b, lower, upper, v, v_at_zero : arrays (problems, variables)
    n_groups : int
        Equality constraints of each problem.
    """

    def __init__(
        self,
        matrix: Matrix,
        row: torch.Tensor,
        orientation: torch.Tensor,
        group: torch.Tensor,
        b: torch.Tensor,
        lower: torch.Tensor,
        upper: torch.Tensor,
        v: torch.Tensor,
        v_at_zero: torch.Tensor,
        n_groups: int,
    ) -> None:
        self.matrix, self.row, self.orientation, self.group = matrix, row, orientation, group
        self.b, self.lower, self.upper, self.v = b, lower, upper, v
        self.v_at_zero = v_at_zero
        self.n_groups = n_groups
        count, self.size = b.shape
        self.padding = self.size - 1
        self.device = b.device
        self.plain = bool((orientation == 1).all())
        self.active = torch.ones(count, dtype=torch.bool, device=self.device)
        self.steps = torch.zeros(count, dtype=torch.int64, device=self.device)
        self.chain = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.orders: list[torch.Tensor] = []
        self._round = 0
        self._generator = torch.Generator(device=self.device)
        self._generator.manual_seed(0)

    @classmethod
    def on_device(
        cls, matrix: Matrix, arrays: dict[str, np.ndarray], offset: np.ndarray, n_groups: int
    ) -> Variables:
        """Bring several problems to the device.

        Parameters
        ----------
        matrix : Matrix
        arrays : dict of arrays
            Those of a :class:`maxmargin.duals.DualBatch`, and ``decision``: ``K coef`` at the start
            on the row of each variable. Problem k has ``offset[k]:offset[k + 1]``.
        offset : int array
        n_groups : int
        """
        sizes = matrix.to_device(np.diff(offset))[:, None]
        place = torch.arange(int(np.diff(offset).max()) + 1, device=matrix.device)
        inside = place < sizes
        index = torch.where(inside, matrix.to_device(offset[:-1])[:, None] + place, 0)

        def filled_up(name: str, value: float) -> torch.Tensor:
            return torch.where(inside, matrix.to_device(arrays[name])[index], value)

        orientation, v_at_zero = filled_up("orientation", 1.0), -filled_up("linear", 0.0)
        return cls(
            matrix,
            row=filled_up("gram_row", -1),
            orientation=orientation.float(),
            group=filled_up("group", 0).clamp(min=0).to(torch.int8),
            b=filled_up("start", 0.0),
            lower=filled_up("lower", 0.0),
            upper=filled_up("upper", 0.0),
            v=v_at_zero - orientation * filled_up("decision", 0.0),
            v_at_zero=v_at_zero,
            n_groups=n_groups,
        )

    # -- looking -------------------------------------------------------------------------------

    def look(self) -> None:
        """Find the level of every group, and the violation of every problem."""
        groups = max(self.n_groups, 1)
        found = kernels.kkt_scan(self.b, self.lower, self.upper, self.v, self.group, groups)
        self.first = found.first
        if self.n_groups == 0:
            self.level = torch.zeros_like(found.top)
            self.violation = torch.maximum(found.top, -found.bottom).clamp(min=0)[:, 0]
            return
        mean = found.total / found.free.clamp(min=1)
        self.level = torch.where(found.free > 0, mean, _middle(found.top, found.bottom))
        self.violation = (found.top - found.bottom).clamp(min=0).amax(1)

    def snapshot(self) -> Snapshot:
        """Tell the host what the last look has seen, in one copy."""
        movable = (self.excess() >= 0).sum(1)
        chain = self.chain.expand_as(self.steps)
        seen = [self.violation, self.objective(), self.uncertainty(), self.steps, movable, chain]
        violation, objective, uncertainty, *counts = on_host(
            torch.stack([each.double() for each in seen])
        )
        steps, movable, chain = (each.astype(np.int64) for each in counts)
        return Snapshot(violation, steps, objective, uncertainty, movable, int(chain[0]))

    @property
    def score(self) -> torch.Tensor:
        """``v`` less the level of its group."""
        if self.n_groups < 2:
            return self.v - self.level
        return self.v - self.level.gather(1, self.group.long())

    def objective(self) -> torch.Tensor:
        """Value of the dual of each problem as minimised, as the scores have it."""
        return -0.5 * (self.b * (self.v + self.v_at_zero)).sum(1)

    def rest(self, done: np.ndarray) -> None:
        """Leave the problems that are done as they are."""
        self.active = self.matrix.to_device(~done)

    def excess(self) -> torch.Tensor:
        """By how much each variable is on the wrong side of its level."""
        score = self.score
        up = torch.where(self.b < self.upper, score, -torch.inf)
        return torch.maximum(up, torch.where(self.b > self.lower, -score, -torch.inf))

    def decisions(self) -> torch.Tensor:
        """``K beta`` at the row of every variable, in float64."""
        problem = torch.arange(len(self.b), device=self.device)[:, None].expand_as(self.row)
        row = self.row.clamp(min=0)
        beta = torch.zeros((self.matrix.n, len(self.b)), dtype=torch.float64, device=self.device)
        beta.index_put_((row, problem), self.orientation * self.b, accumulate=True)
        active = torch.nonzero(beta.any(dim=1)).flatten()
        return self.matrix.products(beta[active], active)[row, problem]

    def uncertainty(self) -> torch.Tensor:
        """Standard deviation of a score of each problem by the rounding of kernel values."""
        return DEVIATION32 * self.matrix.largest * self.b.norm(dim=1)

    # -- one set of the worst in every problem -------------------------------------------------

    def worst_round(self, q: int, share: float, below: float, steps: int) -> None:
        """Solve one set of the worst violators in every problem that is still at work."""
        members = self._worst(min(q, max(2 ** math.ceil(math.log2(self.size)), _LEAST_SET)))
        members = torch.where(self.active[:, None], members, self.padding)
        self._move(self._solved(members[:, None, :], share, below, steps))

    def _worst(self, q: int) -> torch.Tensor:
        """Places of the variables that violate most, half of them on either side, (problems, q).

        The one that is first to rise is there in any case, and padding is there twice.
        """
        keys = kernels.keys(
            self.b, self.lower, self.upper, self.v, self.group, self.level, self.first
        )
        sides = 2 * max(self.n_groups, 1)
        top = keys.view(len(self.b), sides, self.size).topk(
            min(q // sides, self.size), sorted=False
        )
        members = torch.where(top.values > _NONE, top.indices, self.padding).flatten(1)
        short = 2 ** math.ceil(math.log2(members.shape[1])) - members.shape[1]
        return torch.nn.functional.pad(members, (0, short), value=self.padding)

    # -- sets of neighbours in every problem ---------------------------------------------------

    @property
    def local_pays(self) -> bool:
        """Whether sums over many sets are cheap: of stored rows, or at the same columns."""
        return len(self.b) == 1 or self.matrix.resident() is not None

    def local_round(
        self, q: int, sets: int, most: int, farthest: float, share: float, below: float, steps: int
    ) -> None:
        """Cut the violators of every problem at work into sets of neighbours, and solve these.

        So many ``sets`` in all, for ``most`` violators of a problem, which the host knows from its
        last look; where there are more, others have their turn next time.
        """
        order = self.orders[self._round % len(self.orders)]
        self._round += 1
        violates = (self.excess() > 0) & self.active[:, None]
        violates = violates.gather(1, order)
        counts = violates.sum(1)
        problems = len(self.b)
        at_once = max(min(sets, self.matrix.sets_at_once(q)) // problems, 1)
        each = min(max(-(-most // q), 1), at_once)
        # places in the sets along the order, begun anywhere: other cuts each time
        chance = torch.rand(problems, generator=self._generator, device=self.device)
        turn = (violates.cumsum(1) - 1 + (chance * counts).long()[:, None]) % counts.clamp(min=1)[
            :, None
        ]
        place = torch.where(violates, turn, each * q).clamp(max=each * q)
        members = torch.full((problems, each * q + 1), self.padding, device=self.device)
        members = members.scatter_(1, place, order)[:, :-1].reshape(problems, each, q)
        changes = self._solved(members, share, below, steps)
        if each == 1:
            self._move(changes)
        else:
            self._move_together(changes, farthest)

    def _move_together(self, changes: Changes, farthest: float) -> None:
        """Move along the steps of several sets, each as far as is best with the others."""
        problems, q = len(self.b), changes.members.shape[1]
        members, before, after = (
            array.view(problems, -1) for array in (changes.members, changes.before, changes.after)
        )
        each = members.shape[1] // q
        change = after - before
        weight = (self.orientation.gather(1, members) * change).float()
        row = self.row.gather(1, members).clamp(min=0)
        columns = self.row if problems == 1 else self.row.repeat_interleave(each, 0)
        sums = self.matrix.sums(row.view(-1, q), weight.view(-1, q), changes.counts, columns)
        sums = sums.view(problems, each, -1)  # of each set, at all variables
        at_members = sums.gather(2, members[:, None, :].expand(-1, each, -1))
        H = (at_members * weight[:, None, :]).view(problems, each, each, q).sum(3)
        slope = (change * self.score.gather(1, members)).view(problems, each, q).sum(2).float()
        low, high = self.lower.gather(1, members), self.upper.gather(1, members)
        room = torch.where(change > 0, (high - before) / change, (low - before) / change)
        room = torch.where(change == 0, torch.inf, room).view(problems, each, q)
        room = room.amin(2).clamp(1, farthest)
        moves = changes.counts.view(problems, each) > 0
        longest = room.float().masked_fill(~moves, 0)
        length = kernels.step_lengths(0.5 * (H + H.transpose(1, 2)), slope, longest)
        far = torch.where(length == longest, room, length.double()).repeat_interleave(q, 1)
        moved = torch.where(far == 1, after, before + far * change)
        # what only comes nearer to a wall each time is put there; even_out mends the sums
        near = _AT_WALL * (high - low)
        moved = torch.where(moved - low < near, low, torch.where(high - moved < near, high, moved))
        self.b.scatter_(1, members, moved)
        self.v -= self.orientation * torch.bmm(length[:, None, :], sums)[:, 0]

    # -- what the two share --------------------------------------------------------------------

    def _solved(self, members: torch.Tensor, share: float, below: float, steps: int) -> Changes:
        """Solve each of the sets (problems, sets, q)."""
        problems, sets, q = members.shape
        place = members.view(problems, -1)

        def gathered(array: torch.Tensor) -> torch.Tensor:
            return array.gather(1, place).view(-1, q)

        row, orientation = gathered(self.row).clamp(min=0), gathered(self.orientation)
        K = self.matrix.square(row)
        if not self.plain:
            K = K * orientation[:, :, None] * orientation[:, None, :]
        before = gathered(self.b)
        after = before.clone()
        solved = kernels.steps_inside(
            K.contiguous(),
            gathered(self.score).float(),
            after,
            gathered(self.lower),
            gathered(self.upper),
            gathered(self.group),
            self.n_groups,
            below,
            share,
            steps,
        )
        self.steps += solved.steps.view(problems, sets).sum(1)
        self.chain += solved.steps.max()  # sets are solved side by side: the longest counts
        order = solved.order
        members = members.reshape(-1, q).gather(1, order)
        return Changes(members, before.gather(1, order), after.gather(1, order), solved.counts)

    def _move(self, changes: Changes) -> None:
        """Move the variables of one set in every problem, and all scores with them."""
        members, before, after, counts = changes
        self.b.scatter_(1, members, after)
        weight = (self.orientation.gather(1, members) * (after - before)).float()
        row = self.row.gather(1, members).clamp(min=0)
        sums = self.matrix.sums(row, weight, counts, self.row)
        self.v -= self.orientation * sums

    def plant_trees(self, count: int, leaf: int) -> None:
        """Order the variables of every problem so that neighbours in space are near each other."""
        points, n = self.matrix.points.primitives[0], self.matrix.n
        for _ in range(count):
            if type(points) is Vectors:  # CSR rows would have to be written out for this
                rows = tree_order(points, leaf, self._generator)
            else:
                rows = torch.randperm(n, generator=self._generator, device=self.device)
            place = torch.empty_like(rows)
            place[rows] = torch.arange(n, device=self.device)
            own = torch.where(self.row < 0, n, place[self.row.clamp(min=0)])
            self.orders.append(own.argsort(dim=1, stable=True))

    # -- Newton steps on one problem -----------------------------------------------------------

    def problem(self, k: int) -> Variables:
        """One of the problems alone; what it becomes, this one becomes."""
        return self._restricted(lambda array: array[k : k + 1])

    def _restricted(self, chosen: Callable[[torch.Tensor], torch.Tensor]) -> Variables:
        """Problems made of what is chosen of every array."""
        arrays = {name: chosen(getattr(self, name)) for name in _ARRAYS}
        return Variables(self.matrix, **arrays, n_groups=self.n_groups)

    def renew(self) -> None:
        """Compute the scores anew from the variables, in float64."""
        self.v.copy_(self.v_at_zero - self.orientation * self.decisions())

    def minimise(self, target: float, violation: float) -> bool:
        """Solve one problem by Newton steps on all its variables; whether that betters it."""
        own = slice(0, self.padding)
        H = self.matrix.among(self.row[0, own])
        if not self.plain:
            orientation = self.orientation[0, own].double()
            H *= orientation[:, None]
            H *= orientation
        groups = torch.arange(self.n_groups, device=self.device)
        found = interior.minimise(
            H,
            self.v[0, own],
            self.b[0, own],
            self.lower[0, own],
            self.upper[0, own],
            (self.group[0, own, None] == groups).double(),
            target,
        )
        if found is None or not found.violation < violation:
            return False
        self.b[0, own], self.v[0, own] = found.x, found.v
        self.steps += found.steps
        return True

    # -- parts of one large problem ------------------------------------------------------------

    def near_level(self, margin: float, most: int, worst: float = _WORST) -> Variables:
        """Return the variables of one problem no further than this on the right side, as a part.

        If these are too many: the free ones, and of the others that violate, or nearly do, the
        worst; so many of them as this share of the part, and the rest at random.
        """
        excess = self.excess()[0]
        near = torch.nonzero(excess > -margin).flatten()
        if len(near) > most:
            free = ((self.b > self.lower) & (self.b < self.upper))[0][near]
            if worst < 1:
                key = torch.rand(len(near), generator=self._generator, device=self.device)
                key += free.float() + (excess[near] > 0)
                key[excess[near].topk(int(worst * most)).indices] = torch.inf
            else:
                key = torch.where(free, torch.inf, excess[near])
            near = near[key.topk(most).indices].sort().values
        return self.part(near)

    def sample(self, count: int) -> Variables:
        """Return so many variables of one problem at random; more of them contain the fewer."""
        return self.part(self._shuffled()[:count].sort().values)

    def _shuffled(self) -> torch.Tensor:
        generator = torch.Generator(device=self.device)
        generator.manual_seed(1)
        return torch.randperm(self.padding, generator=generator, device=self.device)

    def part(self, index: torch.Tensor) -> Variables:
        """Some variables of one problem as a problem of their own."""
        index = torch.nn.functional.pad(index, (0, 1), value=self.padding)
        part = self._restricted(lambda array: array[:, index])
        place = torch.full((self.size,), -1, dtype=torch.int64, device=self.device)
        place[index] = torch.arange(len(index), device=self.device)
        for order in self.orders:
            own = place[order[0]]
            part.orders.append(own[own >= 0][None])
        part.index, part.before = index, self.b[0][index].clone()
        part._round, part._generator = self._round, self._generator
        return part

    index: torch.Tensor
    before: torch.Tensor

    def take_over(self, part: Variables) -> None:
        """Take what a part has become, and bring the scores of all others up to date."""
        moved = self.adopt(part)
        if not len(moved):
            return
        if len(part.index) < self.size:
            change = (part.b[0] - part.before)[moved]
            weight = (part.orientation[0][moved] * change).float()
            sums = self._sums_of_many(part.row[0][moved], weight)
            self.v[0] -= self.orientation[0] * sums
        self.v[0][part.index] = part.v[0]

    def adopt(self, part: Variables) -> torch.Tensor:
        """Take the variables of a part, not yet the scores; returns which of them have moved."""
        part.even_out(part.before[None])
        self.b[0][part.index] = part.b[0]
        self.steps += part.steps
        self._round = part._round
        return torch.nonzero(part.b[0] - part.before).flatten()

    def even_out(self, before: torch.Tensor) -> None:
        """Give back what problems have gained or lost of the sums that constraints fix.

        A variable far from both its walls takes it. Where none has the room, all take what they
        can, those first that are the first to go this way.
        """
        for g in range(self.n_groups):
            member = self.group == g
            drift = torch.where(member, self.b - before, 0).sum(1, keepdim=True)
            room = torch.minimum(self.b - self.lower, self.upper - self.b)
            most, roomiest = torch.where(member, room, -1).max(1, keepdim=True)
            fits = drift.abs() < most
            mended = self.b.gather(1, roomiest) - torch.where(fits, drift, 0)
            self.b.scatter_(1, roomiest, mended)
            least = _ROUNDING * torch.where(member, self.b, 0).abs().sum(1, keepdim=True)
            lost = torch.where(fits | (drift.abs() <= least), 0, drift)
            if bool(lost.any()):
                self._share_out(member, lost)

    def _share_out(self, member: torch.Tensor, lost: torch.Tensor) -> None:
        """Take so much (problems, 1) from the sums of the members, a wall after the other."""
        way = lost.sign()
        room = torch.where(way > 0, self.b - self.lower, self.upper - self.b)
        order = torch.where(member, way * self.v, torch.inf).argsort(dim=1)
        room = torch.where(member, room, 0).gather(1, order)
        taken = room.cumsum(1).clamp(max=lost.abs()).diff(dim=1, prepend=torch.zeros_like(lost))
        moved = self.b.gather(1, order) - way * taken
        low, high = (wall.gather(1, order) for wall in (self.lower, self.upper))
        self.b.scatter_(1, order, torch.minimum(torch.maximum(moved, low), high))

    def _sums_of_many(self, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Sum any number of rows at all columns, so many at a time as there is room for."""
        q, total = 512, torch.zeros(self.size, dtype=torch.float64, device=self.device)
        at_once = max(int(2e8) // max(self.size, 1), 1) * q
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            sets = -(-len(some) // q)
            padded = torch.zeros(sets * q, dtype=torch.int64, device=self.device)
            padded[: len(some)] = some
            weight = torch.zeros_like(padded, dtype=torch.float32)
            weight[: len(some)] = weights[start : start + at_once]
            left = len(some) - q * torch.arange(sets, device=self.device)
            counts = left.clamp(max=q).to(torch.int32)
            sums = self.matrix.sums(padded.view(sets, q), weight.view(sets, q), counts, self.row)
            total += sums.sum(0, dtype=torch.float64)
        return total


def _middle(top: torch.Tensor, bottom: torch.Tensor) -> torch.Tensor:
    """Middle of the extremes; the one that is finite, or zero."""
    top = torch.where(torch.isfinite(top), top, bottom)
    middle = 0.5 * (top + torch.where(torch.isfinite(bottom), bottom, top))
    return torch.nan_to_num(middle, posinf=0.0, neginf=0.0)
