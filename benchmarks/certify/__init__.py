"""Random problems whose certificates are judged by someone who does not believe them.

    python -m benchmarks.certify --problems 20000 --jobs 2            # a table, family by family
    python -m benchmarks.certify --family ridge --seed-only 4711      # one problem again, in words

Every seed is a problem of one family (`families/`, one file each): an estimator, data of some
scale, offset, outliers, precision and form, weights, parameters. The estimator is fitted with no
limit on time or steps. Then what it claims is compared with a truth that is computed elsewhere: in
long double from the formulas in a textbook, by Clarabel or SciPy, or by brute force.

A problem fails if it is

- ``false``: something that was claimed is not so, beyond the rounding of the truth itself;
- ``above tol``: it is called converged, and what had to become small is above ``tol``;
- ``slow``: the fit takes more than 20 s of CPU time (it is killed at 60 s);
- ``crash``: any exception but a refusal in words (`ValueError`, `InseparableError`).
"""
