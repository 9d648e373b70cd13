"""Compiled loops of dual problems: steps, descents, looks at the KKT conditions, accounts."""
