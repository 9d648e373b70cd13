"""Bounds on errors that can be computed for a fitted machine, each with its theorem.

References: Novikoff, Symp. on the Mathematical Theory of Automata, 1962; Vapnik, Statistical
Learning Theory, 1998, chapter 10; Schapire, Freund, Bartlett and Lee, Annals of Statistics 26,
1998; Vapnik and Chapelle, Neural Computation 12, 2000; Joachims, ICML 2000; Koltchinskii and
Panchenko, Annals of Statistics 30, 2002; Bartlett and Mendelson, JMLR 3, 2002; Mohri, Rostamizadeh
and Talwalkar, Foundations of Machine Learning, 2nd edition, 2018, chapters 3 and 5 to 7.
"""

from maxmargin.bounds.bound import Bound
from maxmargin.bounds.left_out import leave_one_out, radius_margin, xi_alpha
from maxmargin.bounds.margin import kernel_margin_bound, margin_bound
from maxmargin.bounds.mistakes import mistake_bound, novikoff

__all__ = [
    "Bound",
    "kernel_margin_bound",
    "leave_one_out",
    "margin_bound",
    "mistake_bound",
    "novikoff",
    "radius_margin",
    "xi_alpha",
]
