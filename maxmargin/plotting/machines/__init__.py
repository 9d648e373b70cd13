"""Fitted machines: the plane that they divide, margins, tubes, probabilities, schemes."""
