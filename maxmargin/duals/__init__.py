"""The dual problems of the kernel machines, all of one form.

Every machine here is the quadratic programme

    minimise     1/2 sum_ts o_t o_s b_t b_s K(g_t, g_s)  +  p' b
    subject to   lower <= b <= upper
                 sum of b_t over group j  =  its value at the start,  for every group j

over *signed* variables ``b_t`` on the rows ``g_t`` of a Gram matrix. A variable is a multiplier of
the lecture's with the label of its row, ``b = y a``: the coefficients of ``w = sum_t o_t b_t
phi(g_t)``, scikit-learn's ``dual_coef_``. So the quadratic form is the Gram matrix itself and
nothing below asks for the sign of a class. (The orientation ``o`` is one, but for the nu machines
and the hard margin without a bias: their constraint is on ``sum a``, so that ``b = a``, on the rows
``y phi``.) Two variables may share a row (support vector regression), problems may share the Gram
matrix (pairs of classes, folds), and there are no, one or two groups:

==========  =================  ======  =====================  ===================================
machine     variables          p       box, from 0 to         constraints (groups)
==========  =================  ======  =====================  ===================================
C-SVC       one per row        -y      y C w                  sum b = 0
nu-SVC      one per row        0       y w                    sum b = y nu N / 2 in each class
hard SVC    one per row        0       y inf                  sum b = y in each class
SVR         two, s = +-1       s e-t   s C w                  sum b = 0
nu-SVR      two, s = +-1       -t      s C w                  sum b = s C nu N / 2 for each sign
one-class   one per row        0       w                      sum b = nu N
==========  =================  ======  =====================  ===================================

``w`` are sample weights, N their sum, e the width of the tube, t the target. Without a bias the
constraint that comes from it is dropped. The machine is read off a solution through the *level*
``l_j`` of each group, the value that minus the gradient has on its free variables: for C-SVC it is
the bias.

The hard margin is posed as the nearest points of the two convex hulls: always bounded, and when
the hulls touch, its solution is the witness that no hyperplane separates. Scaled by ``1 / rho`` it
is the solution of the maximum margin problem, just as for nu-SVC.

Reference: Chang and Lin, LIBSVM, ACM TIST 2011; Keerthi et al., IEEE TNN 11(1), 2000 (hulls).
"""

from maxmargin.duals.machines import (
    c_svc,
    epsilon_svr,
    hard_margin,
    nu_svc,
    nu_svr,
    one_class,
)
from maxmargin.duals.problem import DualBatch, DualProblem, Levels, Losses, read_levels

__all__ = [
    "DualBatch",
    "DualProblem",
    "Levels",
    "Losses",
    "c_svc",
    "epsilon_svr",
    "hard_margin",
    "nu_svc",
    "nu_svr",
    "one_class",
    "read_levels",
]
