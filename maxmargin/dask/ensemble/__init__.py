"""Ensembles on Dask collections: boosting, trees and forests over partitions, bagging by tasks."""

from maxmargin.dask.ensemble import bagging, boosting, newton, trees

__all__ = ["bagging", "boosting", "newton", "trees"]
