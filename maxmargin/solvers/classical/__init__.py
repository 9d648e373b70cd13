"""The methods that the textbooks teach, each as it is written there, one to a file.

They solve the same problems as the fast engines in :mod:`maxmargin.solvers.dual` and
:mod:`maxmargin.solvers.risk`, under the same driver and with the same certificate. They are there
to be compared and watched.
"""
